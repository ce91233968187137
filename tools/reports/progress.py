"""Progress of a tool in one line of a terminal."""

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
    """A status line on stderr that is overwritten as work proceeds; silent if stderr is not a terminal."""

    def __init__(self) -> None:
        self._active = is_terminal(sys.stderr)
        self._shown = False

    def say(self, text: str) -> None:
        """Replace the text of the line."""
        if self._active:
            print(f"{CLEAR_LINE}{text} …", end="", file=sys.stderr, flush=True)
            self._shown = True

    def clear(self) -> None:
        """Clear the line."""
        if self._shown:
            print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
            self._shown = False
