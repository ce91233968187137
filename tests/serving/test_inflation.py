"""Compressed bodies and messages: whole, cut, and with something behind them."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import pytest

from glow_mlir.errors import InputError
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.errors import BodyTooLargeError
from glow_mlir.serving.inflation import DEFLATE, GZIP, READ, inflated
from glow_mlir.serving.steps import finished

FORMATS: dict[int, Callable[[bytes], bytes]] = {GZIP: gzip.compress, DEFLATE: zlib.compress}
SIZES = (0, 7, READ - 30, 3 * READ)


def plain(data: bytes, format: int, most: int = 1 << 20) -> bytes:
    charge = Charge()
    found = finished(inflated(data, format, most, charge, "the request"))
    assert charge.size == len(found)
    return bytes(found)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", SIZES)
def test_streams_and_what_is_none(format: int, size: int) -> None:
    data = random.Random(size).randbytes(size)  # As long when it is compressed.
    whole = FORMATS[format](data)
    assert plain(whole, format) == data
    with pytest.raises(InputError, match="the stream is truncated"):
        plain(whole[:-1], format)
    for behind in (b"x", b"x" * READ, whole):
        with pytest.raises(InputError, match=f": {len(behind)} bytes follow the end of the compressed stream"):
            plain(whole + behind, format)
    with pytest.raises(InputError, match="cannot be decompressed: Error -"):
        plain(b"\xff" + whole, format)
    if size:
        with pytest.raises(BodyTooLargeError):
            plain(whole, format, size - 1)
