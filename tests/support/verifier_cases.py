"""
Rows that say what a verifier refuses: `name(operands) {properties} -> results | message`.

A file below `tests/dialects/verifiers/<dialect>` has rows of that dialect. An operand is a type, and `none` where an
optional one is absent; a shape such as `2x3xf32` is the tensor or the memref of the dialect. Operands of instructions
have their qualifier, as in `copy(@out 4xf32, @in 4xf32)`; without one, as in StableHLO, the row is parsed in the
generic form. A row without operands in parentheses, such as `placeholder @x : tensor<2xf32>`, is parsed as it stands.
The message is whole, except that `…` stands for the rest of a list. A row goes on in indented lines, and `//` begins a comment. Behind a line
`// PASSES: …`, passes run on the module, and report the error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.driver.pipelines import parse_pipeline
from glow_mlir.errors import GlowError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.tools.command_line import diagnostics, message

SEPARATOR = " | "
"""It stands between an operation and its message."""

_CONTAINERS = {"glow_high": "tensor", "glow_low": "memref", "stablehlo": "tensor", "chlo": "tensor"}
_OF_MLIR = ("stablehlo", "chlo")
"""Dialects whose operations are in functions of MLIR, and in the generic form."""
_OF_ARGUMENTS = ("@in", "@out", "@inout")
_PASSES = "// PASSES: "
_OPENING, _CLOSING = "<[({", ">])}"


class RowError(Exception):
    """A row that is no case."""


@dataclass(frozen=True)
class Operand:
    """An operand of a row: its value, its qualifier, and its type, which is `none` if it is absent."""

    value: str
    qualifier: str
    type: str

    @property
    def text(self) -> str:
        """The operand in the text of the operation."""
        return f"{self.qualifier} {'none' if self.type == 'none' else self.value}".lstrip()

    @property
    def is_allocated(self) -> bool:
        """Whether it is allocated in the function: arguments are dense, and no scratch."""
        return self.qualifier == "@scratch" or "strided" in self.type


@dataclass(frozen=True)
class Row:
    """A row of a file: its line, the dialect, the operation, the message of the verifier, and passes to run."""

    location: str
    dialect: str
    operation: str
    message: str
    passes: str = ""

    @property
    def name(self) -> str:
        """The full name of the operation."""
        return f"{self.dialect}.{re.split(r'[ (]', self.operation, maxsplit=1)[0]}"

    @property
    def module(self) -> str:
        """The text of a module whose last line but one, or only line, is the operation."""
        if not re.match(r"\w+\(", self.operation):
            return f"{self.dialect}.{self.operation}"
        before, *behind = divided(self.operation, " -> ")
        _, inside, properties = re.split(r"[()]", before, maxsplit=2)
        operands = [self._operand(number, text) for number, text in enumerate(divided(inside, ", "))]
        results = [self._type(text) for part in behind for text in divided(part, ", ")]
        return self._function(operands, self._operation(operands, properties, results))

    def found(self) -> list[tuple[int | None, str]]:
        """The diagnostics of the module: line and message, without the name of the operation in front."""
        try:
            module = parse_module(self.module, context := new_context(), self.location)
            if self.passes:
                PassRunner(context).run(parse_pipeline(self.passes).passes, module)
        except GlowError as error:
            return [(_line(item), message(item).removeprefix(f"{self.name}: ")) for _, item in diagnostics(error)]
        return []

    def fault(self) -> str:
        """Compare the diagnostics with the row: the difference, or nothing."""
        line, found = max(1, self.module.count("\n")), self.found()
        if [at for at, _ in found] == [line] and self._is_message(found[0][1]):
            return ""
        reported = "; ".join(f"line {at}: {text}" for at, text in found) or "nothing"
        return f"{self.location}: {self.operation}\n  expected: line {line}: {self.message}\n  found:    {reported}"

    def _is_message(self, text: str) -> bool:
        begin, more, _ = self.message.partition("…")
        return text.startswith(begin) if more else text == begin

    def _operand(self, number: int, text: str) -> Operand:
        qualifier, _, type_ = text.partition(" ") if text.startswith("@") else ("", "", text)
        return Operand(f"%operand{number}", qualifier, type_ if type_ == "none" else self._type(type_))

    def _type(self, text: str) -> str:
        container = _CONTAINERS[self.dialect]
        return text if text.startswith(f"{container}<") else f"{container}<{text}>"

    def _operation(self, operands: Sequence[Operand], properties: str, results: Sequence[str]) -> str:
        """The operation in its own syntax, or in the generic form where an instruction has operands of no qualifier."""
        names = ", ".join(f"%result{number}" for number in range(len(results)))
        assigned, types = f"{names} = " if names else "", ", ".join(results)
        is_generic = operands and self.dialect == "glow_low" and not any(operand.qualifier for operand in operands)
        if is_generic or self.dialect in _OF_MLIR:
            values = ", ".join(operand.value for operand in operands)
            of_types = ", ".join(operand.type for operand in operands)
            return f'{assigned}"{self.name}"({values}){properties} : ({of_types}) -> ({types})'
        words = f"{self.name} {', '.join(operand.text for operand in operands)}".rstrip()
        return f"{assigned}{words}{properties}{' : ' if types else ''}{types}"

    def _function(self, operands: Sequence[Operand], operation: str) -> str:
        """A function around the operation, whose arguments are the operands."""
        arguments: list[str] = []
        lines: list[str] = []
        for operand in operands:
            if operand.is_allocated:
                lines.append(f"  {operand.value} = glow_low.alloc : {operand.type}")
            elif operand.type != "none":
                qualifier = operand.qualifier if operand.qualifier in _OF_ARGUMENTS else "@in"
                in_front = f"{qualifier} " if self.dialect == "glow_low" else ""
                arguments.append(f"{in_front}{operand.value}: {operand.type}")
        is_of_mlir = self.dialect in _OF_MLIR
        function, ending = ("func.func", "  return }") if is_of_mlir else (f"{self.dialect}.func", "}")
        return "\n".join([f"{function} @row({', '.join(arguments)}) {{", *lines, f"  {operation}", ending])


def divided(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that are outside of all brackets; the `>` of an arrow is no bracket."""
    found: list[str] = []
    begin = depth = 0
    for at, character in enumerate(text):
        depth += character in _OPENING
        depth -= character in _CLOSING and text[at - 1 : at + 1] != "->"
        if not depth and at >= begin and text.startswith(separator, at):
            found.append(text[begin:at])
            begin = at + len(separator)
    return [part for part in (*found, text[begin:]) if part]


def _line(error: GlowError) -> int | None:
    """The line of an error in the module, if it names one."""
    found = re.search(r":(\d+):\d+$", error.file)
    return int(found[1]) if found else None


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a file; raises `RowError` for one without a message."""
    begins, text, passes = 0, "", ""
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], start=1):
        if line.startswith(" "):
            text += f" {line.strip()}"
            continue
        if text:
            yield _row(path, begins, text, passes)
        begins, text = number, "" if line.startswith("//") else line.rstrip()
        passes = line.removeprefix(_PASSES) if line.startswith(_PASSES) else passes


def _row(path: Path, number: int, text: str, passes: str) -> Row:
    """A row, from its text without line breaks."""
    location = f"{path.parent.name}/{path.name}:{number}"
    operation, separator, expected = text.rpartition(SEPARATOR)
    if not separator:
        raise RowError(f"{location}: a row is an operation, '{SEPARATOR.strip()}' and a message")
    return Row(location, path.parent.name, operation, expected, passes)
