"""How far numbers are from what they stand for: ratios of signal to noise."""

from __future__ import annotations

import math

import numpy as np

from glow_mlir.support.dataclass import dataclass


@dataclass
class Noise:
    """
    The power of a signal, and that of what differs from it, added up over arrays.

    NaN and infinities have no power: where they are equal there is no noise, else there is noise without bound.
    """

    signal: float = 0.0
    noise: float = 0.0

    def add(self, signal: np.ndarray, found: np.ndarray) -> None:
        """Add those of an array and of what is there instead."""
        wide, other = signal.astype(np.float64), found.astype(np.float64)
        finite = np.isfinite(wide)
        both = finite & np.isfinite(other)
        self.signal += float(np.square(wide[finite]).sum())
        self.noise += float(np.square(other[both] - wide[both]).sum())
        if not np.array_equal(wide[~both], other[~both], equal_nan=True):
            self.noise = math.inf

    @property
    def share(self) -> float:
        """The share that the amplitude of the noise is of that of the signal; 1 for noise where there is no signal."""
        if self.noise == math.inf:
            return math.inf
        return math.sqrt(self.noise / self.signal) if self.signal else float(self.noise > 0)

    @property
    def ratio(self) -> float:
        """The ratio of signal to noise in dB; infinite where there is none of one of them."""
        if self.noise == 0:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal and self.noise < math.inf else -math.inf


def decibels(share: float) -> float:
    """The ratio in dB of a signal to a noise whose amplitude is such a share of its own."""
    return -20 * math.log10(share) if share else math.inf


def signal_to_noise(signal: np.ndarray, found: np.ndarray) -> float:
    """The ratio in dB of an array to what differs from it."""
    noise = Noise()
    noise.add(signal, found)
    return noise.ratio
