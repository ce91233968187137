"""
Features of sound as speech models read them: logarithms of energies in bands of the mel scale (Radford et al. 2022).

Bands are Slaney's: linear up to 1 kHz, logarithmic above, each triangle with the area 1.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from glow_mlir.support.dataclass import dataclass

RANGE = 8.0
"""The powers of ten below the largest energy that features show."""

FLOOR = 1e-10
"""The smallest energy."""

MAX_FREQUENCY = 8000.0
"""The upper end of the last band in Hz."""

LINEAR = 200 / 3
"""Hz per mel up to `KNEE`."""

KNEE = 1000.0
"""Where the scale becomes logarithmic, in Hz."""

STEP = np.log(6.4) / 27
"""The logarithm of the ratio of frequencies one mel apart, above `KNEE`."""


BLOCK = 2048
"""The frames that are computed together: spectra of all frames of an hour would take gigabytes."""


@dataclass(frozen=True)
class LogMel:
    """The form of features: `bins` bands, windows of `window` samples every `hop`, at `rate` samples a second."""

    bins: int
    rate: int = 16000
    window: int = 400
    hop: int = 160

    def features(self, sound: np.ndarray, frames: int) -> np.ndarray:
        """
        The features [frames, bins] of f32 of mono sound [samples], with silence behind it up to `frames` frames.

        What is behind these is left out.
        """
        count = frames * self.hop
        padded = np.zeros(count, np.float64)
        padded[: min(count, len(sound))] = sound[:count]
        around = np.pad(padded, self.window // 2, mode="reflect")
        windows = np.lib.stride_tricks.sliding_window_view(around, self.window)[:: self.hop][:frames]
        found = np.empty((frames, self.bins), np.float32)
        for begin in range(0, frames, BLOCK):
            spectrum = np.fft.rfft(windows[begin : begin + BLOCK] * self._hann)
            energies = (spectrum.real**2 + spectrum.imag**2) @ self.filters
            found[begin : begin + BLOCK] = np.log10(np.maximum(energies, FLOOR))
        return (np.maximum(found, found.max() - np.float32(RANGE)) + 4) / 4

    @cached_property
    def _hann(self) -> np.ndarray:
        return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.window) / self.window)

    @cached_property
    def filters(self) -> np.ndarray:
        """The share of each frequency of a spectrum in each band [frequencies, bins]."""
        edges = _hertz(np.linspace(0, _mels(np.array(MAX_FREQUENCY)), self.bins + 2))
        frequencies = np.linspace(0, self.rate / 2, self.window // 2 + 1)[:, None]
        low, middle, high = edges[:-2], edges[1:-1], edges[2:]
        rising, falling = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
        return np.maximum(0, np.minimum(rising, falling)) * (2 / (high - low))


def _mels(hertz: np.ndarray) -> np.ndarray:
    above = KNEE / LINEAR + np.log(np.maximum(hertz, KNEE) / KNEE) / STEP
    return np.where(hertz >= KNEE, above, hertz / LINEAR)


def _hertz(mels: np.ndarray) -> np.ndarray:
    knee = KNEE / LINEAR
    return np.where(mels >= knee, KNEE * np.exp(STEP * (mels - knee)), LINEAR * mels)
