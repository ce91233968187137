"""Run work in a second thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

There = TypeVar("There")
Here = TypeVar("Here")


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
    finally:
        thread.join()
    if errors:
        raise errors[0]
    return found[0], result
