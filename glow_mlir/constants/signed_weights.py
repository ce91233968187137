"""Unsigned weights as signed ones, which instructions for products of bytes multiply."""

from __future__ import annotations

import numpy as np


def signed_weights(weights: np.ndarray, zero: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Weights of u8 or i8 and their zero points, which broadcast, as weights of i8 and zero points of i32.

    Differences between weights and zero points stay the same. Zero points are 0 where all differences fit into i8;
    otherwise both are shifted by 128 if the weights are unsigned.
    """
    limits, offset = np.iinfo(np.int8), zero.astype(np.int32)
    if offset.any() or weights.dtype != np.int8:
        less = weights.astype(np.int16) - offset.astype(np.int16)
        if less.size == 0 or (less.min() >= limits.min and less.max() <= limits.max):
            return less.astype(np.int8), np.zeros_like(offset)
    if weights.dtype == np.int8:
        return weights, offset
    return (weights ^ np.uint8(128)).view(np.int8), offset - 128
