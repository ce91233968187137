"""What a tool is doing, in one line of a terminal."""

from __future__ import annotations

import sys

from glow_mlir.tools.command_line import is_terminal

_CLEAR = "\r\033[K"


class Progress:
    """A line on stderr that changes as work goes on; nothing at all where stderr is no terminal."""

    def __init__(self) -> None:
        self._active = is_terminal(sys.stderr)
        self._shown = False

    def say(self, text: str) -> None:
        """Show `text` instead of what was there."""
        if self._active:
            print(f"{_CLEAR}{text} …", end="", file=sys.stderr, flush=True)
            self._shown = True

    def clear(self) -> None:
        """Leave the line empty."""
        if self._shown:
            print(_CLEAR, end="", file=sys.stderr, flush=True)
            self._shown = False
