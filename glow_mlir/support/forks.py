"""
Reset threads and locks in forked child processes, which inherit no threads of their parent.

A lock held by another thread would stay locked forever, and a missing thread would never answer.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary


class ResetsInForks(Protocol):
    """An object with threads, locks or processes of its own."""

    def reset_after_fork(self) -> None:
        """Start over without them, in a child process."""
        ...


Item = TypeVar("Item", bound=ResetsInForks)

_ITEMS: WeakValueDictionary[int, ResetsInForks] = WeakValueDictionary()
"""The registered objects, in order."""

_NUMBERS = itertools.count()

_BEFORE: list[Callable[[], None]] = []
_AFTER: list[Callable[[], None]] = []


def reset_in_forks(item: Item) -> Item:
    """Reset an object in each child of `os.fork`, as long as it is referenced; return it."""
    _ITEMS[next(_NUMBERS)] = item
    return item


def around_forks(before: Callable[[], None], after: Callable[[], None]) -> None:
    """Call functions before each `os.fork`, and after it in the parent."""
    _BEFORE.append(before)
    _AFTER.append(after)


def _before() -> None:
    for call in reversed(_BEFORE):
        call()


def _after() -> None:
    for call in _AFTER:
        call()


def _in_child() -> None:
    for item in list(_ITEMS.values()):
        try:
            item.reset_after_fork()
        except Exception as error:  # Reset the others anyway.
            sys.excepthook(type(error), error, error.__traceback__)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
