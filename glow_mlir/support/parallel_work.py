"""Work in a thread beside other work of the same caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

There = TypeVar("There")
Here = TypeVar("Here")


def both(there: Callable[[], There], here: Callable[[], Here]) -> tuple[There, Here]:
    """
    What two calls give, of which the first runs in a thread of its own: one that lets Python go on meanwhile.

    It is waited for, whatever the other one raises; an error of its own is raised here, where that one has none. Where
    there is no thread, as at the end of a process, it runs behind the other one.
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
