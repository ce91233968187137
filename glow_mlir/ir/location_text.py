"""
Locations in text: `loc("f.py":17:63 to :78)`, `loc("jit(f)/add"(#loc3))`, `loc(callsite("g" at "f"))`, their aliases.

MLIR writes the aliases of locations, `#loc3 = loc(…)`, behind the operations that use them. They are read when the
first location refers to one that is not known yet.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.mlir_lexer import MLIRTokenKind

_DEFINITION = "\n#"
"""How the definition of an alias begins: at the start of a line."""


class LocationParser(Parser):
    """
    A parser of all locations that MLIR writes.

    Of a range, `"f.py":17:63 to 18:78`, the start is kept.
    """

    _later: dict[str, int] | None = None
    """Alias → the position of its definition, for those behind the first use of one that is unknown."""

    _ends: dict[int, int]
    """Position of a definition that was read before its turn → the position behind it."""

    def _parse_location(self) -> LocationAttr:
        if self._current_token.kind == MLIRTokenKind.HASH_IDENT:
            return self._parse_location_alias()
        if self.parse_optional_keyword("unknown") is not None:
            return UnknownLoc()
        if (text := self.parse_optional_str_literal()) is not None:
            return self._parse_named(StringAttr(text))
        word = self.parse_identifier(" in location")
        if word == "callsite":
            with self.in_parens():
                callee = self._parse_location()
                self.parse_keyword("at")
                return CallSiteLoc(callee, self._parse_location())
        if word == "fused":
            metadata: Attribute = NoneAttr()
            if self.parse_optional_punctuation("<") is not None:
                metadata = self.parse_attribute()
                self.parse_punctuation(">")
            parts = self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)
            return FusedLoc(tuple(parts), metadata)
        self.raise_error(f"unknown kind of location '{word}'")

    def _parse_named(self, text: StringAttr) -> LocationAttr:
        """Read what follows a string: a position in that file, or what the name stands for."""
        if self.parse_optional_punctuation("(") is not None:
            inner = self._parse_location()
            self.parse_punctuation(")")
            return NameLoc(text, inner)
        if self.parse_optional_punctuation(":") is None:
            return NameLoc(text, NoneAttr())
        line = self._parse_number()
        column = self._parse_number() if self.parse_optional_punctuation(":") is not None else 0
        if self.parse_optional_keyword("to") is not None:
            if self.parse_optional_punctuation(":") is None:
                self._parse_number()
                self.parse_punctuation(":")
            self._parse_number()
        return FileLineColLoc(text, IntAttr(line), IntAttr(column))

    def _parse_number(self) -> int:
        return self.parse_integer(allow_boolean=False, allow_negative=False)

    def _parse_location_alias(self) -> LocationAttr:
        name = self._current_token.text
        if name not in self.attribute_aliases:
            self._read_definitions(name)
        found = self.parse_attribute()
        if not isinstance(found, LocationAttr):
            self.raise_error(f"'{name}' is not a location")
        return found

    def _read_definitions(self, name: str) -> None:
        """
        Read the definition of an alias that stands further behind, and those that it refers to.

        The first time, all are read in their order, in which they mostly refer to those before.
        """
        is_first = self._later is None
        if self._later is None:
            self._later, self._ends = self._definitions(), {}
        resumed = self._current_token.span.start
        for each in [*self._later] if is_first else [name]:
            position = self._later.pop(each, -1)
            if position >= 0:  # The reader of attributes tells of others.
                self._resume_from(position)
                self._parse_alias_def()
                self._ends[position] = self._current_token.span.start
        self._resume_from(resumed)

    def _definitions(self) -> dict[str, int]:
        """Alias → position of its definition, for all behind this position."""
        text = self.lexer.input.content
        found: dict[str, int] = {}
        at = text.find(_DEFINITION, self.pos)
        while at >= 0:
            end = text.find(" ", at)
            if text.startswith(" = loc(", end):
                found.setdefault(text[at + 1 : end], at + 1)
            at = text.find(_DEFINITION, at + 1)
        return found

    def _parse_alias_def(self) -> None:
        behind = self._ends.get(self._current_token.span.start) if self._later is not None else None
        if behind is None:
            super()._parse_alias_def()
        else:
            self._resume_from(behind)
