"""Quantization noise: signal-to-noise ratios."""

from __future__ import annotations

import math

import numpy as np

from glow_mlir.support.dataclass import dataclass


@dataclass
class Noise:
    """
    The power of a signal and of its error, accumulated over arrays.

    NaN and infinities have no power: if signal and approximation agree there, there is no noise, else it is unbounded.
    """

    signal: float = 0.0
    noise: float = 0.0

    def add(self, signal: np.ndarray, found: np.ndarray) -> None:
        """Accumulate signal and error of one tensor."""
        wide, other = signal.astype(np.float64), found.astype(np.float64)
        finite = np.isfinite(wide)
        both = finite & np.isfinite(other)
        self.signal += float(np.square(wide[finite]).sum())
        self.noise += float(np.square(other[both] - wide[both]).sum())
        if not np.array_equal(wide[~both], other[~both], equal_nan=True):
            self.noise = math.inf

    @property
    def share(self) -> float:
        """The noise amplitude relative to the signal amplitude; 1 for noise without signal."""
        if self.noise == math.inf:
            return math.inf
        return math.sqrt(self.noise / self.signal) if self.signal else float(self.noise > 0)

    @property
    def ratio(self) -> float:
        """The signal-to-noise ratio in dB; plus or minus infinity if noise or signal is zero."""
        if self.noise == 0:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal and self.noise < math.inf else -math.inf


def decibels(share: float) -> float:
    """Convert a relative noise amplitude to a signal-to-noise ratio in dB."""
    return -20 * math.log10(share) if share else math.inf


def signal_to_noise(signal: np.ndarray, found: np.ndarray) -> float:
    """The signal-to-noise ratio in dB of an approximated array."""
    noise = Noise()
    noise.add(signal, found)
    return noise.ratio
