"""Split a text into modules at lines of `// -----`, like `mlir-opt --split-input-file`."""

from __future__ import annotations

import re
from collections.abc import Iterator

SEPARATOR = "// -----"
"""The line between two pieces."""

_LINE = re.compile(rf"^{re.escape(SEPARATOR)}[ \t\r]*$\n?", re.MULTILINE)


def spans(text: str) -> Iterator[tuple[int, int]]:
    """The begin and end of each piece of a text, without the separator lines."""
    begin = 0
    for line in _LINE.finditer(text):
        yield begin, line.start()
        begin = line.end()
    yield begin, len(text)


def pieces(text: str) -> Iterator[str]:
    """The pieces of a text, each preceded by newlines that keep its line numbers."""
    for begin, end in spans(text):
        yield "\n" * text.count("\n", 0, begin) + text[begin:end]
