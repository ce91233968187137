"""What long work is at: `say("tuning 3 of 20")`, for whoever watches around it, by thread and task."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

_WATCHER: ContextVar[Callable[[str], None] | None] = ContextVar("watcher", default=None)


def say(text: str) -> None:
    """Tell what is done now, in a few words; nothing happens where nobody watches."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(text)


@contextmanager
def watching(watcher: Callable[[str], None]) -> Generator[None]:
    """Call `watcher` with what is said inside the `with` statement."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)
