"""Decompress bodies and messages piece by piece within limits."""

from __future__ import annotations

import zlib

from glow_mlir.errors import InputError
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.errors import BodyTooLargeError
from glow_mlir.serving.steps import Steps

GZIP, DEFLATE = zlib.MAX_WBITS + 16, zlib.MAX_WBITS
"""The window bits of `zlib` for each format."""

READ, WRITTEN = 1 << 14, 1 << 18
"""The number of bytes of a step: at most this many are read, and produced."""


def inflated(data: bytes | bytearray, format: int, most: int, charge: Charge, what: str) -> Steps[bytearray]:
    """
    Decompress data; the result is charged before it is allocated.

    Raises `InputError` for an incomplete stream, `BodyTooLargeError` for more bytes than `most`, and `OverloadError`.
    """
    inflater, found = zlib.decompressobj(format), bytearray()
    for begin in range(0, len(data), READ):
        if inflater.eof:
            raise _behind(what, len(data) - begin)
        part = bytes(data[begin : begin + READ])
        while True:
            capacity = min(WRITTEN, most + 1 - len(found))
            charge.add(capacity)
            try:
                piece = inflater.decompress(part, capacity)
            except zlib.error as error:
                raise InputError(f"{what} cannot be decompressed: {error}") from None
            found += piece
            charge.give_back(capacity - len(piece))
            if len(found) > most:
                raise BodyTooLargeError(f"{what} decompresses to more than {most} bytes")
            yield
            part = inflater.unconsumed_tail
            if not part and len(piece) < capacity:
                break
        if inflater.unused_data:
            raise _behind(what, len(inflater.unused_data) + max(0, len(data) - begin - READ))
    if not inflater.eof:
        raise InputError(f"{what} cannot be decompressed: the stream is truncated")
    return found


def _behind(what: str, size: int) -> InputError:
    """The error for data after the end of a stream, possibly another stream."""
    reason = f"{what} cannot be decompressed: {size} bytes follow the end of the compressed stream"
    return InputError(reason, hint="compress all of it at once")
