"""Text for streams whose encoding lacks characters, as ASCII does: a log of CI, an old terminal."""

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
"""Characters of ours → what says the same in ASCII."""


def plain(text: str) -> str:
    """A text in ASCII: what says the same, and escapes for other characters."""
    return "".join(_PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode("ascii") for char in text)


def take_all_characters() -> None:
    """Let standard output and standard error take what their encoding has not, in plain characters."""
    codecs.register_error(_HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    """What stands for the characters that cannot be written."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain(error.object[error.start : error.end]), error.end
