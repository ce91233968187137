"""
An index of the names in MLIR text: definitions and uses of values, symbols and blocks.

It is lexical, based only on tokens and brackets, so it also works on incomplete text that does not parse. Positions are
character offsets.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import cached_property

from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.mlir_text.split_input import spans

_TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*)
    | (?P<string>"(?:[^"\\\n]|\\.)*"?)
    | (?P<value>%[\w$.-]+(?:\#\d+)?)
    | (?P<symbol>@(?:"(?:[^"\\\n]|\\.)*"|[\w$.-]+))
    | (?P<block>\^[\w$.-]+)
    | (?P<alias>[\#!][\w$.]+)
    | (?P<word>[^\W\d][\w$]*(?:\.[\w$]+)*)
    | (?P<number>\d[\w.]*(?:[+-]\d+)?)
    | (?P<mark>->|::|[^\s])
    """,
    re.VERBOSE,
)
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


@dataclass(frozen=True)
class Token:
    """A token of the text; `kind` is the group name in the token grammar."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.start + len(self.text)


@dataclass(eq=False)
class Statement:
    """An operation in the text: its name, extent, and definitions."""

    name: str
    start: int
    name_start: int
    parent: Statement | None
    end: int = 0
    results: list[Token] = field(default_factory=list[Token])
    symbol: Token | None = None

    @property
    def name_end(self) -> int:
        """The offset after the name."""
        return self.name_start + len(self.name)


@dataclass(eq=False)
class Scope:
    """The contents of a pair of braces, or a module; it sees its own names and those of enclosing scopes."""

    start: int
    parent: Scope | None
    end: int = 0
    names: dict[str, list[Definition]] = field(default_factory=dict[str, "list[Definition]"])

    def around(self) -> Iterator[Scope]:
        """This scope, then the enclosing scopes, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


@dataclass(eq=False)
class Definition:
    """A definition: a result or argument of `statement`, a symbol, or a block."""

    token: Token
    kind: str
    """`result`, `argument`, `symbol`, `block` or `alias`."""
    statement: Statement | None
    number: int = 0
    """The number of the result or argument in its statement."""
    type: str = ""
    """The type, if it is written next to the name."""


@dataclass(eq=False)
class Index:
    """The names of one module."""

    tokens: list[Token]
    statements: list[Statement]
    scopes: list[Scope]
    definitions: dict[int, Definition]
    """Offset of a name → its definition."""

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self.tokens]

    @cached_property
    def _scope_starts(self) -> list[int]:
        return [scope.start for scope in self.scopes]

    def token_at(self, offset: int) -> Token | None:
        """The token at an offset, or ending there."""
        number = bisect_right(self._starts, offset) - 1
        if number >= 0 and offset <= self.tokens[number].end:
            # Between two adjacent tokens, prefer a name to punctuation.
            before = self.tokens[number - 1] if number > 0 else None
            at = self.tokens[number]
            return before if at.kind == "mark" and before is not None and before.end == offset else at
        return None

    def scope_at(self, offset: int) -> Scope:
        """The innermost scope around an offset."""
        scope = self.scopes[max(0, bisect_right(self._scope_starts, offset) - 1)]
        return next((item for item in scope.around() if offset <= item.end), self.scopes[0])

    def statement_at(self, offset: int) -> Statement | None:
        """The innermost operation around an offset."""
        inside = [item for item in self.statements if item.start <= offset <= item.end]
        return max(inside, key=lambda item: item.start, default=None)

    def resolve(self, token: Token) -> Definition | None:
        """The definition of a name where it is used."""
        if (own := self.definitions.get(token.start)) is not None:
            return own
        for scope in self.scope_at(token.start).around():
            if found := scope.names.get(key(token)):
                before = [item for item in found if item.token.start < token.start]
                return (before or found)[-1 if before else 0]
        return None

    def references(self, definition: Definition) -> list[Token]:
        """All tokens with the same definition, the defining one first."""
        name = key(definition.token)
        named = [token for token in self.tokens if key(token) == name and token is not definition.token]
        return [definition.token, *(token for token in named if self.resolve(token) is definition)]

    def visible(self, offset: int, kinds: Sequence[str]) -> dict[str, Definition]:
        """Name → its definition, for names usable at an offset; values and aliases only after their definition."""
        found: dict[str, Definition] = {}
        for scope in self.scope_at(offset).around():
            for name, definitions in scope.names.items():
                for item in definitions:
                    if item.kind in kinds and _is_defined(item, offset):
                        found.setdefault(name, item)
        return found


def _is_defined(item: Definition, offset: int) -> bool:
    """Whether a name can be used at an offset: symbols and blocks anywhere, results after their operation."""
    if item.kind in ("symbol", "block"):
        return True
    behind = item.statement.end if item.kind == "result" and item.statement is not None else item.token.end
    return behind < offset


def key(token: Token) -> str:
    """The name of a token: `%a#1` refers to `%a`, and `@"f"` to `@f`."""
    if token.kind == "value":
        return token.text.partition("#")[0]
    if token.kind == "symbol":
        return "@" + token.text[1:].strip('"')
    return token.text


def indexes(text: str, defines_symbol: Callable[[str], bool]) -> list[Index]:
    """The index of each module of a text; `defines_symbol` tells whether operations of a name define a symbol."""
    return [_Indexer(text, begin, end, defines_symbol).index() for begin, end in spans(text)]


def tokens(text: str, begin: int, end: int) -> list[Token]:
    """The tokens of a part of a text, without comments."""
    found = ((match.lastgroup or "", match) for match in _TOKEN.finditer(text, begin, end))
    return [Token(kind, match[0], match.start()) for kind, match in found if kind != "comment"]


@dataclass
class _Bracket:
    """An open bracket: its closing bracket, the enclosing statement, and the scope that it opened."""

    closing: str
    statement: Statement | None
    scope: Scope | None
    kind: str = ""
    """The kind of typed names inside: `header` of a function, `block` label, or empty."""


class _Indexer:
    """Index the tokens of one module in order."""

    def __init__(self, text: str, begin: int, end: int, defines_symbol: Callable[[str], bool]) -> None:
        self.text, self.begin, self.end = text, begin, end
        self.defines_symbol = defines_symbol
        self.tokens = tokens(text, begin, end)
        self.statements: list[Statement] = []
        self.scopes = [Scope(begin, None, end)]
        self.definitions: dict[int, Definition] = {}
        self.open: list[_Bracket] = [_Bracket("", None, self.scopes[0])]
        self.statement: Statement | None = None
        self.pending: dict[int, list[Definition]] = {}
        """Start of a statement → arguments of its regions, which are visible in each of its braces."""

    def index(self) -> Index:
        """The index."""
        for number, token in enumerate(self.tokens):
            self._take(number, token)
        while self.open:
            self._close(len(self.tokens))
        return Index(self.tokens, self.statements, self.scopes, self.definitions)

    @property
    def scope(self) -> Scope:
        """The innermost scope."""
        return next(bracket.scope for bracket in reversed(self.open) if bracket.scope is not None)

    def _at(self, number: int) -> Token:
        """The token with a number; an empty token beyond the ends."""
        return self.tokens[number] if 0 <= number < len(self.tokens) else Token("", "", self.end)

    def _take(self, number: int, token: Token) -> None:
        if token.kind in ("word", "string") and (start := self._begins_statement(number)) is not None:
            self._begin_statement(start, number)
        elif token.kind == "value":
            self._value(number, token)
        elif token.kind == "symbol":
            self._symbol(number, token)
        elif token.kind == "string":
            self._symbol_name(number, token)
        elif token.kind in ("block", "alias"):
            self._label(number, token)
        elif token.text in _CLOSING:
            self._open_bracket(number, token)
        elif token.kind == "mark":
            self._close_bracket(number, token)

    def _begins_statement(self, number: int) -> int | None:
        """The number of the first token of the operation that this name starts; `None` if it starts none."""
        token, after = self.tokens[number], self._at(number + 1).text
        if token.kind == "string" and ("." not in token.text or after != "("):
            return None
        start = self._first_result(number) if self._at(number - 1).text == "=" else number
        if start is None or not self._on_new_line(start):
            return None
        is_name = "." in token.text or start < number or token.text in ("module", "func")
        return start if is_name and after not in ("=", ",") else None

    def _first_result(self, number: int) -> int | None:
        """The number of the first value before the `=` that precedes a token."""
        start = number - 2
        while True:
            if self._at(start).kind == "number" and self._at(start - 1).text == ":":
                start -= 2
            if self._at(start).kind != "value":
                return None
            if self._on_new_line(start) or self._at(start - 1).text != ",":
                return start
            start -= 2

    def _on_new_line(self, number: int) -> bool:
        """Whether a token is the first of its line or region, or follows a block label."""
        before = self._at(number - 1)
        between = self.text[before.end : self.tokens[number].start]
        return number == 0 or "\n" in between or before.text in ("{", "}", ":")

    def _begin_statement(self, start: int, number: int) -> None:
        while self.open[-1].closing not in ("", "}"):  # Unclosed: no operation begins inside.
            self._close(start)
        self._end_statement(start)
        name = self.tokens[number]
        parent = next((item.statement for item in reversed(self.open) if item.scope is not None), None)
        begin = name.start + (name.kind == "string")
        statement = Statement(name.text.strip('"'), self.tokens[start].start, begin, parent)
        self.statement = statement
        self.statements.append(statement)
        for token in self.tokens[start:number]:
            if token.kind == "value":
                definition = Definition(token, "result", statement, len(statement.results))
                statement.results.append(token)
                self._define(self.scope, definition)

    def _end_statement(self, number: int) -> None:
        """End the statement in the innermost braces before a token."""
        if self.statement is not None:
            self.statement.end = max(self._at(number - 1).end, self.statement.name_end)
            self.pending.pop(self.statement.start, None)
            self.statement = None

    def _value(self, number: int, token: Token) -> None:
        if token.start in self.definitions:
            return
        after, bracket = self._at(number + 1).text, self.open[-1]
        counts = self.statement is not None and self._at(number - 1).end == self.statement.name_end
        if after == ":" and bracket.kind == "block":
            self._define(self.scope, Definition(token, "argument", self.statement, type=self._type(number + 2)))
        elif counts and self.statement and self.statement.name.endswith(".loop"):
            self._argument(token, "")  # `glow_high.loop %i while %go` has no `=` after the iteration number.
        elif (after == ":" and bracket.kind == "header") or (after == "=" and not self._names_operation(number + 2)):
            self._argument(token, self._type(number + 2) if after == ":" else "")

    def _names_operation(self, number: int) -> bool:
        """Whether a token after a `=` is the name of an operation."""
        token = self._at(number)
        return token.kind == "word" or (token.kind == "string" and self._at(number + 1).text == "(")

    def _argument(self, token: Token, type_: str) -> None:
        """Add an argument of the regions of the current operation."""
        if self.statement is not None:
            arguments = self.pending.setdefault(self.statement.start, [])
            definition = Definition(token, "argument", self.statement, len(arguments), type_)
            arguments.append(definition)
            self.definitions[token.start] = definition

    def _type(self, number: int) -> str:
        """The text of the type that starts at a token, up to the comma or bracket after it."""
        depth, start = 0, self._at(number).start
        while (token := self._at(number)).kind:
            if token.text in _CLOSING:
                depth += 1
            elif token.text in _CLOSING.values():
                if depth == 0:
                    break
                depth -= 1
            elif token.text in (",", "=") and depth == 0:
                break
            number += 1
        return " ".join(self.text[start : token.start].split())

    def _symbol(self, number: int, token: Token) -> None:
        """Define a symbol that follows the name of an operation that defines one."""
        statement = self.statement
        if statement is None or statement.symbol is not None or not self.defines_symbol(statement.name):
            return
        first = number
        while self._at(first - 1).kind == "word" and self._at(first - 1).start > statement.name_start:
            first -= 1  # For example `private`.
        if self._at(first - 1).end in (statement.name_end, statement.name_end + 1):
            self._define_symbol(statement, token)

    def _symbol_name(self, number: int, token: Token) -> None:
        """In generic form, `sym_name = "f"` defines `@f`."""
        statement = next((item.statement for item in reversed(self.open) if item.statement is not None), None)
        if statement is not None and [self._at(number - 2).text, self._at(number - 1).text] == ["sym_name", "="]:
            self._define_symbol(statement, Token("symbol", f"@{token.text}", token.start))

    def _define_symbol(self, statement: Statement, token: Token) -> None:
        statement.symbol = token
        self._define(self.scopes[0], Definition(token, "symbol", statement))

    def _label(self, number: int, token: Token) -> None:
        """Define a block label or an attribute alias at the start of a line."""
        if not self._on_new_line(number) or self.open[-1].closing not in ("", "}"):
            return
        if token.kind == "block":
            self._define(self.scope, Definition(token, "block", self.statement))
        elif self._at(number + 1).text == "=":
            self._define(self.scopes[0], Definition(token, "alias", None))

    def _define(self, scope: Scope, definition: Definition) -> None:
        scope.names.setdefault(key(definition.token), []).append(definition)
        self.definitions[definition.token.start] = definition

    def _open_bracket(self, number: int, token: Token) -> None:
        before = self._at(number - 1)
        bracket = _Bracket(_CLOSING[token.text], self.statement, None)
        if token.text == "{":
            bracket.scope = Scope(token.start, self.scope)
            self.scopes.append(bracket.scope)
            for definition in self.pending.get(self.statement.start if self.statement else -1, ()):
                bracket.scope.names.setdefault(key(definition.token), []).append(definition)
            self.statement = None
        elif token.text == "(" and before.kind == "block" and before.start in self.definitions:
            bracket.kind = "block"
        elif token.text == "(" and self._is_header(before):
            bracket.kind = "header"
        elif token.text == "<" and before.end != token.start:
            return  # A comparison in the constraints of an affine map.
        self.open.append(bracket)

    def _is_header(self, before: Token) -> bool:
        """Whether a parenthesis after that token holds the arguments of a function, or of a reducer of StableHLO."""
        if self.statement is None:
            return False
        is_reducer = before.text == "reducer" or (before.text == ")" and self.statement.start in self.pending)
        return before is self.statement.symbol or (is_reducer and self.statement.name.endswith(".reduce"))

    def _close_bracket(self, number: int, token: Token) -> None:
        """Close the innermost bracket of that kind; brackets still open inside it were never closed."""
        if token.text != "}" and self.open[-1].closing != token.text:
            return  # Only a brace closes unclosed brackets.
        if all(item.closing != token.text for item in self.open):
            return
        while self._close(number) != token.text:
            pass

    def _close(self, number: int) -> str:
        """Close the innermost bracket at a token; return its closing bracket."""
        bracket = self.open.pop()
        if bracket.scope is not None:
            self._end_statement(number)
            bracket.scope.end = self._at(number).start
            self.statement = bracket.statement
        return bracket.closing
