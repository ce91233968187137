"""What a tool is doing, in one line of a terminal."""

from __future__ import annotations

import sys

from glow_mlir.tools.command_line import CLEAR_LINE, is_terminal

BAR = 30
"""Characters of a progress bar."""


def bar(share: float) -> str:
    """A share from 0 to 1 as a bar and a number."""
    done = round(share * BAR)
    return f"[{'#' * done}{'.' * (BAR - done)}] {share:4.0%}"


class Progress:
    """A line on stderr that changes as work goes on; nothing at all where stderr is no terminal."""

    def __init__(self) -> None:
        self._active = is_terminal(sys.stderr)
        self._shown = False

    def say(self, text: str) -> None:
        """Show `text` instead of what was there."""
        if self._active:
            print(f"{CLEAR_LINE}{text} …", end="", file=sys.stderr, flush=True)
            self._shown = True

    def clear(self) -> None:
        """Leave the line empty."""
        if self._shown:
            print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
            self._shown = False
