"""
The wire format of protobuf, as far as it takes to leave large tensors where they are.

Parsed whole, a model would be in memory three times: as the content of its file, as a message, and as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx

MIN_LEFT = 1 << 16
"""Bytes of content from which on a tensor is left in the file."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Kinds of fields; the groups of old have others."""

INSIDE = "\0"
"""The location of a tensor that is left in the file of its model; no file has this name."""

MAX_NESTED = 100
"""How deep messages lie in one another at most; protobuf reads none that are deeper."""

_LONGEST, _LONGEST_KEY = 10, 5
"""Bytes of a number, and of a number with the kind of a field, at most."""

_CONTENT = {
    "raw_data": (None, 1),
    "float_data": (onnx.TensorProto.FLOAT, 4),
    "double_data": (onnx.TensorProto.DOUBLE, 8),
}
"""Fields whose bytes are elements, one after the other, lowest byte first → of which type, if not of any; its bytes."""

_LIST_ENDS = frozenset(
    bytes([0xA0, 0x01, kind])
    for kind in (onnx.AttributeProto.FLOATS, onnx.AttributeProto.INTS, onnx.AttributeProto.STRINGS)
)
"""
The last bytes of an attribute that is a list of numbers or words, as writers order its fields: its type.

It has no tensor, and may have more fields than there is time to look at. Should another one end so, it stays whole.
"""

_Field = tuple[int, int, int, int]
"""A field: its number, where it begins, where its content begins if that is of bytes, else -1, and where it ends."""


def without_tensors(data: memoryview) -> bytes:
    """
    A serialized model in which large tensors are external data at the location `INSIDE`, which is the model itself.

    Raises `ValueError` or `DecodeError` for what is not the wire format.
    """
    return b"".join(_shortened(data, 0, len(data), onnx.ModelProto.DESCRIPTOR, MAX_NESTED))


# Any: protobuf's descriptors have no types of their own.
def _shortened(data: memoryview, begin: int, end: int, kind: Any, deeper: int) -> list[bytes | memoryview]:
    """
    The pieces of a message, which lies from `begin` up to `end`, without the content of large tensors.

    `deeper` says how deep other messages may lie in it.
    """
    if not deeper:
        raise ValueError(f"messages are nested deeper than {MAX_NESTED}")
    pieces: list[bytes | memoryview] = []
    copied = begin
    for number, start, content, after in _fields(data, begin, end):
        if content < 0 or after - content < MIN_LEFT:
            continue  # Nothing large fits into it.
        inner: Any = getattr(kind.fields_by_number.get(number), "message_type", None)
        if inner is None or (inner is onnx.AttributeProto.DESCRIPTOR and bytes(data[after - 3 : after]) in _LIST_ENDS):
            continue
        if inner is onnx.TensorProto.DESCRIPTOR:
            shorter = _without_content(data, content, after)
        else:
            shorter = _shortened(data, content, after, inner, deeper - 1)
        length = sum(map(len, shorter))
        pieces += [data[copied:start], _varint(number << 3 | _BYTES), _varint(length), *shorter]
        copied = after
    return [*pieces, data[copied:end]]


def _without_content(data: memoryview, begin: int, end: int) -> list[bytes | memoryview]:
    """The pieces of a tensor, with a reference in place of its content where that is large and in one place."""
    names = {number: field.name for number, field in onnx.TensorProto.DESCRIPTOR.fields_by_number.items()}
    large = [
        field
        for field in _fields(data, begin, end)
        if names.get(field[0]) in _CONTENT and field[2] >= 0 and field[3] - field[2] >= MIN_LEFT
    ]
    if len(large) != 1:
        return [data[begin:end]]
    number, start, content, after = large[0]
    rest = onnx.TensorProto.FromString(b"".join((data[begin:start], data[after:end])))
    type_, size = _CONTENT[names[number]]
    if (after - content) % size or not _lacks_content(rest, type_):
        return [data[begin:end]]
    rest.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", INSIDE), ("offset", content), ("length", after - content)):
        rest.external_data.add(key=key, value=str(value))
    return [rest.SerializeToString()]


def _lacks_content(rest: onnx.TensorProto, type_: int | None) -> bool:
    """Whether a tensor has no elements but those that were left out, of a type or of any type of numbers."""
    fits = rest.data_type == type_ if type_ is not None else rest.data_type != onnx.TensorProto.STRING
    has_others = rest.HasField("raw_data") or rest.float_data or rest.double_data
    has_reference = rest.external_data or rest.data_location != onnx.TensorProto.DEFAULT
    return fits and not has_others and not has_reference and not rest.HasField("segment")


def _fields(data: memoryview, position: int, end: int) -> Iterator[_Field]:
    """The fields of a message from `position` up to `end`; raises `ValueError` where it is cut off or damaged."""
    while position < end:
        start = position
        key, position = _read_varint(data, position, end, _LONGEST_KEY)
        number, kind, content = key >> 3, key & 7, -1
        if not 0 < number < 1 << 29:
            raise ValueError(f"field {number} cannot be")
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


def _read_varint(data: memoryview, position: int, end: int, longest: int = _LONGEST) -> tuple[int, int]:
    """A number of variable length, and where it ends; raises `ValueError` where it has no end."""
    value = 0
    for index in range(position, min(end, position + longest)):
        byte = data[index]
        value |= (byte & 0x7F) << 7 * (index - position)
        if byte < 0x80:
            return value, index + 1
    raise ValueError("a number is cut off, or too long")


def _varint(value: int) -> bytes:
    """A number in as few bytes as it takes."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
