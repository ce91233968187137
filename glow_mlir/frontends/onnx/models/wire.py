"""
A partial parser of protobuf's wire format, which leaves large tensors in their file.

If it were parsed as a whole, a model would be in memory three times: as its file's content, a message, and arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx

MIN_LEFT = 1 << 16
"""The minimum size in bytes of a tensor that is left in the file."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types of fields; the others belong to the obsolete groups."""

INSIDE = "\0"
"""The location of a tensor that is left in the file of its model; no file has this name."""

MAX_NESTED = 100
"""The maximum nesting of messages, which is protobuf's limit."""

_LONGEST, _LONGEST_KEY = 10, 5
"""The maximum number of bytes of a varint, and of a field's key."""

_CONTENT = {
    "raw_data": (None, 1),
    "float_data": (onnx.TensorProto.FLOAT, 4),
    "double_data": (onnx.TensorProto.DOUBLE, 8),
}
"""Fields that contain elements in little-endian order → their data type, or `None` for any, and bytes per element."""

_LIST_ENDS = frozenset(
    bytes([0xA0, 0x01, kind])
    for kind in (onnx.AttributeProto.FLOATS, onnx.AttributeProto.INTS, onnx.AttributeProto.STRINGS)
)
"""
The last bytes of an attribute that is a list of numbers or words: its type, because writers order fields by number.

Such an attribute has no tensor, and may have too many fields to look at all. Another attribute that happens to end with
these bytes keeps its content.
"""

_Field = tuple[int, int, int, int]
"""A field: its number, its start, the start of its content if it has a length, else -1, and its end."""


def without_tensors(data: memoryview) -> bytes:
    """
    The serialized model, with large tensors as external data at the location `INSIDE`, the model's own file.

    Raises `ValueError` or `DecodeError` for invalid data.
    """
    return b"".join(_shortened(data, 0, len(data), onnx.ModelProto.DESCRIPTOR, MAX_NESTED))


# Any: protobuf's descriptors have no types of their own.
def _shortened(data: memoryview, begin: int, end: int, kind: Any, deeper: int) -> list[bytes | memoryview]:
    """
    The pieces of a message from `begin` up to `end`, without the content of large tensors.

    `deeper` is the number of nested levels still allowed.
    """
    if not deeper:
        raise ValueError(f"messages are nested deeper than {MAX_NESTED}")
    pieces: list[bytes | memoryview] = []
    copied = begin
    for number, start, content, after in _fields(data, begin, end):
        if content < 0 or after - content < MIN_LEFT:
            continue  # Too small to contain a large tensor.
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
    """The pieces of a tensor, with a reference in place of its content if that is a single large field."""
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
    """Whether the rest of a tensor has no other content, and its data type fits the field that was left out."""
    fits = rest.data_type == type_ if type_ is not None else rest.data_type != onnx.TensorProto.STRING
    has_others = rest.HasField("raw_data") or rest.float_data or rest.double_data
    has_reference = rest.external_data or rest.data_location != onnx.TensorProto.DEFAULT
    return fits and not has_others and not has_reference and not rest.HasField("segment")


def _fields(data: memoryview, position: int, end: int) -> Iterator[_Field]:
    """The fields of a message from `position` up to `end`; raises `ValueError` if it is cut off or damaged."""
    while position < end:
        start = position
        key, position = _read_varint(data, position, end, _LONGEST_KEY)
        number, kind, content = key >> 3, key & 7, -1
        if not 0 < number < 1 << 29:
            raise ValueError(f"field {number} is invalid")
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
    """Decode a varint; its value and end. Raises `ValueError` if it does not end."""
    value = 0
    for index in range(position, min(end, position + longest)):
        byte = data[index]
        value |= (byte & 0x7F) << 7 * (index - position)
        if byte < 0x80:
            return value, index + 1
    raise ValueError("a number is cut off, or too long")


def _varint(value: int) -> bytes:
    """Encode a number as a varint."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
