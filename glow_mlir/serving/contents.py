"""Tensor elements in the fields of a message, `InferTensorContents`, read and written piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.datatypes import STRINGS
from glow_mlir.serving.errors import ResponseTooLargeError
from glow_mlir.serving.packed_numbers import LONGEST, MORE, packed_varints, varint_pieces
from glow_mlir.serving.steps import PIECE, Steps
from glow_mlir.serving.strings import STRINGS_A_STEP
from glow_mlir.serving.wire import FIELDS_A_STEP, SIZED, VARINT, Data, Part, fields, no_message, sized, varint


class NumberField(NamedTuple):
    """A field of numbers: its field number, and the type of its numbers; fixed-size types are floats."""

    number: int
    dtype: np.dtype[Any]

    @property
    def is_fixed(self) -> bool:
        """Whether all numbers take the same number of bytes."""
        return self.dtype.kind == "f"


_BOOL, _INT, _INT64, _UINT, _UINT64, _FP32, _FP64 = (
    NumberField(number, np.dtype(name))
    for number, name in enumerate(("bool", "int32", "int64", "uint32", "uint64", "float32", "float64"), 1)
)

NUMBERS = {
    "BOOL": _BOOL,
    "INT8": _INT,
    "INT16": _INT,
    "INT32": _INT,
    "INT64": _INT64,
    "UINT8": _UINT,
    "UINT16": _UINT,
    "UINT32": _UINT,
    "UINT64": _UINT64,
    "FP32": _FP32,
    "FP64": _FP64,
}
"""Element type → its field of numbers; other types are sent only as bytes."""

TEXTS = 8
"""The field number of strings."""

FIELD_TYPES = {STRINGS: TEXTS, **{word: field.number for word, field in NUMBERS.items()}}
"""Element type → its field number."""

MAX_NUMBER_FIELDS = 1 << 14
"""The maximum number of number fields of a tensor; they may have one, many or no numbers each, and each takes time."""


class Contents:
    """Elements in parts of a message."""

    def __init__(self, data: Data, parts: list[Part]) -> None:
        self._data = data
        self.parts = parts

    def _fields(self) -> Iterator[tuple[int, int, int, int]]:
        """All fields; raises `InputError` for malformed ones."""
        try:
            for begin, end in self.parts:
                yield from fields(self._data, begin, end)
        except IndexError:
            raise no_message("it ends within a field") from None

    def numbers(self, wanted: NumberField, count: int) -> Iterator[np.ndarray]:
        """
        Yield `count` numbers of a field, in pieces that take little time each.

        Raises `InputError` for too many bytes, and for malformed numbers.
        """
        most = count * (wanted.dtype.itemsize if wanted.is_fixed else LONGEST)
        known = 0
        for number, kind, begin, end in self._fields():
            known += 1
            if known > MAX_NUMBER_FIELDS:
                reason = f"a tensor has more than {MAX_NUMBER_FIELDS} fields"
                raise InputError(reason, hint="pack the numbers of a tensor into one field")
            if not known % FIELDS_A_STEP:
                yield np.empty(0, wanted.dtype)
            if number == wanted.number and kind == SIZED:
                if end - begin > most:
                    raise InputError(f"a tensor of {count} elements has {end - begin} bytes of numbers")
                yield from self._packed(wanted, begin, end)
            elif number == wanted.number:
                yield self._single(wanted, kind, begin, end)

    def _packed(self, wanted: NumberField, begin: int, end: int) -> Iterator[np.ndarray]:
        data = np.frombuffer(self._data, np.uint8, end - begin, begin)
        if not wanted.is_fixed:
            for piece in varint_pieces(data):
                yield _truncated(piece, wanted.dtype)
            return
        if (end - begin) % wanted.dtype.itemsize:
            raise no_message("it ends within a number")
        values = data.view(wanted.dtype)
        for position in range(0, len(values), PIECE):
            yield values[position : position + PIECE]

    def _single(self, wanted: NumberField, kind: int, begin: int, end: int) -> np.ndarray:
        """A number in a field of its own."""
        if wanted.is_fixed and kind != VARINT and end - begin == wanted.dtype.itemsize:
            return np.frombuffer(self._data, wanted.dtype, 1, begin)
        if wanted.is_fixed or kind != VARINT:
            raise no_message("a number has a field of another type")
        return _truncated(np.array([begin], np.uint64), wanted.dtype)

    def texts(self) -> Iterator[Data]:
        """Yield the strings one by one."""
        for number, kind, begin, end in self._fields():
            if number != TEXTS or kind != SIZED:
                raise no_message("a tensor of strings has elements of another type")
            yield self._data[begin:end]


def _truncated(numbers: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Convert 64-bit numbers to those of a field: keep the lower bits; any nonzero number is true."""
    return numbers != 0 if dtype.kind == "b" else numbers.astype(np.dtype(f"u{dtype.itemsize}")).view(dtype)


def written(datatype: str, array: np.ndarray | list[Any], most: int, charge: Charge) -> Steps[list[bytes]]:
    """
    The parts of a message with the elements, numbers or strings, of a one-dimensional array.

    Raises `ResponseTooLargeError` for more bytes than `most`, and `OverloadError`.
    """
    step = STRINGS_A_STEP if isinstance(array, list) else PIECE
    found: list[bytes] = []
    size = 0
    for begin in range(0, len(array), step):
        if begin:
            yield
        found.append(_written(datatype, array[begin : begin + step]))
        size += len(found[-1])
        charge.add(len(found[-1]))
        if size > most:
            hint = "send tensors as raw bytes, or use HTTP"
            raise ResponseTooLargeError(f"the response has more than {most} bytes of numbers", hint=hint)
    return [sized(NUMBERS[datatype].number, size), *found] if found and datatype != STRINGS else found


def _written(datatype: str, elements: np.ndarray | list[Any]) -> bytes:
    """Some elements."""
    if isinstance(elements, list):
        return b"".join(_tagged(elements))
    field = NUMBERS[datatype]
    return (elements.astype(field.dtype) if field.is_fixed else packed_varints(elements)).tobytes()


def _tagged(texts: Iterable[Any]) -> Iterator[bytes]:
    for item in texts:
        text = item if isinstance(item, bytes) else str(item).encode()
        size = len(text)
        yield bytes((TEXTS << 3 | SIZED, size)) if size < MORE else varint(TEXTS << 3 | SIZED) + varint(size)
        yield text
