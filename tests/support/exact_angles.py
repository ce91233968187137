"""Sines and cosines of any float, from integers alone: the reference for reductions of large angles."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import numpy as np

_BITS = 1400
"""Of pi behind the point: enough for the largest f64 and 300 bits of what remains of it."""
_DIGITS = 220
"""Bits of a sine behind the point."""
_TINY = 2.0**-60
"""Up to here a sine is its angle."""


@functools.cache
def pi(bits: int) -> int:
    """Return pi times two to the power `bits`, by Euler's formula; the last bits are not right."""
    return 20 * _arc_tangent(1, 7, bits) + 8 * _arc_tangent(3, 79, bits)


def _arc_tangent(numerator: int, denominator: int, bits: int) -> int:
    total, power, k = 0, (numerator << bits) // denominator, 0
    while power:
        total += (-1) ** k * (power // (2 * k + 1))
        power = power * numerator**2 // denominator**2
        k += 1
    return total


def _sine_and_cosine(angle: float) -> tuple[int, int]:
    """Return both, times two to the power `_DIGITS`."""
    numerator, denominator = angle.as_integer_ratio()
    scaled, half_pi = (numerator << _BITS) // denominator, pi(_BITS) >> 1
    multiple = (2 * scaled + half_pi) // (2 * half_pi)
    rest = (scaled - multiple * half_pi) >> (_BITS - _DIGITS)
    sine, cosine = _series(rest, rest, 1), _series(1 << _DIGITS, rest, 0)
    return [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][multiple % 4]


def _series(term: int, rest: int, order: int) -> int:
    """Return a term and those behind it: each is the last by `-rest^2` and the next two of the factorial."""
    total = 0
    while abs(term) > 1:
        total += term
        order += 2
        term = -((term * rest >> _DIGITS) * rest >> _DIGITS) // (order * (order - 1))
    return total


def _long_doubles(scaled: Iterable[int]) -> np.ndarray:
    """Return integers times two to the power `-_DIGITS`, each rounded down to 63 bits."""
    return np.array([_long_double(number) for number in scaled])


def _long_double(number: int) -> np.longdouble:
    excess = max(0, number.bit_length() - 63)
    return np.ldexp(np.longdouble(number >> excess), excess - _DIGITS)


def exactly(name: str, angles: np.ndarray) -> np.ndarray:
    """Return `sin`, `cos` or `tan` of floats as long doubles, right to about 60 bits."""
    sines, cosines = map(_long_doubles, zip(*(_sine_and_cosine(float(angle)) for angle in angles), strict=True))
    # Behind the point they have too few digits for these, and need none.
    sines = np.where(np.abs(angles) < _TINY, angles, sines)
    return sines / cosines if name == "tan" else sines if name == "sin" else cosines


def near_multiples(kind: type[np.floating], count: int) -> np.ndarray:
    """Return floats of all magnitudes from 1 on that are nearest to multiples of pi/2, and their neighbours."""
    random = np.random.default_rng(0)
    top = np.finfo(kind).maxexp
    angles: list[float] = []
    for exponent in range(1, top):
        for fraction in random.random(count):
            multiple = max(1, int((1 + fraction) * 2.0**64) << exponent >> 64)
            scaled = multiple * (pi(_BITS) >> 1)
            excess = scaled.bit_length() - np.finfo(kind).nmant - 1
            # Scaled in two steps: the first power alone would overflow.
            angles.append(math.ldexp(float(scaled + (1 << excess >> 1) >> excess), excess - _BITS))
    largest = float(np.finfo(kind).max)
    nearest = np.array([angle for angle in angles if angle < largest], kind)
    return np.concatenate([nearest, np.nextafter(nearest, kind(0)), np.nextafter(nearest, kind(np.inf))])
