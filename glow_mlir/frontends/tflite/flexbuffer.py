"""
Checked reading of flexbuffers, in which files keep the options of most custom operators.

A value is read from its position, the width of the numbers there, and a type in the six upper bits of a byte, whose
lower two bits are the width of what the value refers to. The root is at the end. Source: "FlexBuffers internals" in the
documentation of FlatBuffers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from glow_mlir.errors import ModelError
from glow_mlir.support.dataclass import dataclass

Value = None | bool | int | float | str | bytes | list["Value"] | dict[str, "Value"]
"""What a flexbuffer has."""

MAX_VALUES = 1 << 16
"""The maximum number of values that are read, also where several places refer to one."""

MAX_DEPTH = 32
"""The maximum depth of maps and vectors in each other."""

_INTEGERS, _NATURALS = {1: "b", 2: "h", 4: "i", 8: "q"}, {1: "B", 2: "H", 4: "I", 8: "Q"}
_REALS = {2: "e", 4: "f", 8: "d"}
"""Bytes of a number → its code in the module `struct`."""

_NUMBERS: Mapping[int, Mapping[int, str]] = {1: _INTEGERS, 2: _NATURALS, 3: _REALS, 26: _NATURALS}
"""Number of a type of numbers → the codes of its widths."""

_INDIRECT: Mapping[int, int] = {6: 1, 7: 2, 8: 3}
"""Number of a type of references to numbers → the type of the number."""

_NULL, _KEY, _STRING, _MAP, _VECTOR, _BLOB, _BOOL = 0, 4, 5, 9, 10, 25, 26

_TYPED: Mapping[int, int] = {11: 1, 12: 2, 13: 3, 14: _KEY, 36: _BOOL}
"""Number of a type of vectors of one type → that type."""

_FIXED: Mapping[int, tuple[int, int]] = {
    13 + 3 * (length - 1) + kind - 1: (kind, length) for length in (2, 3, 4) for kind in (1, 2, 3)
}
"""Number of a type of vectors of known length → the type of its elements, and the length."""


def read_flexbuffer(data: bytes, node: str) -> Value:
    """The value that `data` is; raises `ModelError`, which names the operator `node`, if it is damaged or too large."""
    reader = _Reader(data, node)
    width, packed = reader.byte(len(data) - 1), reader.byte(len(data) - 2)
    return reader.value(len(data) - 2 - width, width, packed, 0)


@dataclass
class _Reader:
    data: bytes
    node: str
    count: int = 0
    """The number of values that are read."""

    def _error(self, reason: str) -> ModelError:
        return ModelError(f"its options are damaged: {reason}", node=self.node, hint="they should be a flexbuffer")

    def byte(self, position: int) -> int:
        """The byte at a position."""
        return self._span(position, 1)[0]

    def _span(self, position: int, size: int) -> bytes:
        if position < 0 or size < 0 or position + size > len(self.data):
            raise self._error(f"{size} bytes at {position} of {len(self.data)}")
        return self.data[position : position + size]

    def _number(self, position: int, width: int, codes: Mapping[int, str]) -> float:
        if width not in codes:
            raise self._error(f"a number of {width} bytes")
        return struct.unpack(f"<{codes[width]}", self._span(position, width))[0]

    def _natural(self, position: int, width: int) -> int:
        return int(self._number(position, width, _NATURALS))

    def _text(self, content: bytes) -> str:
        return content.decode(errors="surrogateescape")

    def value(self, position: int, width: int, packed: int, depth: int) -> Value:
        """The value at a position, whose type is `packed` with the width of what it refers to."""
        self.count += 1
        if self.count > MAX_VALUES or depth > MAX_DEPTH:
            raise self._error(f"more than {MAX_VALUES} values, or deeper than {MAX_DEPTH}")
        kind, own = packed >> 2, 1 << (packed & 3)
        if kind == _NULL:
            return None
        if kind in _NUMBERS:
            found = self._number(position, width, _NUMBERS[kind])
            return bool(found) if kind == _BOOL else found
        target = position - self._natural(position, width)
        if kind in _INDIRECT:
            return self._number(target, own, _NUMBERS[_INDIRECT[kind]])
        if kind in _FIXED:
            element, length = _FIXED[kind]
            return [self.value(target + own * item, own, element << 2, depth + 1) for item in range(length)]
        if kind in _TYPED:
            return self._vector(target, own, depth, lambda _: _TYPED[kind] << 2)
        return self._referred(kind, target, own, depth)

    def _referred(self, kind: int, target: int, width: int, depth: int) -> Value:
        """A key, string, blob, vector of several types, or map at a position."""
        if kind == _KEY:
            return self._key(target)
        if kind in (_STRING, _BLOB):
            content = self._span(target, self._natural(target - width, width))
            return content if kind == _BLOB else self._text(content)
        if kind not in (_VECTOR, _MAP):
            raise self._error(f"the type {kind}")
        types = target + width * self._natural(target - width, width)
        values = self._vector(target, width, depth, lambda item: self.byte(types + item))
        if kind == _VECTOR:
            return values
        place = target - 3 * width
        keys = place - self._natural(place, width)
        size = self._natural(place + width, width)
        return {
            self._key(at - self._natural(at, size)): value
            for at, value in ((keys + size * item, value) for item, value in enumerate(values))
        }

    def _vector(self, target: int, width: int, depth: int, packed: Callable[[int], int]) -> list[Value]:
        length = self._natural(target - width, width)
        self._span(target, length * width)
        return [self.value(target + width * item, width, packed(item), depth + 1) for item in range(length)]

    def _key(self, position: int) -> str:
        self._span(position, 0)
        end = self.data.find(b"\0", position)
        if end < 0:
            raise self._error("a key without an end")
        return self._text(self.data[position:end])
