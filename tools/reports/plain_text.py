"""ASCII replacements for output streams with a limited encoding, such as CI logs and old terminals."""

from __future__ import annotations

import codecs
import io
import sys

_HANDLER = "glow-plain"

_PLAIN = {
    "→": "->",
    "…": "...",
    "×": "x",
    "·": "*",
    "−": "-",
    "–": "-",
    "—": "-",
    "±": "+-",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "µ": "u",
    "²": "^2",
    "§": "section ",
    "›": ">",
    "█": "#",
    "░": ".",
    "│": "|",
    "─": "-",
}
"""Our non-ASCII characters → ASCII replacements."""


def plain(text: str) -> str:
    """A text in ASCII: with replacements, and escapes for other characters."""
    return "".join(_PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode("ascii") for char in text)


def take_all_characters() -> None:
    """Let stdout and stderr replace characters that their encoding lacks."""
    codecs.register_error(_HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    """The replacement of characters that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain(error.object[error.start : error.end]), error.end
