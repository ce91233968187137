"""A line on a terminal that says what takes long, so that nobody takes it for a program that hangs."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from glow_mlir.support.activity import is_watched
from glow_mlir.support.cancellation import Cancellation, cancelled_by, current_cancellation

PATIENCE = 2.0
"""Seconds after which work is told of."""

_CLEAR_LINE = "\r\033[K"


class _Notice(Cancellation):
    """What work looks at anyway, again and again: whether it is to end, and here also whether it is to be told of."""

    def __init__(self, text: str) -> None:
        super().__init__(current_cancellation())
        self._text = text
        self._due = time.monotonic() + PATIENCE
        self._is_shown = False

    def check(self) -> None:
        super().check()
        if not self._is_shown and time.monotonic() >= self._due:
            self._is_shown = True
            self._write(f"{_CLEAR_LINE}{self._text} …{_how_to_end()}")

    def clear(self) -> None:
        """Leave the line empty."""
        if self._is_shown:
            self._write(_CLEAR_LINE)

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # As where somebody has closed it meanwhile: the work goes on.
            text = text.encode(sys.stderr.encoding or "ascii", "replace").decode(sys.stderr.encoding or "ascii")
            print(text, end="", file=sys.stderr, flush=True)


@contextmanager
def report_when_slow(text: str) -> Generator[None]:
    """
    Show `text` on standard error while what is done inside the `with` statement takes longer than two seconds.

    Nothing is shown where standard error is no terminal, or where somebody watches (`activity.watching`).
    """
    if is_watched() or not _is_terminal():
        yield
        return
    notice = _Notice(text)
    try:
        with cancelled_by(notice):
            yield
    finally:
        notice.clear()


def _how_to_end() -> str:
    """How the work is ended where Ctrl-C does not do that: a shell may ignore it for what runs in the background."""
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return f" (Ctrl-C is ignored here: kill {os.getpid()} ends it)" if is_ignored else ""


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # There is none, or it is closed.
        return False
