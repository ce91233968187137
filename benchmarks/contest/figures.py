"""From times to figures: spreads, ratios, the best peer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """The quartiles of some numbers."""

    low: float
    middle: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """First quartile, median and third quartile, between neighbours where they fall there."""
    low, middle, high = (float(value) for value in np.quantile(values, (0.25, 0.5, 0.75)))
    return Spread(low, middle, high)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Their time over ours in each round in which they were timed, the first ones: above 1, we are faster."""
    return [peer / own for own, peer in zip(ours[: len(theirs)], theirs, strict=True)]


@dataclass(frozen=True)
class Comparison:
    """The peer that is fastest, and how its times compare with ours."""

    peer: str
    ratio: Spread


def best_peer(ours: Sequence[float], peers: Mapping[str, Sequence[float]]) -> Comparison | None:
    """
    The comparison with the peer whose median ratio is the smallest; None without peers.

    One peer for all rounds: to take the fastest of each round would take the luckiest.
    """
    compared = [Comparison(name, spread(ratios(ours, times))) for name, times in peers.items()]
    return min(compared, key=lambda comparison: comparison.ratio.middle, default=None)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean, as fits ratios."""
    return float(np.exp(np.mean(np.log(values))))


def difference(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> float:
    """
    The largest difference of outputs, each in units of the largest magnitude wanted there; shapes may differ by ones.

    Not finite where an output is not. Raises `ValueError` where number or sizes differ.
    """
    worst = 0.0
    for mine, other in zip(found, wanted, strict=True):
        if mine.size != other.size:
            raise ValueError(f"outputs of {mine.size} elements where there should be {other.size}")
        scale = float(np.abs(other).max(initial=0.0)) or 1.0
        gap = float(np.abs(mine.astype(np.float64).reshape(-1) - other.reshape(-1)).max(initial=0.0)) / scale
        worst = float(np.maximum(worst, gap))  # What is not a number stays.
    return worst


def calls_within(budget: float, seconds: float, most: int = 50) -> int:
    """
    How many calls to time in a round: what fits into `budget` seconds, at least three and no more than `most`.

    Those that take longer than the budget by far, by a factor of four, are called once.
    """
    if seconds > 4 * budget:
        return 1
    return max(3, min(most, int(budget / seconds)))
