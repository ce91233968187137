"""Run work in a second thread, and more beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

There = TypeVar("There")
Here = TypeVar("Here")


_WAITING: ContextVar[list[Callable[[], object]] | None] = ContextVar("waiting", default=None)
"""Work for pauses that is left."""


@contextmanager
def in_pauses(*work: Callable[[], object]) -> Generator[None]:
    """
    Do some work, in order, where `both` would wait for its thread inside the `with` statement.

    Work that no such pause is left for is not done. Its errors are those of `both`.
    """
    token = _WAITING.set(list(work))
    try:
        yield
    finally:
        _WAITING.reset(token)


def _use_pause(thread: threading.Thread) -> None:
    """Do waiting work as long as a thread runs; the pauses in such work are not for other work."""
    waiting = _WAITING.get()
    token = _WAITING.set(None)
    try:
        while waiting and thread.is_alive():
            waiting.pop(0)()
    finally:
        _WAITING.reset(token)


def both(there: Callable[[], There], here: Callable[[], Here]) -> tuple[There, Here]:
    """
    The results of two calls; the first, which should release Python's global lock, runs in a thread of its own.

    The thread is always awaited; its error is raised here unless the other call raised one. If no thread can be
    started, for example at exit, it runs after the other call.
    """
    found: list[There] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(there())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), name="glow-both")
    try:
        thread.start()
    except RuntimeError:
        result = here()
        return there(), result
    try:
        result = here()
        _use_pause(thread)
    finally:
        thread.join()
    if errors:
        raise errors[0]
    return found[0], result
