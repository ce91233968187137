"""`--verify-diagnostics`: compares diagnostics with the `expected-error` comments of the input, as mlir-opt does."""

from __future__ import annotations

import re
from collections.abc import Sequence

from glow_mlir.errors import GlowError
from glow_mlir.support.dataclass import dataclass

Diagnostic = tuple[str, GlowError]
"""A severity, `error`, `warning` or `note`, and what is told."""

_ANNOTATION = re.compile(
    r"expected-(?P<severity>error|warning|note)(?P<is_pattern>-re)?"
    r"\s*(?:@(?P<where>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>(?:\{\{.*?\}\}|(?!\{\{).)*?)\}\}"
)
_IN_PATTERN = re.compile(r"\{\{(.*?)\}\}")
_POSITION = re.compile(r":(?P<line>\d+):\d+$")


@dataclass(frozen=True)
class Expected:
    """A diagnostic that the input announces: severity, line (`None` for one without), and a part of its text."""

    severity: str
    line: int | None
    text: str
    is_pattern: bool = False
    """Whether parts in double braces are regular expressions."""

    def matches(self, found: Diagnostic) -> bool:
        """Whether this is the one."""
        severity, error = found
        if (severity, line_of(error)) != (self.severity, self.line):
            return False
        return self.text in error.reason if not self.is_pattern else bool(re.search(self._pattern, error.reason))

    @property
    def _pattern(self) -> str:
        """The text with all that is outside of double braces quoted."""
        parts = _IN_PATTERN.split(self.text)
        return "".join(f"(?:{part})" if number % 2 else re.escape(part) for number, part in enumerate(parts))


def line_of(error: GlowError) -> int | None:
    """The line of an error, if it names one."""
    found = _POSITION.search(error.file)
    return int(found["line"]) if found else None


def expected_diagnostics(text: str) -> list[Expected]:
    """
    The diagnostics that a text announces.

    `// expected-error {{part of the message}}` means its own line; `@+1`, `@-2` another one, `@above` and `@below` the
    next line that is not such a comment, and `@unknown` an error without a line. `expected-warning` and
    `expected-note` are of other severities, and `expected-error-re` has regular expressions in double braces.
    """
    found: list[Expected] = []
    # Parsers count newlines alone, and not what else `splitlines` takes for one.
    lines = [line.partition("//") for line in text.split("\n")]
    announcing = [not code.strip() and _ANNOTATION.search(comment) is not None for code, _, comment in lines]
    for number, (_, _, comment) in enumerate(lines, start=1):
        for annotation in _ANNOTATION.finditer(comment):
            severity, is_pattern, where, part = annotation.groups()
            found.append(Expected(severity, _line_at(where, number, announcing), part, is_pattern is not None))
    return found


def _line_at(where: str | None, number: int, announcing: Sequence[bool]) -> int | None:
    """The line, from 1, that a comment in line `number` is about."""
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
    """What is wrong with the outcome of one piece of input: diagnostics that did not come, and that nobody expected."""
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
    """An error that says of a diagnostic that it was not expected."""
    return GlowError(f"unexpected {severity}: {error.reason}", file=error.file, node=error.node, hint=error.hint)
