"""Text of files, and of stdin."""

from __future__ import annotations

import sys
from pathlib import Path

from glow_mlir.errors import OptionError

STDIN = "-"
"""The name of stdin."""


def text_of(name: str) -> str:
    """The text of a file in UTF-8, or of stdin for `-`; raises `OptionError` if it cannot be read."""
    try:
        return sys.stdin.read() if name == STDIN else Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise OptionError("is not text in UTF-8", file=name) from error
    except OSError as error:
        raise OptionError(f"cannot be read: {error.strerror}", file=name) from error
