"""`--verify-diagnostics`: compares errors with the `expected-error` comments of the input, as mlir-opt does."""

from __future__ import annotations

import re
from dataclasses import dataclass

from glow_mlir.errors import GlowError

_ANNOTATION = re.compile(r"//.*?expected-error\s*(?:@(?P<where>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*?)\}\}")
_POSITION = re.compile(r":(?P<line>\d+):\d+$")


@dataclass(frozen=True)
class Expected:
    """An error that the input announces: its line (`None` for an error without one) and a part of its text."""

    line: int | None
    text: str

    def matches(self, error: GlowError) -> bool:
        """Whether this error is the one."""
        return self.line == line_of(error) and self.text in error.reason


def line_of(error: GlowError) -> int | None:
    """The line of an error, if it names one."""
    found = _POSITION.search(error.file)
    return int(found["line"]) if found else None


def expected_errors(text: str) -> list[Expected]:
    """
    The errors that a text announces.

    `// expected-error {{part of the message}}` means its own line; `@+1`, `@-2`, `@above`, `@below` another one, and
    `@unknown` an error without a line.
    """
    found: list[Expected] = []
    for number, line in enumerate(text.splitlines(), start=1):
        for annotation in _ANNOTATION.finditer(line):
            where = {"above": "-1", "below": "+1", None: "0"}.get(annotation["where"], annotation["where"])
            found.append(Expected(None if where == "unknown" else number + int(where), annotation["text"]))
    return found


def mismatches(expected: list[Expected], error: GlowError | None, file: str) -> list[GlowError]:
    """What is wrong with the outcome of one piece of input: errors that did not come, one that nobody expected."""
    found: list[GlowError] = []
    if error is not None and not any(item.matches(error) for item in expected):
        found.append(unexpected(error))
    for item in expected:
        if error is None or not item.matches(error):
            place = file if item.line is None else f"{file}:{item.line}:1"
            found.append(GlowError(f'expected error "{item.text}" was not produced', file=place))
    return found


def unexpected(error: GlowError) -> GlowError:
    """An error that says of another one that it was not expected."""
    return GlowError(f"unexpected error: {error.reason}", file=error.file, node=error.node, hint=error.hint)
