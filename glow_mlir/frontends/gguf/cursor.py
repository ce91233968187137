"""Bounded reading of a GGUF file's header: each count is checked against the bytes that are left."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from glow_mlir.errors import ModelError
from glow_mlir.frontends.gguf.strings import Strings, strings_at

MAX_STRINGS = 1 << 22
"""The maximum number of strings in an array; the largest vocabularies have 2^18."""

MAX_DEPTH = 4
"""The maximum depth of nested arrays."""

STRING, ARRAY = 8, 9
"""Numbers of the types of values that are not plain."""

PLAIN: dict[int, str] = {
    0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
"""Number of the type of a value → its dtype."""

Value = bool | int | float | str | np.ndarray | Strings | Sequence[Any]
"""A value of the metadata: numbers of arrays are views of the file."""


class Cursor:
    """A position in the bytes of a file; every error names the file and `key`, the entry that is read."""

    def __init__(self, data: memoryview, file: str) -> None:
        self.data = data
        self.file = file
        self.position = 0
        self.key = ""

    def error(self, reason: str) -> ModelError:
        """The error for the entry that is read."""
        return ModelError(reason, file=self.file, node=self.key, hint="check that the download is complete")

    @property
    def left(self) -> int:
        """The number of bytes behind the position."""
        return len(self.data) - self.position

    def take(self, count: int, role: str) -> memoryview:
        """The next `count` bytes; raises `ModelError` if there are fewer."""
        if count > self.left:
            raise self.error(f"{role} takes {count} bytes, and {self.left} are left in the file")
        found = self.data[self.position : self.position + count]
        self.position += count
        return found

    def number(self, code: str, role: str) -> int:
        """An integer in the format `code` of the module `struct`."""
        (found,) = struct.unpack(f"<{code}", self.take(struct.calcsize(code), role))
        return found

    def count(self, least_bytes: int, role: str) -> int:
        """A number of entries of at least so many bytes each; raises `ModelError` for more than the file can hold."""
        found = self.number("Q", role)
        if found * least_bytes > self.left:
            raise self.error(f"{role} is {found}, more than fit into the {self.left} bytes that are left in the file")
        return found

    def string(self, role: str, errors: str = "surrogateescape") -> str:
        """A string in UTF-8; other bytes become surrogates, or an error if `errors` is `strict`."""
        size = self.count(1, f"the length of {role}")
        try:
            return str(self.take(size, role), "utf-8", errors)
        except UnicodeDecodeError as error:
            raise self.error(f"{role} is not in UTF-8: {error.reason}") from error

    def value(self) -> Value:
        """A value of the metadata behind its type."""
        return self._value(self.number("I", "the type of a value"), 0)

    def _value(self, kind: int, depth: int) -> Value:
        if kind == STRING:
            return self.string("a value")
        if kind == ARRAY:
            return self._array(depth + 1)
        return self._plain(kind, 1)[0].item()

    def _plain(self, kind: int, count: int) -> np.ndarray:
        """Numbers or truth values, as a view of the file."""
        if kind not in PLAIN:
            raise self.error(f"a value has the unknown type {kind}")
        dtype = np.dtype(PLAIN[kind])
        return np.frombuffer(self.take(count * dtype.itemsize, "a value"), dtype)

    def _array(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise self.error(f"arrays are nested more than {MAX_DEPTH} deep")
        kind = self.number("I", "the type of an array")
        dtype = PLAIN.get(kind)
        least = 8 if kind == STRING else 12 if kind == ARRAY else 1 if dtype is None else np.dtype(dtype).itemsize
        count = self.count(least, "the length of an array")
        if dtype is not None or kind not in (STRING, ARRAY):
            return self._plain(kind, count)
        if count > MAX_STRINGS:
            raise self.error(f"an array has {count} strings or arrays, more than {MAX_STRINGS}")
        if kind == ARRAY:
            return [self._array(depth + 1) for _ in range(count)]
        found = self._strings(count)
        return found if depth == 1 else found.decoded()

    def _strings(self, count: int) -> Strings:
        """Strings of an array."""
        try:
            found = strings_at(self.data, self.position, count)
        except IndexError as error:
            reason = f"string {error} of an array takes more bytes than are left in the file"
            raise self.error(reason) from None
        if count:
            self.position = int(found.ends[-1])
        return found
