"""Laws of service times of devices, in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass

BLOCK = 1024
"""The number of random numbers drawn at once."""

Service = Callable[[int], float]
"""Rows of a call → seconds."""


@dataclass(frozen=True)
class Fixed:
    """The same seconds for each call, regardless of its rows."""

    seconds: float


@dataclass(frozen=True)
class Affine:
    """`fixed + per_row · n` seconds for a call of `n` rows: overhead plus work."""

    fixed: float
    per_row: float


@dataclass(frozen=True)
class Measured:
    """One of several measured values, drawn uniformly, plus `per_row · n` seconds for `n` rows."""

    samples: tuple[float, ...]
    per_row: float = 0.0


@dataclass(frozen=True)
class Exponential:
    """Exponentially distributed seconds with a mean, regardless of rows: the M of queueing theory."""

    mean: float


Law = Fixed | Affine | Measured | Exponential


def check_law(law: Law, where: str) -> None:
    """Raise `OptionError` for seconds that are negative or not finite, and for empty measurements."""
    match law:
        case Fixed(seconds):
            found = [seconds]
        case Affine(fixed, per_row):
            found = [fixed, per_row]
        case Measured(samples, per_row):
            found = [*samples, per_row] if samples else []
        case Exponential(mean):
            found = [mean]
    if not found:
        raise OptionError(f"{where} has no measured seconds", hint="give at least one")
    if not all(0.0 <= seconds < float("inf") for seconds in found):
        raise OptionError(f"{where} takes {min(found)} seconds", hint="seconds are finite, and 0 at least")


def service_of(law: Law, random: np.random.Generator) -> Service:
    """Yield the seconds of successive calls by a law, with random numbers from a generator."""
    match law:
        case Fixed(seconds):
            return lambda rows: seconds
        case Affine(fixed, per_row):
            return lambda rows: fixed + per_row * rows
        case Measured(samples, per_row):
            known = np.array(samples, np.float64)
            following = _drawn(lambda: known[random.integers(len(known), size=BLOCK)]).__next__
            return lambda rows: following() + per_row * rows
        case Exponential(mean):
            following = _drawn(lambda: random.exponential(mean, BLOCK)).__next__
            return lambda rows: following()


def _drawn(block: Callable[[], np.ndarray]) -> Iterator[float]:
    """Yield the numbers of successive blocks."""
    while True:
        yield from block().tolist()
