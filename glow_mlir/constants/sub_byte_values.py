"""Sub-byte quantized values: unpacking from bytes, packing into bytes, and packing for kernels."""

from __future__ import annotations

import numpy as np

DOT_GROUP_BITS = 32
"""Bits of a dot group: the unit that a kernel reads of a column."""

DOT_GROUP_BYTES = DOT_GROUP_BITS // 8
"""Bytes of a dot group; neighbouring values are in different bytes."""


def unpack_sub_bytes(packed: np.ndarray, bits: int) -> np.ndarray:
    """Unpack u8 values from bytes `[…, n]`, the first of each byte in its lowest bits: `[…, n · 8 / bits]`."""
    if bits == 8:
        return packed
    quantized = (packed[..., np.newaxis] >> _shifts(bits)) & _mask(bits)
    return quantized.reshape(*packed.shape[:-1], packed.shape[-1] * (8 // bits))


def pack_sub_bytes(quantized: np.ndarray, bits: int) -> np.ndarray:
    """Pack u8 values into bytes, the inverse of `unpack_sub_bytes`; the last byte is zero-padded."""
    if bits == 8:
        return quantized
    count = 8 // bits
    missing = -quantized.shape[-1] % count
    whole = np.pad(quantized, [(0, 0)] * (quantized.ndim - 1) + [(0, missing)])
    parts = whole.reshape(*quantized.shape[:-1], whole.shape[-1] // count, count)
    return np.bitwise_or.reduce(parts << _shifts(bits), axis=-1)


def pack_dot_groups(packed: np.ndarray, bits: int, panel: int) -> np.ndarray:
    """
    Pack quantized weights `[N, bytes]` in panels of dot groups: `[ceil(N / panel), K · bits / 32, panel, 4]` of u8.

    A dot group has neighbouring values of one column. Half of the range is subtracted, which makes them signed; padding
    columns are 0. The first four values are in the lowest bits of its bytes, the next four in the bits above: each
    shift yields the bytes of a dot product. Raises `ValueError` if the values of a column do not fill whole dot groups.
    """
    columns, in_bytes = packed.shape
    if in_bytes % DOT_GROUP_BYTES:
        raise ValueError(f"{in_bytes} bytes of quantized values are no whole cells of {DOT_GROUP_BYTES}")
    fields = _signed(unpack_sub_bytes(packed, bits), bits).reshape(columns, -1, 8 // bits, DOT_GROUP_BYTES)
    panels, dot_groups = -(-columns // panel), in_bytes // DOT_GROUP_BYTES
    whole = np.zeros((panels * panel, dot_groups, DOT_GROUP_BYTES), np.uint8)
    whole[:columns] = np.bitwise_or.reduce(fields << _shifts(bits)[:, np.newaxis], axis=2)
    return np.ascontiguousarray(whole.reshape(panels, panel, dot_groups, DOT_GROUP_BYTES).swapaxes(1, 2))


def unpack_dot_groups(packed: np.ndarray, bits: int, columns: int) -> np.ndarray:
    """Unpack dot groups to the bytes `[N, bytes]` given to `pack_dot_groups`."""
    panels, dot_groups, panel, _ = packed.shape
    whole = packed.swapaxes(1, 2).reshape(panels * panel, dot_groups, 1, DOT_GROUP_BYTES)[:columns]
    fields = (whole >> _shifts(bits)[:, np.newaxis]) & _mask(bits)
    return pack_sub_bytes(_signed(fields, bits).reshape(columns, -1), bits)


def _signed(quantized: np.ndarray, bits: int) -> np.ndarray:
    """Subtract half of the range, in as many bits; its own inverse."""
    return (quantized - np.uint8(1 << bits - 1)) & _mask(bits)


def _mask(bits: int) -> np.uint8:
    """The bit mask of a value."""
    return np.uint8((1 << bits) - 1)


def _shifts(bits: int) -> np.ndarray:
    """The bit positions of the values in a byte."""
    return np.arange(0, 8, bits, dtype=np.uint8)
