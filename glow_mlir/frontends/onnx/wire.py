"""
The wire format of protobuf, as far as it takes to leave large tensors where they are.

Parsed whole, a model would be in memory three times: as the content of its file, as a message, and as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx

LEAST_LEFT = 1 << 16
"""Bytes of content from which on a tensor is left in the file."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Kinds of fields; the groups of old have others."""

_CONTENT = ("raw_data", "float_data", "double_data")
"""The fields of a tensor whose bytes are its elements, one after the other, with the lowest byte first."""

_Field = tuple[int, int, int, int]
"""A field: its number, where it begins, where its content begins if that is of bytes, else -1, and where it ends."""


def without_tensors(data: memoryview) -> bytes:
    """
    A serialized model in which large tensors are external data of a file without a name, which is the model itself.

    Raises `ValueError` for what is not the wire format.
    """
    return b"".join(_shortened(data, 0, len(data), onnx.ModelProto.DESCRIPTOR))


# Any: protobuf's descriptors have no types of their own.
def _shortened(data: memoryview, begin: int, end: int, kind: Any) -> list[bytes | memoryview]:
    """The pieces of a message, which lies from `begin` up to `end`, without the content of large tensors."""
    pieces: list[bytes | memoryview] = []
    copied = begin
    for number, start, content, after in _fields(data, begin, end):
        if content < 0 or after - content < LEAST_LEFT:
            continue  # Nothing large fits into it.
        inner: Any = getattr(kind.fields_by_number.get(number), "message_type", None)
        if inner is None:
            continue
        if inner is onnx.TensorProto.DESCRIPTOR:
            shorter = _without_content(data, content, after)
        else:
            shorter = _shortened(data, content, after, inner)
        length = sum(map(len, shorter))
        pieces += [data[copied:start], _varint(number << 3 | _BYTES), _varint(length), *shorter]
        copied = after
    return [*pieces, data[copied:end]]


def _without_content(data: memoryview, begin: int, end: int) -> list[bytes | memoryview]:
    """The pieces of a tensor, with a reference in place of its content where that is large and in one place."""
    names = {number: field.name for number, field in onnx.TensorProto.DESCRIPTOR.fields_by_number.items()}
    found = [field for field in _fields(data, begin, end) if names.get(field[0]) in _CONTENT]
    if len(found) != 1 or found[0][3] - found[0][2] < LEAST_LEFT:
        return [data[begin:end]]
    _, start, content, after = found[0]
    reference = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", ""), ("offset", content), ("length", after - content)):
        reference.external_data.add(key=key, value=str(value))
    return [data[begin:start], reference.SerializeToString(), data[after:end]]


def _fields(data: memoryview, position: int, end: int) -> Iterator[_Field]:
    """The fields of a message from `position` up to `end`; raises `ValueError` where it is cut off or damaged."""
    while position < end:
        start = position
        key, position = _read_varint(data, position, end)
        number, kind, content = key >> 3, key & 7, -1
        if kind == _VARINT:
            position = _read_varint(data, position, end)[1]
        elif kind == _BYTES:
            length, content = _read_varint(data, position, end)
            position = content + length
        elif kind in (_FIXED32, _FIXED64):
            position += 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"field {number} is of kind {kind}")
        if position > end:
            raise ValueError(f"field {number} is cut off")
        yield number, start, content, position


def _read_varint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("a number is cut off")


def _varint(value: int) -> bytes:
    """A number in as few bytes as it takes."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
