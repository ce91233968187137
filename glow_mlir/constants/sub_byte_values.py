"""Narrow values in bytes, most of them quantized: unpacking, packing, and packing for kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

DOT_GROUP_BITS = 32
"""Bits of a dot group: the unit that a kernel reads of a column."""

DOT_GROUP_BYTES = DOT_GROUP_BITS // 8
"""Bytes of a dot group; neighbouring values are in different bytes."""


_WORD = np.dtype("<u4")
"""A dot group as a word: its first byte has the lowest bits."""

_HALF = 16
"""Bits of a value that is no byte or part of one; its first byte has the lowest bits."""

_EXCHANGES: Mapping[int, Sequence[tuple[int, int]]] = {16: (), 8: (), 4: ((2, 1), (1, 0)), 2: ((3, 1), (2, 0))}
"""
Bits of a value → the bits of its number in a dot group to exchange, pair by pair: the lowest two of the number, which
say the byte in a packed dot group, become the highest two.
"""

_SIGNS: Mapping[int, np.uint32] = {
    _HALF: np.uint32(0),
    **{bits: np.uint32(sum(1 << i for i in range(bits - 1, 32, bits))) for bits in (1, 2, 4, 8)},
}
"""Bits of a value → the highest bit of each: flipping it subtracts half of the range. Floats of 16 bits keep theirs."""


CACHED_BYTES = 1 << 18
"""Bytes of values that are packed together, so few that they stay in a second-level cache."""

_PLANES: Mapping[int, Sequence[int]] = {5: (4, 1), 6: (4, 2)}
"""Bits of a value that is stored in several planes → the bits in each plane, the lowest bits first."""

_ONES = 0x01010101
"""Four bytes of 1."""


def planes_of(bits: int) -> Sequence[int]:
    """The bits of values in each of their planes, the lowest ones first; values of most widths have one plane."""
    return _PLANES.get(bits, (bits,))


def unit_values(bits: int) -> int:
    """How many neighbouring values of a column have whole dot groups in each plane."""
    return DOT_GROUP_BITS // min(planes_of(bits))


_NIBBLE = np.uint32(4)
"""Bits of a nibble."""

_LOW_NIBBLES = np.uint32(0x0F0F0F0F)
"""The low halves of the bytes of a word."""


def unpack_sub_bytes(packed: np.ndarray, bits: int) -> np.ndarray:
    """
    Unpack u8 values from bytes `[…, n]`, the first of each byte in its lowest bits: `[…, n · 8 / bits]`; u16 for 16.

    Of 5 and 6 bits, the lowest four of all values are in front of the others.
    """
    if bits in _PLANES:
        begin = packed.shape[-1] * _PLANES[bits][0] // bits
        parts = packed[..., :begin], packed[..., begin:]
        low, high = (unpack_sub_bytes(part, plane) for part, plane in zip(parts, _PLANES[bits], strict=True))
        return low | high << np.uint8(_PLANES[bits][0])
    if bits == 8:
        return packed
    if bits == _HALF:
        return np.ascontiguousarray(packed).view("<u2")
    count, mask = 8 // bits, _mask(bits)
    quantized = np.empty((*packed.shape, count), np.uint8)
    for number in range(count):
        np.bitwise_and(packed >> np.uint8(number * bits), mask, out=quantized[..., number])
    return quantized.reshape(*packed.shape[:-1], packed.shape[-1] * count)


def pack_sub_bytes(quantized: np.ndarray, bits: int) -> np.ndarray:
    """
    Pack u8 or u16 values into bytes, the inverse of `unpack_sub_bytes`; the last byte is zero-padded.

    Rows of values of 5 or 6 bits have a multiple of 8.
    """
    if bits in _PLANES:
        low, high = _PLANES[bits]
        parts = quantized & _mask(low), quantized >> np.uint8(low)
        return np.concatenate([pack_sub_bytes(parts[0], low), pack_sub_bytes(parts[1], high)], axis=-1)
    if bits == 8:
        return quantized
    if bits == _HALF:
        return np.ascontiguousarray(quantized).view(np.uint8)
    count = 8 // bits
    packed = quantized[..., ::count].copy()
    for number in range(1, count):
        own = quantized[..., number::count]
        packed[..., : own.shape[-1]] |= own << np.uint8(number * bits)
    return packed


def pack_dot_groups(packed: np.ndarray, bits: int, panel: int) -> np.ndarray:
    """
    Pack quantized weights `[N, bytes]` in panels of dot groups: `[ceil(N / panel), K · bits / 32, panel, 4]` of u8.

    A dot group has neighbouring values of one column. Half of the range is subtracted, which makes them signed; padding
    columns are 0. The first four values are in the lowest bits of its bytes, the next four in the bits above: each
    shift yields the bytes of a dot product. Values of 16 bits stay as they are; the first ones of all columns are in
    front of the second ones. Of values of 5 and 6 bits, `unit_values` together have dot groups of the lowest four bits,
    then one of the others. Raises `ValueError` if the values of a column do not fill whole dot groups.
    """
    columns, in_bytes = packed.shape
    if in_bytes % (unit_values(bits) * bits // 8):
        raise ValueError(f"{in_bytes} bytes of quantized values are not whole dot groups of {DOT_GROUP_BYTES}")
    if bits in _PLANES:
        values = np.full((-(-columns // panel) * panel, in_bytes * 8 // bits), 1 << bits - 1, np.uint8)
        values[:columns] = unpack_sub_bytes(packed, bits)
        in_panels = np.empty((len(values) // panel, in_bytes // DOT_GROUP_BYTES, panel, DOT_GROUP_BYTES), np.uint8)
        pack_planes(values, bits, in_panels)
        return in_panels
    panels, dot_groups = -(-columns // panel), in_bytes // DOT_GROUP_BYTES
    found = np.zeros((panels, dot_groups, panel), _WORD)
    words = np.ascontiguousarray(packed).view(_WORD)
    step = max(1, CACHED_BYTES // max(panel * in_bytes, 1))
    for begin in range(0, panels, step):
        own = _exchanged(words[begin * panel : (begin + step) * panel] ^ _SIGNS[bits], bits, _EXCHANGES[bits])
        whole, rest = divmod(len(own), panel)
        target = found[begin : begin + step]
        target[:whole] = own[: whole * panel].reshape(whole, panel, dot_groups).swapaxes(1, 2)
        if rest:
            target[whole, :, :rest] = own[whole * panel :].T
    if bits == _HALF:
        return _halves(found, DOT_GROUP_BYTES // 2).reshape(panels, dot_groups, panel, DOT_GROUP_BYTES)
    return found.view(np.uint8).reshape(panels, dot_groups, panel, DOT_GROUP_BYTES)


def pack_split_nibbles(nibbles: np.ndarray, packed: np.ndarray) -> None:
    """
    Pack nibbles `[N, runs, n]` of u8, the low halves of a run's bytes before its high ones, as `pack_dot_groups` does.

    `packed` are the dot groups of N / panel whole panels; n is a multiple of 8, and the bytes of a run are adjacent.
    """
    _, runs, length = nibbles.shape
    panels, _, panel, _ = packed.shape
    words = nibbles.view(_WORD).reshape(panels, panel, runs, length // 8, 2).transpose(0, 2, 4, 3, 1)
    found = packed.view(_WORD).reshape(panels, runs, 2, -1, panel)
    found.reshape(words.shape)[...] = words
    found ^= _SIGNS[4]
    # Of two words, the low halves are one dot group, and the high halves another one.
    first, second = found[:, :, 0], found[:, :, 1]
    different = first >> _NIBBLE
    different ^= second
    different &= _LOW_NIBBLES
    second ^= different
    different <<= _NIBBLE
    first ^= different


def pack_planes(values: np.ndarray, bits: int, packed: np.ndarray) -> None:
    """
    Pack unsigned values `[N, K]` of u8, of 5 or 6 bits, as `pack_dot_groups` does.

    `packed` are the dot groups of N / panel whole panels.
    """
    panels, _, panel, _ = packed.shape
    quads = unit_values(bits) // DOT_GROUP_BYTES
    words = np.ascontiguousarray(values.view(_WORD).reshape(panels, panel, -1, quads).transpose(0, 2, 3, 1))
    found = packed.view(_WORD).reshape(*words.shape[:2], -1, panel)
    place = below = 0
    for plane in _PLANES[bits]:
        own = words >> np.uint32(below) if below else words
        own = own & np.uint32(_ONES * int(_mask(plane)))
        count = quads * plane // 8
        part = found[:, :, place : place + count]
        part[...] = own[:, :, :: 8 // plane]
        for number in range(1, 8 // plane):
            part |= own[:, :, number :: 8 // plane] << np.uint32(plane * number)
        if below:
            part ^= _SIGNS[plane]
        place, below = place + count, below + plane


def _unpack_planes(packed: np.ndarray, bits: int) -> np.ndarray:
    """Unpack the values given to `pack_planes`."""
    panels, _, panel, _ = packed.shape
    quads = unit_values(bits) // DOT_GROUP_BYTES
    words = np.ascontiguousarray(packed).view(_WORD).reshape(panels, -1, quads * bits // 8, panel)
    found = np.zeros((panels, panel, words.shape[1], quads), _WORD)
    place = below = 0
    for plane in _PLANES[bits]:
        for quad in range(quads):
            number, field = divmod(quad, 8 // plane)
            word = words[:, :, place + number].swapaxes(1, 2) ^ (_SIGNS[plane] if below else np.uint32(0))
            found[..., quad] |= (word >> np.uint32(plane * field) & np.uint32(_ONES * int(_mask(plane)))) << np.uint32(
                below
            )
        place, below = place + quads * plane // 8, below + plane
    return found.view(np.uint8).reshape(panels * panel, -1)


def unpack_dot_groups(packed: np.ndarray, bits: int, columns: int) -> np.ndarray:
    """Unpack dot groups to the bytes `[N, bytes]` given to `pack_dot_groups`."""
    if bits in _PLANES:
        return pack_sub_bytes(_unpack_planes(packed, bits)[:columns], bits)
    panels, dot_groups, panel, _ = packed.shape
    if bits == _HALF:
        packed = _halves(packed, panel)
    words = np.ascontiguousarray(packed).reshape(-1).view(_WORD).reshape(panels, dot_groups, panel)
    whole = np.array(words.swapaxes(1, 2), order="C").reshape(panels * panel, dot_groups)[:columns]
    return (_exchanged(whole, bits, _EXCHANGES[bits][::-1]) ^ _SIGNS[bits]).view(np.uint8)


def _halves(packed: np.ndarray, run: int) -> np.ndarray:
    """Exchange the axes of the halves of dot groups, `[dot groups, halves / run, run]`; returns bytes."""
    halves = np.ascontiguousarray(packed).view("<u2").reshape(*packed.shape[:2], -1, run)
    return np.ascontiguousarray(halves.swapaxes(2, 3)).view(np.uint8)


def _exchanged(words: np.ndarray, bits: int, exchanges: Sequence[tuple[int, int]]) -> np.ndarray:
    """Move the values in words, in place, by exchanging bits of their numbers (Knuth's delta swaps, TAOCP 7.1.3)."""
    different = np.empty_like(words)
    for high, low in exchanges:
        distance = np.uint32(((1 << high) - (1 << low)) * bits)
        moved = [i for i in range(DOT_GROUP_BITS // bits) if i >> low & 1 and not i >> high & 1]
        np.right_shift(words, distance, out=different)
        different ^= words
        different &= np.uint32(sum((1 << bits) - 1 << i * bits for i in moved))
        words ^= different
        different <<= distance
        words ^= different
    return words


def _mask(bits: int) -> np.uint8:
    """The bit mask of a value."""
    return np.uint8((1 << bits) - 1)
