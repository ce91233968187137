"""Small powers as products and square roots, which take a tenth of the time of a general power."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Factor = TypeVar("Factor")

LARGEST = 4
"""The largest exponent: beyond it, rounding errors accumulate."""


def is_small(exponent: float) -> bool:
    """Whether a power has so small a multiple of 1/4 for its exponent that it is expanded."""
    return 0 < abs(exponent) <= LARGEST and not (4 * exponent) % 1


def expanded_power(
    x: Factor, exponent: float, multiply: Callable[[Factor, Factor], Factor], root: Callable[[Factor], Factor]
) -> Factor:
    """x to the power |`exponent`|, which is small, by a product of two and a square root."""
    whole, quarters = divmod(int(abs(exponent) * 4), 4)
    first, *others = [*_whole_power(x, whole, multiply), *_root(x, quarters, root)]
    for factor in others:
        first = multiply(first, factor)
    return first


def _whole_power(x: Factor, exponent: int, multiply: Callable[[Factor, Factor], Factor]) -> list[Factor]:
    """The factors of an integer power of x, by repeated squaring."""
    factors: list[Factor] = []
    while exponent:
        if exponent % 2:
            factors.append(x)
        exponent //= 2
        x = multiply(x, x) if exponent else x
    return factors


def _root(x: Factor, quarters: int, root: Callable[[Factor], Factor]) -> list[Factor]:
    """The factors of x to the power `quarters` / 4, less than 1."""
    factors: list[Factor] = []
    half = root(x) if quarters else x
    if quarters >= 2:
        factors.append(half)
    if quarters % 2:
        factors.append(root(half))
    return factors
