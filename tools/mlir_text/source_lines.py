"""The source line of an error, with a caret below the column, as compilers print it on terminals."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

STDIN = "<stdin>"

_PLACE = re.compile(r"(?P<file>.*):(?P<line>\d+):(?P<column>\d+)$", re.DOTALL)
_CARET, _PLAIN = "\033[1;32m", "\033[0m"
_GIVEN: dict[str, str] = {}


def read_stdin() -> str:
    """Read and keep the text on standard input, for excerpts in errors; raises `ParseFailure` unless it is text."""
    from glow_mlir.ir.text import decoded

    _GIVEN[STDIN] = text = decoded(sys.stdin.buffer.read(), STDIN)
    return text


def excerpt(location: str, coloured: bool) -> list[str]:
    """
    The line named by `file:line:column`, cut to the width of the terminal, and the caret.

    Empty if the line does not exist; the error is printed without an excerpt.
    """
    found = position(location)
    text = _line_of(found.file, found.line) if found else None
    if found is None or text is None:
        return []
    width, column = shutil.get_terminal_size().columns - 1, found.column - 1
    start = max(0, min(column - width // 2, len(text) - width))
    shown = "".join(char if char.isprintable() else " " for char in text[start : start + width])
    caret = f"{_CARET}^{_PLAIN}" if coloured else "^"
    return [shown, " " * (column - start) + caret]


class Position(NamedTuple):
    """A file, and a line and column in it, from 1."""

    file: str
    line: int
    column: int


def position(location: str) -> Position | None:
    """Parse `file:line:column`; `None` for another text."""
    found = _PLACE.match(location)
    return Position(found["file"], int(found["line"]), int(found["column"])) if found else None


def _line_of(file: str, number: int) -> str | None:
    """A line of a file, from 1; `None` where there is none."""
    if file not in _GIVEN and not os.path.isfile(file):  # A pipe is already consumed, and reading it would block.
        return None
    try:
        text = _GIVEN.get(file) or Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    lines = text.split("\n")
    return lines[number - 1] if 0 < number <= len(lines) else None
