"""How long a test may take, and who ends one that takes longer."""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

import pytest

SWEEP = 1800
"""Seconds that a sweep or a test of other packages may take; `timeout` in pyproject.toml limits all others."""

GRACE = 30
"""Seconds behind the limit after which a process ends in which no thread of Python runs any more."""


def limit_sweeps(items: list[pytest.Item]) -> None:
    """Give tests that are marked `long` or `extra` the limit of a sweep."""
    for item in items:
        is_sweep = item.get_closest_marker("long") or item.get_closest_marker("extra")
        if is_sweep and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SWEEP))


def limit_of(item: pytest.Item) -> float:
    """The seconds that a test may take."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker else item.config.getini("timeout"))


@contextmanager
def ended_without_python(item: pytest.Item, stderr: TextIO) -> Generator[None]:
    """
    End the process where a test goes on long behind its limit.

    pytest-timeout is a thread of Python, which does not run where other code holds the interpreter's lock for ever.
    """
    faulthandler.dump_traceback_later(limit_of(item) + GRACE, exit=True, file=stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def interruptible() -> Generator[None]:
    """
    Let SIGINT raise `KeyboardInterrupt`, and end the processes that are started, also where the shell ignores it.

    A shell without job control ignores SIGINT for what it starts in the background, and so do its children.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def ignore_interrupts() -> None:
    """As `preexec_fn`: start a process as a shell without job control starts one in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
