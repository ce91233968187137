"""Generate CHECK lines for FileCheck tests from the output of their RUN lines."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from xdsl.context import Context

from glow_mlir.ir.context import new_context
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.lsp.documentation import defines_symbol
from glow_mlir.tools.lsp.index import Definition, Index, Token, indexes, key

_RUN = re.compile(r"//\s*RUN:\s?(?P<text>.*)$")
_FILECHECK = re.compile(r"^\s*filecheck\b(?P<options>.*)$", re.IGNORECASE)
_PREFIX = re.compile(r"--?check-prefix(?:es)?[ =](?P<names>[\w,-]+)")
_SUFFIXES = "(?:-(?:NEXT|SAME|LABEL|NOT|DAG|COUNT-\\d+|EMPTY))?"
_SPECIAL = re.compile(r"\{\{|\[\[|\}\}|\]\]")
_WRAPPER = "builtin.module {"


@dataclass(frozen=True)
class RunLine:
    """A RUN line piped into FileCheck: its number, the command before FileCheck, and the prefixes."""

    line: int
    command: str
    prefixes: tuple[str, ...]


@dataclass
class Chunk:
    """The checks of one function and of the text before it; `symbol` is empty for the text after the last function."""

    symbol: str
    lines: list[str] = field(default_factory=list[str])


def runs_of(text: str) -> list[RunLine]:
    """The RUN lines that end in FileCheck, with continuation lines joined."""
    found: list[RunLine] = []
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if (match := _RUN.search(line)) is None:
            continue
        begun, first = f"{begun} {match['text'].strip()}".strip(), first or number
        if begun.endswith("\\"):
            begun = begun[:-1].rstrip()
            continue
        command, _, last = begun.rpartition("|")
        if command and (check := _FILECHECK.match(last)) is not None:
            names = [name for option in _PREFIX.finditer(check["options"]) for name in option["names"].split(",")]
            found.append(RunLine(first, command.strip(), tuple(names or ["CHECK"])))
        begun, first = "", 0
    return found


def with_checks(text: str, outputs: Sequence[tuple[str, str]]) -> str:
    """Replace the checks of the test by checks of all lines of the outputs, each with its prefix."""
    context = new_context()
    prefixes = "|".join(re.escape(prefix) for prefix, _ in outputs)
    old = re.compile(rf"^[ \t]*//[ \t]*(?:{prefixes}){_SUFFIXES}:.*\n?", re.MULTILINE)
    text = f"{_without_blank_ends(old.sub('', text)).rstrip()}\n"
    inserted: dict[int, list[str]] = {}
    for prefix, output in outputs:
        chunks = [chunk for index in _indexes(output, context) for chunk in _chunks(output, index, prefix)]
        for offset, chunk in zip(_offsets(text, chunks, context), chunks, strict=True):
            inserted.setdefault(offset, []).extend([*chunk.lines, ""])
    parts: list[str] = []
    begin = 0
    for offset in sorted(inserted):
        parts += [text[begin:offset], "\n".join(inserted[offset])]
        begin = offset
    return "".join([*parts, text[begin:]])


def _without_blank_ends(text: str) -> str:
    """The text without runs of blank lines left by removed checks."""
    return re.sub(r"\n{3,}", "\n\n", text)


def _indexes(text: str, context: Context) -> list[Index]:
    return indexes(text, lambda name: defines_symbol(name, context))


def _offsets(text: str, chunks: Sequence[Chunk], context: Context) -> Iterator[int]:
    """The offset of each chunk: before the function of its name, and not before the previous chunk."""
    functions: dict[str, list[int]] = {}
    for index in _indexes(text, context):
        for item in index.statements:
            if item.symbol is not None and item.name.endswith("func"):
                functions.setdefault(key(item.symbol), []).append(text.rfind("\n", 0, item.start) + 1)
    last = 0
    for chunk in chunks:
        later = [offset for offset in functions.get(chunk.symbol, ()) if offset >= last]
        last = later[0] if later else (last or len(text))
        if later:
            functions[chunk.symbol].remove(last)
        yield last


def _chunks(output: str, index: Index, prefix: str) -> Iterator[Chunk]:
    """The checks of one module of an output, by function."""
    begins = {
        output.rfind("\n", 0, item.start) + 1: key(item.symbol)
        for item in index.statements
        if item.symbol is not None and item.name.endswith("func")
    }
    names = _Variables(index)
    chunk, fresh, inside = Chunk(""), True, False
    offset = index.scopes[0].start
    text = output[offset : index.scopes[0].end]
    wrapped = text.strip().startswith(_WRAPPER)
    lines = text.splitlines(keepends=True)
    last = max((number for number, line in enumerate(lines) if line.strip()), default=-1)
    for number, line in enumerate(lines):
        is_wrapper = wrapped and (line.strip() == _WRAPPER or (number == last and line.strip() == "}"))
        if line.strip() and not is_wrapper:
            symbol = begins.get(offset)
            if symbol is not None:
                if inside:
                    yield chunk
                    chunk = Chunk("")
                chunk.symbol, inside = symbol, True
                names.reset()
                chunk.lines += _header(names, offset, line.rstrip("\n"), prefix)
            else:
                directive = prefix if fresh else f"{prefix}-NEXT"
                chunk.lines.append(f"// {directive}: {names.pattern(offset, line.rstrip())}")
            fresh = False
        else:
            fresh = True  # The next check follows unchecked lines.
        offset += len(line)
    if chunk.lines:
        yield chunk


def _header(names: _Variables, offset: int, line: str, prefix: str) -> Iterator[str]:
    """The checks of a function's first line: the label, which cannot contain variables, and the rest."""
    label, bracket, rest = line.partition("(")
    yield f"// {prefix}-LABEL: {_escaped(label.strip())}{bracket}"
    if rest:
        yield f"// {prefix}-SAME: {names.pattern(offset + len(label) + len(bracket), rest)}"


class _Variables:
    """FileCheck variables for the values of a module, named after the values; each function has its own."""

    def __init__(self, index: Index) -> None:
        self.values = [token for token in index.tokens if token.kind == "value"]
        self.starts = [token.start for token in self.values]
        self.index = index
        self.reset()

    def reset(self) -> None:
        """Forget all variables."""
        self._names: dict[Definition, str] = {}

    def pattern(self, offset: int, line: str) -> str:
        """A line of the output as a FileCheck pattern."""
        parts: list[str] = []
        begin = offset
        for token in self.values[bisect_left(self.starts, offset) : bisect_left(self.starts, offset + len(line))]:
            if token.start < begin:
                continue
            parts += [_escaped(line[begin - offset : token.start - offset]), self._variable(token)]
            begin = token.start + len(key(token))
        return "".join([*parts, _escaped(line[begin - offset :])])

    def _variable(self, token: Token) -> str:
        """The variable of a value: captured at its first use, and matched afterwards."""
        definition = self.index.resolve(token)
        if definition is None:
            return token.text
        if (known := self._names.get(definition)) is not None:
            return f"%[[{known}]]"
        stem = re.sub(r"\W", "_", key(token)[1:], flags=re.ASCII).upper()
        stem = stem if stem[:1].isalpha() else f"V{stem.lstrip('_')}"
        taken = set(self._names.values())
        name, number = stem, 0
        while name in taken:
            number += 1
            name = f"{stem}_{number}"
        self._names[definition] = name
        return f"%[[{name}:.*]]"


def _escaped(text: str) -> str:
    """Escape a text so that FileCheck sees no pattern in it."""
    return _SPECIAL.sub(lambda found: "{{" + "".join(f"\\{char}" for char in found[0]) + "}}", text)


Runner = Callable[[RunLine], str]
"""Runs the command of a RUN line before FileCheck, and returns its output."""


def generate(text: str, chosen: Sequence[str], runner: Runner) -> str:
    """The test with checks for the `chosen` prefixes; by default for all RUN lines that are not expected to fail."""
    outputs: list[tuple[str, str]] = []
    for run in runs_of(text):
        wanted = [prefix for prefix in run.prefixes if prefix in chosen] if chosen else run.prefixes[:1]
        new = [prefix for prefix in wanted if prefix not in dict(outputs)]
        if new and (chosen or not run.command.startswith("not ")):
            outputs += [(prefix, output) for output in [runner(run)] for prefix in new]
    return with_checks(text, outputs) if outputs else text
