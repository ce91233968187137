"""`--verify-diagnostics`: compare diagnostics with the `expected-error` comments of the input, like mlir-opt."""

from __future__ import annotations

import re
from collections.abc import Sequence

from glow_mlir.errors import GlowError
from glow_mlir.support.dataclass import dataclass

Diagnostic = tuple[str, GlowError]
"""A severity (`error`, `warning` or `note`), and the error."""

_ANNOTATION = re.compile(
    r"expected-(?P<severity>error|warning|note)(?P<is_pattern>-re)?"
    r"\s*(?:@(?P<where>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>(?:\{\{.*?\}\}|(?!\{\{).)*?)\}\}"
)
_IN_PATTERN = re.compile(r"\{\{(.*?)\}\}")
_POSITION = re.compile(r":(?P<line>\d+):\d+$")


@dataclass(frozen=True)
class Expected:
    """An expected diagnostic: its severity, line (`None` for any), and a part of its text."""

    severity: str
    line: int | None
    text: str
    is_pattern: bool = False
    """Whether parts in double braces are regular expressions."""

    def matches(self, found: Diagnostic) -> bool:
        """Whether the diagnostic is the expected one."""
        severity, error = found
        if (severity, line_of(error)) != (self.severity, self.line):
            return False
        return self.text in error.reason if not self.is_pattern else bool(re.search(self._pattern, error.reason))

    @property
    def _pattern(self) -> str:
        """The text as a regular expression, quoted outside double braces."""
        parts = _IN_PATTERN.split(self.text)
        return "".join(f"(?:{part})" if number % 2 else re.escape(part) for number, part in enumerate(parts))


def line_of(error: GlowError) -> int | None:
    """The line of an error, if it names one."""
    found = _POSITION.search(error.file)
    return int(found["line"]) if found else None


def expected_diagnostics(text: str) -> list[Expected]:
    """
    The diagnostics that a text expects.

    `// expected-error {{part of the message}}` refers to its own line; `@+1` and `@-2` to another line, `@above` and
    `@below` to the nearest line without such a comment, and `@unknown` to an error without a line. `expected-warning`
    and `expected-note` have other severities, and `expected-error-re` contains regular expressions in double braces.
    """
    found: list[Expected] = []
    # Parsers count only newlines, unlike `splitlines`.
    lines = [line.partition("//") for line in text.split("\n")]
    announcing = [not code.strip() and _ANNOTATION.search(comment) is not None for code, _, comment in lines]
    for number, (_, _, comment) in enumerate(lines, start=1):
        for annotation in _ANNOTATION.finditer(comment):
            severity, is_pattern, where, part = annotation.groups()
            found.append(Expected(severity, _line_at(where, number, announcing), part, is_pattern is not None))
    return found


def _line_at(where: str | None, number: int, announcing: Sequence[bool]) -> int | None:
    """The line, from 1, that a comment in line `number` refers to."""
    if where == "unknown":
        return None
    if where not in ("above", "below"):
        return number + int(where or 0)
    step = 1 if where == "below" else -1
    number += step
    while 0 < number <= len(announcing) and announcing[number - 1]:
        number += step
    return number


def mismatches(expected: Sequence[Expected], found: Sequence[Diagnostic], file: str) -> list[GlowError]:
    """The errors of one piece of input: expected diagnostics that are missing, and unexpected ones."""
    waiting = list(expected)
    wrong: list[GlowError] = []
    for diagnostic in found:
        match = next((item for item in waiting if item.matches(diagnostic)), None)
        if match is None:
            wrong.append(unexpected(*diagnostic))
        else:
            waiting.remove(match)
    for item in waiting:
        location = file if item.line is None else f"{file}:{item.line}:1"
        wrong.append(GlowError(f'expected {item.severity} "{item.text}" was not produced', file=location))
    return wrong


def unexpected(severity: str, error: GlowError) -> GlowError:
    """The error for an unexpected diagnostic."""
    return GlowError(f"unexpected {severity}: {error.reason}", file=error.file, node=error.node, hint=error.hint)
