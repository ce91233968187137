"""Numbers in protobuf's packed encodings: fixed-size, and varints of seven bits per byte."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.serving.steps import PIECE

LONGEST = 10
"""The maximum bytes of a varint."""

MORE = 0x80
"""The continuation bit of a byte."""


def unpacked_varints(data: np.ndarray) -> np.ndarray:
    """Decode complete varints to 64-bit numbers; raises `InputError` for one that is too long."""
    ends = np.flatnonzero(data < MORE)
    if len(ends) == len(data):
        return data.astype(np.uint64)
    starts = np.empty_like(ends)
    starts[:1] = 0
    starts[1:] = ends[:-1] + 1
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > LONGEST:
        raise InputError("the request is not a valid message: a number is not terminated")
    found = np.zeros(len(ends), np.uint64)
    for position in range(longest):
        at = np.flatnonzero(lengths > position)
        found[at] |= (data[starts[at] + position] & np.uint8(MORE - 1)).astype(np.uint64) << np.uint64(7 * position)
    return found


def varint_pieces(data: np.ndarray) -> Iterator[np.ndarray]:
    """Yield all varints in bytes, in pieces that take little time; raises `InputError` for an unterminated one."""
    begin = 0
    while begin < len(data):
        piece = data[begin : begin + PIECE]
        if begin + PIECE < len(data):
            ends = np.flatnonzero(piece[-LONGEST:] < MORE)
            piece = piece[: len(piece) - LONGEST + int(ends[-1]) + 1] if len(ends) else piece[:0]
        if not len(piece) or piece[-1] >= MORE:
            raise InputError("the request is not a valid message: a number is not terminated")
        yield unpacked_varints(piece)
        begin += len(piece)


def packed_varints(numbers: np.ndarray) -> np.ndarray:
    """The varint encoding of numbers of at most 64 bits; negative ones are encoded as 64 bits."""
    values = numbers.astype(np.int64).view(np.uint64) if numbers.dtype.kind == "i" else numbers.astype(np.uint64)
    if not len(values) or values.max() < MORE:
        return values.astype(np.uint8)
    lengths = np.ones(len(values), np.int64)
    for position in range(1, LONGEST):
        lengths += values >= np.uint64(1 << 7 * position)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    found = np.empty(int(ends[-1]), np.uint8)
    for position in range(int(lengths.max())):
        at = np.flatnonzero(lengths > position)
        digits = (values[at] >> np.uint64(7 * position)).astype(np.uint8) & np.uint8(MORE - 1)
        found[starts[at] + position] = digits | np.where(lengths[at] > position + 1, np.uint8(MORE), np.uint8(0))
    return found
