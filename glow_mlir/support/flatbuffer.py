"""
Checked reading of flatbuffers: every offset lies in the file, or the file is refused.

A table has an offset to its vtable, which has the offset of each field in the table, or 0 where the field has its
default. Vectors and strings begin with their length. Tables are read when they are asked for, so that a file whose
tables contain themselves costs no more than others.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from glow_mlir.errors import ModelError
from glow_mlir.support.dataclass import dataclass

_OFFSET, _SHORT = struct.Struct("<I"), struct.Struct("<H")

FORMATS: dict[str, struct.Struct] = {code: struct.Struct(f"<{code}") for code in "?bBhHiIqQfd"}
"""The code of a type in the module `struct` → how it is read."""


@dataclass(frozen=True)
class Flatbuffer:
    """The bytes of a file, and its name for errors."""

    data: memoryview
    file: str

    def error(self, reason: str) -> ModelError:
        """The error for a damaged file."""
        return ModelError(f"is damaged: {reason}", file=self.file, hint="check that the download is complete")

    def check(self, position: int, count: int, role: str) -> None:
        """Raise `ModelError` unless `count` bytes from `position` on are in the file."""
        if position < 0 or count < 0 or position + count > len(self.data):
            raise self.error(f"{role} takes {count} bytes at {position}, and the file has {len(self.data)}")

    def number(self, form: struct.Struct, position: int, role: str) -> int | float | bool:
        """A number at a position."""
        self.check(position, form.size, role)
        return form.unpack_from(self.data, position)[0]

    def follow(self, position: int, role: str) -> int:
        """The position that the offset at another position leads to."""
        target = position + int(self.number(_OFFSET, position, role))
        self.check(target, _OFFSET.size, role)
        return target

    def root(self) -> Table:
        """The table that the file begins with."""
        return Table.at(self, self.follow(0, "the first table"), "the first table")


@dataclass(frozen=True)
class Table:
    """A table: fields are asked for by number, and `role` says in errors what it is."""

    buffer: Flatbuffer
    position: int
    fields: memoryview
    """The offsets of the fields in the table, two bytes each."""
    role: str

    @staticmethod
    def at(buffer: Flatbuffer, position: int, role: str) -> Table:
        """The table at a position."""
        back = struct.Struct("<i")
        vtable = position - int(buffer.number(back, position, role))
        size = int(buffer.number(_SHORT, vtable, role))
        if size < 4 or size % 2:
            raise buffer.error(f"the fields of {role} take {size} bytes")
        buffer.check(vtable, size, role)
        return Table(buffer, position, buffer.data[vtable + 4 : vtable + size], role)

    def _field(self, number: int) -> int | None:
        """The position of a field; `None` if the table does not have it."""
        if 2 * number + 2 > len(self.fields):
            return None
        (offset,) = _SHORT.unpack_from(self.fields, 2 * number)
        return self.position + offset if offset else None

    def _target(self, number: int) -> int | None:
        """The position of the table, vector or string of a field."""
        field = self._field(number)
        return None if field is None else self.buffer.follow(field, self.role)

    def number(self, number: int, code: str, default: int = 0) -> int:
        """An integer or truth value."""
        field = self._field(number)
        return default if field is None else int(self.buffer.number(FORMATS[code], field, self.role))

    def real(self, number: int, default: float = 0.0) -> float:
        """A number of f32."""
        field = self._field(number)
        return default if field is None else float(self.buffer.number(FORMATS["f"], field, self.role))

    def table(self, number: int, role: str) -> Table | None:
        """A table; `None` if there is none."""
        target = self._target(number)
        return None if target is None else Table.at(self.buffer, target, role)

    def array(self, number: int, dtype: str) -> np.ndarray:
        """A vector of numbers, a view of the file; an empty one if there is none."""
        target, kind = self._target(number), np.dtype(dtype)
        if target is None:
            return np.empty(0, kind)
        count, start = self._length(target, kind.itemsize)
        return np.frombuffer(self.buffer.data[start : start + count * kind.itemsize], kind)

    def _length(self, target: int, item: int) -> tuple[int, int]:
        """The number of items of a vector, and the position of the first."""
        count, start = int(self.buffer.number(_OFFSET, target, self.role)), target + _OFFSET.size
        self.buffer.check(start, count * item, self.role)
        return count, start

    def tables(self, number: int, role: str) -> Sequence[Table]:
        """A vector of tables."""
        target = self._target(number)
        if target is None:
            return ()
        count, start = self._length(target, _OFFSET.size)
        positions = (start + _OFFSET.size * item for item in range(count))
        follow, at = self.buffer.follow, Table.at
        return [at(self.buffer, follow(position, role), f"{role} {item}") for item, position in enumerate(positions)]

    def text(self, number: int) -> str:
        """A string, in which bytes that are not UTF-8 become surrogates; an empty one if there is none."""
        target = self._target(number)
        if target is None:
            return ""
        count, start = self._length(target, 1)
        return str(self.buffer.data[start : start + count], "utf-8", "surrogateescape")
