"""
Source locations of operations: the ONNX nodes in their locations, and their positions in text.

An operation with an explicit location, as `loc("conv1")`, also has a position in the text. That position is kept beside
the IR, since it must not be printed: for the operation itself, and, for operations that passes derive, by location.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import cast
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, LocationAttr, ModuleOp, NameLoc
from xdsl.ir import Operation

from glow_mlir.support.short_names import short_names


class Lines:
    """The line starts of a text."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._text = text

    @cached_property
    def _starts(self) -> list[int]:
        starts, end = [0], self._text.find("\n")
        while end >= 0:
            starts.append(end + 1)
            end = self._text.find("\n", end + 1)
        return starts

    def at(self, position: int) -> tuple[int, int]:
        """Line and column, from 1, of the character at `position`."""
        line = bisect_right(self._starts, position)
        return line, position - self._starts[line - 1] + 1

    def file_position(self, position: int) -> str:
        """`file:line:column` of the character at `position`."""
        line, column = self.at(position)
        return f"{self.file}:{line}:{column}"


TextOffset = tuple[Lines, int]
"""A text, and a position in it."""

_OF_OPS: WeakKeyDictionary[Operation, TextOffset] = WeakKeyDictionary()
"""Parsed operation with an explicit location → its position in the text."""
_OF_LOCATIONS: WeakKeyDictionary[Operation, dict[LocationAttr, TextOffset]] = WeakKeyDictionary()
"""Module → location → the position of the first operation with it."""


def location_names(location: LocationAttr) -> tuple[str, ...]:
    """The ONNX names in a location, without repetition."""
    if isinstance(location, NameLoc):
        return (location.desc.data,)
    return tuple(dict.fromkeys(name for part in _parts(location) for name in location_names(part) if name))


def location_name(location: LocationAttr) -> str:
    """The ONNX names in a location, joined by `+`; empty if it has none."""
    return "+".join(location_names(location))


def short_location_names(ops: Iterable[Operation]) -> dict[Operation, str]:
    """
    Operation → the ONNX names in its location, each shortened to the part that is unique among them, joined by `+`.

    Operations without a name are left out.
    """
    names = {op: found for op in ops if (found := location_names(op.location))}
    short = short_names(name for found in names.values() for name in found)
    return {op: "+".join(short[name] for name in found) for op, found in names.items()}


def position_of(location: LocationAttr) -> str:
    """The `file:line:column` in a location; the first of a fused one, and empty if there is none."""
    match location:
        case FileLineColLoc():
            return f"{location.filename.data}:{location.line.data}:{location.column.data}"
        case NameLoc(location=FileLineColLoc() as inner):
            return position_of(inner)
        case _:
            file_positions = (position_of(part) for part in _parts(location))
            return next((file_position for file_position in file_positions if file_position), "")


def keep_positions(module: ModuleOp, file_positions: Mapping[Operation, TextOffset]) -> None:
    """Record the text positions of operations of a parsed module, besides their locations."""
    _OF_OPS.update(file_positions)
    first: dict[LocationAttr, TextOffset] = {}
    for op, file_position in file_positions.items():
        first.setdefault(op.location, file_position)
    _OF_LOCATIONS[module] = first


def cloned(module: ModuleOp) -> ModuleOp:
    """A copy of a module whose operations keep their text positions."""
    copy = module.clone()
    pairs = zip(module.walk(), copy.walk(), strict=True) if module in _OF_LOCATIONS else ()
    keep_positions(copy, {new: _OF_OPS[old] for old, new in pairs if old in _OF_OPS})
    return copy


def source_location(op: Operation) -> str:
    """The `file:line:column` of an operation, or of the first operation that it derives from; empty if unknown."""
    if (own := _OF_OPS.get(op)) is not None:
        return _text_of(own)
    module = op.get_toplevel_object()
    known = _OF_LOCATIONS.get(module, {}) if isinstance(module, Operation) else {}
    for part in (op.location, *_parts(op.location)):
        if (found := known.get(part)) is not None:
            return _text_of(found)
    return position_of(op.location)


def source_location_of_node(module: ModuleOp, node: str) -> str:
    """The `file:line:column` of the first operation in the text of a module with that name; else empty."""
    named = (
        (location_name(location), file_position) for location, file_position in _OF_LOCATIONS.get(module, {}).items()
    )
    return next((_text_of(file_position) for name, file_position in named if name == node), "")


def described(op: Operation) -> str:
    """Describe an operation in a message: the names in its location, or else its position in a file."""
    return location_name(op.location) or source_location(op)


def _text_of(file_position: TextOffset) -> str:
    lines, position = file_position
    return lines.file_position(position)


def _parts(location: LocationAttr) -> Iterable[LocationAttr]:
    """The locations in a fused one."""
    return cast("ArrayAttr[LocationAttr]", location.locations).data if isinstance(location, FusedLoc) else ()
