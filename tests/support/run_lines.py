"""The RUN and REQUIRES lines of a FileCheck test, read as lit reads them and parsed into pipelines."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SUFFIXES = (".mlir", ".test")
"""What lit and pytest take for a FileCheck test."""

MACROS = {
    "GLOW_ROUNDTRIP": (
        "glow-opt %s --print-op-generic --split-input-file | glow-opt --split-input-file | filecheck %s"
    ),
    "GLOW_UNCHANGED": (
        "glow-opt %s --print-op-generic | glow-opt | "
        "diff -wB -I '^ *//' -I '^builtin.module' -I '^ *}$' -I '^ *glow_high.return $' %s -"
    ),
    "GLOW_GENERIC_ROUNDTRIP": (
        "glow-opt %s --print-op-generic --split-input-file | filecheck %s --check-prefix=CHECK-GENERIC"
    ),
}
"""
Whole RUN lines by name. Generic form goes out, custom form comes back: one macro reads and prints both.

`GLOW_UNCHANGED` wants each line of the file to come back as it is, but for comments and the module around.
"""

_DIRECTIVE = re.compile(r"(?<![\w-])(?P<key>RUN|REQUIRES|UNSUPPORTED|XFAIL|DEFINE|REDEFINE):(?P<rest>.*)$")
_SUBSTITUTION = re.compile(r"%%|%[sSt](?!\w)|%(?:\{[^}]*\}|\w+|[/:]\w)")


class RunLineError(Exception):
    """A test that the runner cannot run as it stands: always a failure, never a skip."""


@dataclass(frozen=True)
class RunLine:
    """One RUN command, continuations joined, and the line of the file where it starts."""

    text: str
    line: int


@dataclass(frozen=True)
class Script:
    """What a test file asks for."""

    path: Path
    runs: tuple[RunLine, ...]
    requires: tuple[str, ...]


@dataclass
class Command:
    """One program of a pipeline; `redirects` are pairs of an operator such as `2>` and its target."""

    args: list[str]
    redirects: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def parse_script(path: Path) -> Script:
    """Read the directives of a test file; a directive of lit's that the runner lacks is an error."""
    runs: list[RunLine] = []
    requires: list[str] = []
    joining = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not (found := _DIRECTIVE.search(line)):
            continue
        key, rest = found["key"], found["rest"].strip()
        if key == "REQUIRES":
            requires += [name.strip() for name in rest.split(",")]
        elif key != "RUN":
            raise RunLineError(f"{path}:{number}: {key}: is not supported")
        elif joining:
            runs[-1] = RunLine(f"{runs[-1].text[:-1].rstrip()} {rest}", runs[-1].line)
        else:
            runs.append(RunLine(rest, number))
        if key == "RUN":
            joining = rest.endswith("\\")
    if joining:
        raise RunLineError(f"{path}:{runs[-1].line}: the last RUN line ends in a continuation")
    if not runs:
        raise RunLineError(f"{path}: no RUN line")
    return Script(path, tuple(runs), tuple(requires))


def expand_macros(text: str) -> str:
    """Replace the names in `MACROS`, and leave `%s` and its like in place."""
    for name, command in MACROS.items():
        text = text.replace(name, command)
    return text


def substitute(text: str, source: Path, temporary: Path) -> str:
    """Expand macros and `%s`, `%S`, `%t`, `%%`; any other substitution is an error."""
    values = {"%s": str(source), "%S": str(source.parent), "%t": str(temporary), "%%": "%"}

    def value(found: re.Match[str]) -> str:
        if (name := found[0]) not in values:
            raise RunLineError(f"unknown substitution {name!r} in RUN line: {text}")
        return values[name]

    return _SUBSTITUTION.sub(value, expand_macros(text))


def parse_pipeline(text: str) -> list[Command]:
    """Split a substituted RUN line into the commands of one pipeline, with lit's own shell parser."""
    # lit has no annotations: what comes out of it is Any until it has been checked here.
    parser: Any = importlib.import_module("lit.ShUtil").ShParser(text, pipefail=True)
    try:
        parsed: Any = parser.parse()
    except (ValueError, IndexError) as error:
        raise RunLineError(f"{error} in RUN line: {text}") from error
    if type(parsed).__name__ != "Pipeline":
        raise RunLineError(f"`;`, `&`, `&&` and `||` are not supported, write several RUN lines: {text}")
    return [_checked_command(command, text) for command in parsed.commands]


def _checked_command(command: Any, text: str) -> Command:
    """Turn lit's untyped command into ours; globs are not strings there and are refused."""
    for word in [*command.args, *(target for _, target in command.redirects)]:
        if not isinstance(word, str):
            raise RunLineError(f"wildcards are not supported in RUN line: {text}")
    return Command(
        args=list(command.args),
        redirects=[("".join(map(str, reversed(operator))), target) for operator, target in command.redirects],
    )
