"""
Calibration: choose the quantized range from a histogram of numbers.

A narrower range resolves the many numbers in the middle more finely, and clips the few at its ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glow_mlir.quantization.histogram import Histogram
from glow_mlir.quantization.schemas import Uniform, uniform_of

KEPT = 0.9999
"""Share of the numbers that percentile calibration keeps."""

STEPS = 128
"""Number of ranges tried in a search."""

_UNLIKELY = 1e-4
"""Share of a bin assumed where a distribution has none; as in onnxruntime and MXNet."""

Score = Callable[[Histogram, np.ndarray, Uniform], float]
"""Loss of quantization parameters for a histogram whose bins have these centers; less is better."""


def calibrated(histogram: Histogram, calibration: str, schema: str, bits: int) -> Uniform:
    """The quantization parameters for a nonempty histogram by one of `options.CALIBRATIONS`."""
    return _CALIBRATIONS[calibration](histogram, schema, bits)


def _min_max(histogram: Histogram, schema: str, bits: int) -> Uniform:
    """The range of all numbers."""
    return uniform_of(schema, bits, histogram.low, histogram.high)


def _percentile(histogram: Histogram, schema: str, bits: int) -> Uniform:
    """The range without an equal share of the smallest and of the largest numbers, in whole bins (arXiv 2004.09602)."""
    shares = histogram.counts.cumsum() / histogram.total
    tail = (1 - KEPT) / 2
    ends = np.searchsorted(shares, [tail, 1 - tail], side="right").clip(max=histogram.bins - 1)
    below, above = np.ldexp(histogram.first + ends + (0, 1), histogram.exponent)
    return uniform_of(schema, bits, max(float(below), histogram.low), min(float(above), histogram.high))


def _searched(score: Score) -> Callable[[Histogram, str, int], Uniform]:
    """The best of `STEPS` evenly spaced magnitude limits; the widest on ties."""

    def best(histogram: Histogram, schema: str, bits: int) -> Uniform:
        centers = histogram.centers()
        low, high = histogram.low, histogram.high
        limits = [max(-low, high) * step / STEPS for step in range(STEPS, 0, -1)]
        found = [uniform_of(schema, bits, max(low, -limit), min(high, limit)) for limit in limits]
        return min(found, key=lambda uniform: score(histogram, centers, uniform))

    return best


def mean_squared_error(histogram: Histogram, centers: np.ndarray, uniform: Uniform) -> float:
    """The mean squared quantization error."""
    distances = uniform.dequantize(uniform.quantize(centers)) - centers
    return float((histogram.counts * distances**2).sum() / histogram.total)


def divergence(histogram: Histogram, centers: np.ndarray, uniform: Uniform) -> float:
    """
    The Kullback-Leibler divergence of the quantized numbers from the original ones, in nats.

    TensorRT's calibration (Migacz, "8-bit inference with TensorRT", GTC 2017) and Glow's KLMinimization, for any
    schema: clipped numbers count at the ends of the reference range, and not at all in the quantized distribution; the
    numbers of one quantized value are spread over its nonempty bins. The bin of 0, which is exact under any scale,
    counts no more than its neighbours: behind a ReLU it would outweigh all others.
    """
    ends = uniform.dequantize(np.array([uniform.least - 0.5, uniform.most + 0.5]))
    inside = np.flatnonzero((centers >= ends[0]) & (centers <= ends[1]))
    if not inside.size:
        return np.inf
    counts = histogram.counts[inside].astype(np.float64)
    zero = int(np.abs(centers[inside]).argmin())
    neighbours = [counts[position] for position in (zero - 1, zero + 1) if 0 <= position < inside.size]
    counts[zero] = min(counts[zero], max(neighbours, default=counts[zero]))
    reference = counts.copy()
    reference[0] += histogram.counts[: inside[0]].sum()
    reference[-1] += histogram.counts[inside[-1] + 1 :].sum()
    _, groups = np.unique(uniform.quantize(centers[inside]), return_inverse=True)
    members = np.bincount(groups, counts > 0)[groups]
    spread = np.where(counts > 0, np.bincount(groups, counts)[groups] / np.maximum(members, 1), 0.0)
    return _divergence(reference, spread)


def _divergence(reference: np.ndarray, other: np.ndarray) -> float:
    """The Kullback-Leibler divergence of two distributions, given as counts."""
    seen = reference > 0
    expected = reference[seen] / reference.sum()
    found = np.maximum(other[seen] / max(other.sum(), 1.0), _UNLIKELY / reference.size)
    return float((expected * np.log(expected / found)).sum())


_CALIBRATIONS: dict[str, Callable[[Histogram, str, int], Uniform]] = {
    "min-max": _min_max,
    "percentile": _percentile,
    "kl": _searched(divergence),
    "mse": _searched(mean_squared_error),
}
"""Calibration → function of a histogram, a schema and a number of bits."""
