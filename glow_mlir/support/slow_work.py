"""A line on the terminal for slow work, so that it does not look like a hang."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from glow_mlir.support.activity import is_watched, watching
from glow_mlir.support.cancellation import Cancellation, cancelled_by, current_cancellation

PATIENCE = 2.0
"""Seconds after which work is reported."""

_STAGE = "compiling: "
"""What messages of a compilation's stages begin with."""

_CLEAR_LINE = "\r\033[K"


class _Notice(Cancellation):
    """A cancellation that is checked regularly anyway, and reports slow work at these checks."""

    def __init__(self, text: str) -> None:
        super().__init__(current_cancellation())
        self._text = text
        self._due = time.monotonic() + PATIENCE
        self._is_shown = False
        self._step = ""

    def check(self) -> None:
        super().check()
        if not self._is_shown and time.monotonic() >= self._due:
            self._show()

    def tell(self, step: str) -> None:
        """Say what the work is at, where it is shown already or slow."""
        self._step = f" {step.removeprefix(_STAGE)}"
        if self._is_shown or time.monotonic() >= self._due:
            self._show()

    def _show(self) -> None:
        self._is_shown = True
        self._write(f"{_CLEAR_LINE}{self._text} …{self._step}{_how_to_end()}")

    def clear(self) -> None:
        """Leave the line empty."""
        if self._is_shown:
            self._write(_CLEAR_LINE)

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # For example, it was closed meanwhile: continue.
            text = text.encode(sys.stderr.encoding or "ascii", "replace").decode(sys.stderr.encoding or "ascii")
            print(text, end="", file=sys.stderr, flush=True)


@contextmanager
def report_when_slow(text: str) -> Generator[None]:
    """
    Show `text` on standard error while the body of the `with` statement takes longer than two seconds, and what it is
    at (`activity.say`).

    Nothing is shown if standard error is not a terminal, or if something watches (`activity.watching`).
    """
    if is_watched() or not _is_terminal():
        yield
        return
    notice = _Notice(text)
    try:
        with cancelled_by(notice), watching(notice.tell):
            yield
    finally:
        notice.clear()


def _how_to_end() -> str:
    """How to stop the work if Ctrl-C is ignored, as shells set for background jobs."""
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return f" (Ctrl-C is ignored here: kill {os.getpid()} ends it)" if is_ignored else ""


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # Missing or closed.
        return False
