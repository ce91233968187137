"""A document in an editor: its problems, the meaning of its names, and completions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from glow_mlir.errors import GlowError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.locations import source_location
from glow_mlir.ir.text import parse_unverified, verify_module
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.command_line import diagnostics, message
from glow_mlir.tools.lsp.documentation import (
    attribute_names,
    defines_symbol,
    operation_class,
    operation_names,
    proposal,
)
from glow_mlir.tools.lsp.index import Definition, Index, Statement, Token, indexes, key
from glow_mlir.tools.lsp.operation_documents import operation_document
from glow_mlir.tools.mlir_text.source_lines import position
from glow_mlir.tools.mlir_text.split_input import pieces

NAME = "<document>"
"""The file name that parsers use for the document."""

OFFERED = ("glow_high", "glow_low", "llvm", "arith", "builtin")
"""Dialects whose operations are proposed before any dialect is typed."""

QUALIFIERS = ("@in", "@inout", "@out", "@scratch")
"""Prefix of operands in `glow_low`; they look like symbols."""

_UNDEFINED = re.compile(r"used but not defined: \[(%[\w$.-]+)")
_TYPED = re.compile(r"[%@^#!]?[\w$.-]*$")


@dataclass(frozen=True)
class Problem:
    """A problem in the text from `start` to `end`, with related places."""

    start: int
    end: int
    text: str
    related: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """A completion: the text, its kind, and a description."""

    text: str
    kind: str
    """`operation`, `attribute`, `value`, `symbol` or `block`."""
    detail: str = ""


class Document:
    """One version of a text. Everything is computed on demand."""

    def __init__(self, text: str) -> None:
        # Keep the editor's offsets, whatever the line endings are.
        self.text = text.replace("\r\n", " \n").replace("\r", "\n")
        self.context: Context = new_context()
        self._line_starts = [0, *(found.end() for found in re.finditer("\n", self.text))]

    @cached_property
    def indexes(self) -> list[Index]:
        """The names of each module of the text."""
        return indexes(self.text, lambda name: defines_symbol(name, self.context))

    @cached_property
    def _parsed(self) -> tuple[list[ModuleOp], list[GlowError]]:
        """The modules of all pieces that parse, and the errors of all pieces."""
        modules: list[ModuleOp] = []
        errors: list[GlowError] = []
        for piece in pieces(self.text):
            try:
                module = parse_unverified(piece, self.context, NAME)
                modules.append(module)
                verify_module(module, NAME)
            except GlowError as error:
                errors.append(error)
        return modules, errors

    @cached_property
    def _operations(self) -> Mapping[int, Operation]:
        """Offset → the operation that begins there, for pieces that parse."""
        found: dict[int, Operation] = {}
        for module in self._parsed[0]:
            for op in module.walk():
                if (offset := self._offset(source_location(op))) is not None:
                    found.setdefault(offset, op)
        return found

    def _offset(self, location: str) -> int | None:
        """The offset of `file:line:column`; `None` if it is not in the text."""
        found = position(location)
        if found is None or found.file != NAME or found.line > len(self.lines):
            return None
        return min(self._line_starts[found.line - 1] + found.column - 1, len(self.text))

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.text.split("\n")

    def location(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 0, in characters."""
        line = bisect_right(self._line_starts, offset) - 1
        return line, offset - self._line_starts[line]

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column from 0, limited to the end of the line."""
        if line >= len(self.lines):
            return len(self.text)
        return self._line_starts[line] + min(column, len(self.lines[line]))

    def index_at(self, offset: int) -> Index:
        """The names of the module at an offset."""
        return next((index for index in reversed(self.indexes) if index.scopes[0].start <= offset), self.indexes[0])

    # ---- what is wrong ----------------------------------------------------------------------------------------

    def problems(self) -> list[Problem]:
        """All errors of parser and verifiers."""
        found: list[Problem] = []
        for error in self._parsed[1]:
            for severity, item in diagnostics(error):
                problem = self._problem(item)
                if severity == "note" and found:
                    found[-1] = Problem(found[-1].start, found[-1].end, found[-1].text, (*found[-1].related, problem))
                else:
                    found.append(problem)
        return found

    def _problem(self, error: GlowError) -> Problem:
        """An error at the operation name or token that it concerns, else on the first line."""
        start = self._undefined(error) or self._offset(error.file)
        text = message(error)
        if start is None:
            return Problem(0, self.offset(0, len(self.text)), text)
        index = self.index_at(start)
        statement = index.statement_at(start)
        if statement is not None and statement.start == start:
            return Problem(statement.name_start, statement.name_end, text)
        token = index.token_at(start)
        return Problem(start, max(token.end if token is not None else start, min(start + 1, len(self.text))), text)

    def _undefined(self, error: GlowError) -> int | None:
        """The first use of a value that is never defined; xDSL's parser notices this only at the end of the text."""
        found, end = _UNDEFINED.search(error.reason), self._offset(error.file)
        if found is None or end is None:
            return None
        index = self.index_at(end)
        return next(
            (token.start for token in index.tokens if token.text == found[1] and not index.resolve(token)), None
        )

    # ---- what names mean --------------------------------------------------------------------------------------

    def token_at(self, offset: int) -> Token | None:
        """The name at an offset."""
        token = self.index_at(offset).token_at(offset)
        return None if token is None or token.text in QUALIFIERS else token

    def definition(self, offset: int) -> Definition | None:
        """The definition of the name at an offset."""
        token = self.token_at(offset)
        return None if token is None else self._meaning(token)

    def _meaning(self, token: Token) -> Definition | None:
        index = self.index_at(token.start)
        if token.kind == "string":  # A symbol name in generic form.
            return index.definitions.get(token.start)
        return index.resolve(token) if token.kind in ("value", "symbol", "block", "alias") else None

    def references(self, offset: int) -> list[Token]:
        """All names with the same meaning as the one at an offset, the definition first."""
        definition = self.definition(offset)
        return [] if definition is None else self.index_at(offset).references(definition)

    def hover(self, offset: int) -> tuple[Token, str] | None:
        """The name at an offset, and its description as Markdown."""
        token = self.token_at(offset)
        if token is None:
            return None
        if (definition := self._meaning(token)) is not None:
            return token, self._about(definition)
        statement = self.index_at(offset).statement_at(offset)
        if statement is None or not statement.name_start <= offset <= statement.name_end:
            return None
        kind = operation_class(statement.name, self.context)
        return (
            None
            if kind is None
            else (token, f"**{kind.name}**\n\n{operation_document(kind)}{self._operands(statement)}")
        )

    def _about(self, definition: Definition) -> str:
        """The description of a name: a value with its type, or the line that defines it."""
        name = key(definition.token)
        if definition.kind in ("result", "argument"):
            type_ = self.type_of(definition)
            origin = definition.statement.name if definition.statement is not None else ""
            code = f"{name} : {type_}" if type_ else name
            what = "result" if definition.kind == "result" else "argument"
            return f"```mlir\n{code}\n```\n\n{what} {f'of `{origin}`' if origin else ''}".rstrip()
        line, _ = self.location(definition.token.start)
        code = self.text[self._line_starts[line] : self.offset(line, len(self.text))].strip()
        return f"```mlir\n{code}\n```"

    def type_of(self, definition: Definition) -> str:
        """The type of a value, from the parser or else from the text next to the value; may be empty."""
        op = self._operations.get(definition.statement.start) if definition.statement is not None else None
        if op is None or definition.statement is None:
            return definition.type
        if definition.kind == "result":
            one_each = len(op.results) == len(definition.statement.results)
            return str(op.results[definition.number].type) if one_each else ", ".join(str(r.type) for r in op.results)
        blocks = [region.block for region in op.regions if len(region.blocks) == 1]
        arguments = [block.args[definition.number] for block in blocks if definition.number < len(block.args)]
        return definition.type or (str(arguments[0].type) if arguments else "")

    def _operands(self, statement: Statement) -> str:
        """The operands and results of an operation with their types; empty if the text does not parse."""
        op = self._operations.get(statement.start)
        if op is None:
            return ""
        operands = ", ".join(str(value.type) for value in op.operands)
        results = ", ".join(str(value.type) for value in op.results)
        return f"\n\nHere:\n\n```mlir\n({operands}) -> ({results})\n```"

    # ---- what can be typed ------------------------------------------------------------------------------------

    def proposals(self, offset: int) -> tuple[int, list[Proposal]]:
        """The completions at an offset, and the offset where they begin; the editor filters by the typed text."""
        line_start = self._line_starts[self.location(offset)[0]]
        typed = _TYPED.search(self.text, line_start, offset)
        start = typed.start() if typed is not None else offset
        sigil = self.text[start : start + 1] if start < offset else ""
        index = self.index_at(offset)
        if sigil == "%":
            return start, self._names(index, start, ("result", "argument"), "value")
        if sigil == "@":
            marks = [Proposal(mark, "symbol") for mark in QUALIFIERS if self._is_low(index, offset)]
            return start, [*marks, *self._names(index, start, ("symbol",), "symbol")]
        if sigil == "^":
            return start, self._names(index, start, ("block",), "block")
        if sigil in ("#", "!"):
            return start, self._names(index, start, ("alias",), "value")
        if (statement := self._attributes_of(index, start)) is not None:
            found = attribute_names(statement.name, self.context)
            return start, [Proposal(name, "attribute", kind.strip("`")) for name, kind in found.items()]
        return start, self._operation_proposals(self.text[start:offset])

    def _names(self, index: Index, offset: int, kinds: tuple[str, ...], kind: str) -> list[Proposal]:
        visible = index.visible(offset, kinds)
        return [
            Proposal(name, kind, self.type_of(item) if item.kind in ("result", "argument") else "")
            for name, item in visible.items()
        ]

    @staticmethod
    def _is_low(index: Index, offset: int) -> bool:
        """Whether operands carry a prefix at an offset."""
        statement = index.statement_at(offset)
        return statement is not None and statement.name.startswith("glow_low.")

    def _attributes_of(self, index: Index, offset: int) -> Statement | None:
        """The operation whose attribute dictionary contains an offset; `None` inside the braces of a region."""
        scope = index.scope_at(offset)
        if scope.parent is None or not scope.start < offset:
            return None
        before = self.text[scope.start + 1 : offset]
        statement = index.statement_at(scope.start)
        is_region = "\n" in before or any(scope.start < item.start < scope.end for item in index.statements)
        return None if is_region else statement

    def _operation_proposals(self, typed: str) -> list[Proposal]:
        """The operations of the typed dialect, or of the common dialects."""
        dialect, dot, _ = typed.partition(".")
        used = {item.name.partition(".")[0] for index in self.indexes for item in index.statements}
        dialects = [dialect] if dot else list(dict.fromkeys([*OFFERED, *sorted(used)]))
        return [
            Proposal(name, "operation", proposal(name, self.context))
            for dialect in dialects
            for name in operation_names(dialect, self.context)
        ]
