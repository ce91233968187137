"""Strings in the protocol's encoding: UTF-8, each prefixed by its length in four bytes, little endian."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from glow_mlir.serving.charges import Charge
from glow_mlir.serving.steps import Steps

LENGTH_BYTES = 4
"""The bytes of a length prefix."""

STRINGS_A_STEP = 1 << 11

STRING_BYTES = 128
"""The maximum overhead of a string in bytes, including its slots in lists and arrays."""

SHORT_BYTES = 1 << 10
"""The maximum size of a string that is decoded before its memory is charged exactly."""

TWO_BYTES, FOUR_BYTES = 0xC4, 0xF0
"""The first UTF-8 bytes of characters that take two and four bytes in a Python string."""

Bytes = bytes | bytearray | memoryview

STRING_KINDS = frozenset("OSTU")
"""The kinds of numpy dtypes that hold strings."""


def text(data: Bytes, charge: Charge) -> str:
    """
    Decode UTF-8; one byte per byte is already charged, and the rest is charged before it is allocated.

    All characters of a Python string take as many bytes as the widest. Raises `UnicodeDecodeError` and `OverloadError`.
    """
    size = len(data)
    if size <= SHORT_BYTES:
        found = str(data, "utf-8")
        if not found.isascii():
            charge.add(max(0, found.__sizeof__() - size))
        return found
    widest = int(np.frombuffer(data, np.uint8).max())
    if widest >= TWO_BYTES:
        charge.add(size if widest < FOUR_BYTES else 3 * size)
    return str(data, "utf-8")


def unpacked(data: memoryview, count: int, charge: Charge) -> Steps[list[str]]:
    """
    Decode `count` strings that fill the bytes; `charge` accounts for memory beyond the bytes.

    Raises `ValueError` for malformed data or invalid UTF-8, and `OverloadError`.
    """
    found: list[str] = []
    begin, whole = 0, len(data)
    for number in range(1, count + 1):
        if not number % STRINGS_A_STEP:
            yield
        head = data[begin : begin + LENGTH_BYTES]
        begin += LENGTH_BYTES
        end = begin + int.from_bytes(head, "little")
        if end > whole or len(head) < LENGTH_BYTES:
            raise ValueError("the data end within a string")
        found.append(text(data[begin:end], charge))
        begin = end
    if begin != whole:
        raise ValueError(f"{whole - begin} bytes are left")
    return found


def packed(strings: Iterable[bytes]) -> bytes:
    """Length-prefixed strings."""
    parts: list[bytes] = []
    for item in strings:
        parts += (len(item).to_bytes(LENGTH_BYTES, "little"), item)
    return b"".join(parts)


def packed_parts(strings: list[Any]) -> Steps[list[bytes]]:
    """Length-prefixed strings, in parts."""
    parts: list[bytes] = []
    for begin in range(0, max(1, len(strings)), STRINGS_A_STEP):
        if begin:
            yield
        part = strings[begin : begin + STRINGS_A_STEP]
        parts.append(packed(item if isinstance(item, bytes) else str(item).encode() for item in part))
    return parts


def string_array(strings: list[str]) -> np.ndarray:
    """Strings as a one-dimensional array of Python objects."""
    found = np.empty(len(strings), object)
    found[:] = strings
    return found


def encoded(array: np.ndarray) -> list[bytes]:
    """The strings of an array in C order, encoded in UTF-8; byte strings are taken unchanged."""
    items: list[Any] = array.reshape(-1).tolist()
    return [item if isinstance(item, bytes) else str(item).encode() for item in items]


def decoded(array: np.ndarray) -> Steps[list[str]]:
    """The strings of an array in C order; raises `UnicodeDecodeError` for bytes that are not UTF-8."""
    items: list[Any] = array.reshape(-1).tolist()
    found: list[str] = []
    for begin in range(0, len(items), STRINGS_A_STEP):
        if begin:
            yield
        part = items[begin : begin + STRINGS_A_STEP]
        found += [item.decode() if isinstance(item, bytes) else str(item) for item in part]
    return found
