"""
Parse protobuf inference requests without a copy and in steps.

Protobuf's own parser blocks the interpreter until all objects of a message exist, which may take 40 times the memory.
Here the large parts of a message, bytes and numbers, are located and left in place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from glow_mlir.errors import InputError
from glow_mlir.serving.inference import MAX_TEXT
from glow_mlir.serving.packed_numbers import LONGEST, MORE
from glow_mlir.serving.steps import Steps

VARINT, FIXED64, SIZED, FIXED32 = 0, 1, 2, 5
"""Protobuf wire types, without the obsolete groups."""

MAX_FIELDS = 1 << 14
"""The maximum number of fields of a request besides elements of tensors, because each takes time."""

FIELDS_A_STEP = 1 << 10

MAX_SHAPE = 1 << 10
"""The maximum number of bytes of a packed shape, which exceeds the number of axes of any array."""

Data = bytes | bytearray
Part = tuple[int, int]
"""A range of bytes in a message."""


def no_message(reason: str) -> InputError:
    """The error for bytes that are not a valid message."""
    return InputError(f"the request is not a valid message: {reason}")


def read_varint(data: Data, at: int) -> tuple[int, int]:
    """The 64-bit number at an offset, and its end; raises `InputError` for one that is too long."""
    found = 0
    for position in range(LONGEST):
        byte = data[at + position]
        found |= (byte & MORE - 1) << 7 * position
        if byte < MORE:
            return found & 0xFFFF_FFFF_FFFF_FFFF, at + position + 1
    raise no_message("a number is not terminated")


def fields(data: Data, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """
    Yield the fields in a part of a message: number, wire type, and begin and end of the value.

    For a `VARINT`, the third item is the number itself. Raises `InputError` for an invalid field, and `IndexError` for
    one that ends after the last byte.
    """
    at = begin
    while at < end:
        key = data[at]
        at += 1
        if key >= MORE:
            key, at = read_varint(data, at - 1)
        kind = key & 7
        if kind == SIZED:
            size = data[at]
            at += 1
            if size >= MORE:
                size, at = read_varint(data, at - 1)
            value, at = at, at + size
        elif kind == VARINT:
            value = data[at]
            at += 1
            if value >= MORE:
                value, at = read_varint(data, at - 1)
        elif kind in (FIXED64, FIXED32):
            value, at = at, at + (8 if kind == FIXED64 else 4)
        else:
            raise no_message(f"it has a field of the wire type {kind}")
        if at > end:
            raise no_message("it ends within a field")
        if not key >> 3:
            raise no_message("it has a field without a number")
        yield key >> 3, kind, value, at


def signed(number: int) -> int:
    """A 64-bit number as signed."""
    return number - (1 << 64) if number >> 63 else number


class TensorPart:
    """An input, or requested output, of a request, and the range of its elements, if it has any of its own."""

    __slots__ = ("contents", "datatype", "name", "parameters", "shape")

    def __init__(self) -> None:
        self.name = ""
        self.datatype = ""
        self.shape: list[int] = []
        self.parameters: dict[str, Any] = {}
        self.contents: list[Part] = []


class RequestParts:
    """An inference request, with the fields of `ModelInferRequest`."""

    __slots__ = ("id", "inputs", "model_name", "model_version", "outputs", "parameters", "raw")

    def __init__(self) -> None:
        self.model_name = ""
        self.model_version = ""
        self.id = ""
        self.parameters: dict[str, Any] = {}
        self.inputs: list[TensorPart] = []
        self.outputs: list[TensorPart] = []
        self.raw: list[Part] = []


class WireReader:
    """Reads one request."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._fields = 0

    def read(self) -> Steps[RequestParts]:
        """Read everything except the elements of tensors; raises `InputError`."""
        found = RequestParts()
        try:
            for number, kind, begin, end in fields(self._data, 0, len(self._data)):
                self._count()
                if not self._fields % FIELDS_A_STEP:
                    yield
                if kind != SIZED:
                    continue
                if number == 5:
                    found.inputs.append(self._tensor(begin, end, 4))
                    if self._fields > FIELDS_A_STEP:
                        yield
                elif number == 7:
                    found.raw.append((begin, end))
                else:
                    self._add(found, number, begin, end)
        except IndexError:
            raise no_message("it ends within a field") from None
        return found

    def _add(self, found: RequestParts, number: int, begin: int, end: int) -> None:
        """Add a field that is neither an input nor raw bytes."""
        if number in _STRINGS:
            setattr(found, _STRINGS[number], self._text(begin, end))
        elif number == 6:
            found.outputs.append(self._tensor(begin, end, 2))
        elif number == 4:
            self._add_parameter(found.parameters, begin, end)

    def _count(self) -> None:
        """Count a field; raises `InputError` beyond the limit."""
        self._fields += 1
        if self._fields > MAX_FIELDS:
            reason = f"the request has more than {MAX_FIELDS} fields besides the elements of its tensors"
            raise InputError(reason, hint="pack the numbers of a tensor into one field")

    def _text(self, begin: int, end: int) -> str:
        """A name, a type or an identifier."""
        if end - begin > MAX_TEXT:
            raise InputError(f"a name or an identifier of the request has {end - begin} bytes, more than {MAX_TEXT}")
        try:
            return str(self._data[begin:end], "utf-8")
        except UnicodeDecodeError:
            raise no_message("a string is not valid UTF-8") from None

    def _tensor(self, begin: int, end: int, parameters: int) -> TensorPart:
        """An input or an output; `parameters` is the field number of its parameters."""
        found = TensorPart()
        for number, kind, start, stop in fields(self._data, begin, end):
            self._count()
            if number == 3:
                self._add_sizes(found.shape, kind, start, stop)
            elif kind != SIZED:
                continue
            elif number == 1:
                found.name = self._text(start, stop)
            elif number == parameters:
                self._add_parameter(found.parameters, start, stop)
            elif number == 2:
                found.datatype = self._text(start, stop)
            elif number == 5:
                found.contents.append((start, stop))
        return found

    def _add_sizes(self, shape: list[int], kind: int, begin: int, end: int) -> None:
        """Add sizes of a shape, packed or single."""
        if kind == VARINT:
            shape.append(signed(begin))
            return
        if end - begin > MAX_SHAPE:
            raise InputError(f"a tensor of the request has a shape of {end - begin} bytes")
        while kind == SIZED and begin < end:
            size, begin = read_varint(self._data, begin)
            shape.append(signed(size))
            self._count()
        if kind == SIZED and begin != end:
            raise no_message("it ends within a number")

    def _add_parameter(self, parameters: dict[str, Any], begin: int, end: int) -> None:
        """Add a parameter by name; without a value it is `None`."""
        name, value = "", None
        for number, kind, start, stop in fields(self._data, begin, end):
            self._count()
            if number == 1 and kind == SIZED:
                name = self._text(start, stop)
            elif number == 2 and kind == SIZED:
                value = self._value(start, stop, value)
        parameters[name] = value

    def _value(self, begin: int, end: int, value: Any) -> Any:
        """The value of a parameter; the last one wins."""
        for number, kind, start, stop in fields(self._data, begin, end):
            self._count()
            if kind == VARINT and number in (1, 2, 5):
                value = bool(start) if number == 1 else signed(start) if number == 2 else start
            elif kind == SIZED and number == 3:
                value = self._text(start, stop)
            elif kind == FIXED64 and number == 4:
                (value,) = struct.unpack("<d", self._data[start:stop])
        return value


_STRINGS = {1: "model_name", 2: "model_version", 3: "id"}


def varint(number: int) -> bytes:
    """A number of up to 64 bits, as protobuf writes it."""
    found = bytearray()
    number &= 0xFFFF_FFFF_FFFF_FFFF
    while number >= MORE:
        found.append(number & MORE - 1 | MORE)
        number >>= 7
    found.append(number)
    return bytes(found)


@lru_cache(1024)
def sized(number: int, size: int) -> bytes:
    """The header of a field with this number and size."""
    return varint(number << 3 | SIZED) + varint(size)
