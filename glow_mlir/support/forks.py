"""
Forks: what has threads and locks begins anew in a child process, in which no thread of its parent goes on.

A lock that another thread held stays locked there for ever, and a thread that nobody started again never answers.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary


class ResetsInForks(Protocol):
    """What has threads, locks or processes of its own."""

    def reset_after_fork(self) -> None:
        """Begin without them, in a child process."""
        ...


Item = TypeVar("Item", bound=ResetsInForks)

_ITEMS: WeakValueDictionary[int, ResetsInForks] = WeakValueDictionary()
"""In the order in which they came."""

_NUMBERS = itertools.count()

_BEFORE: list[Callable[[], None]] = []
_AFTER: list[Callable[[], None]] = []


def reset_in_forks(item: Item) -> Item:
    """Let an object begin anew in each child of `os.fork`, as long as somebody has it; gives the object."""
    _ITEMS[next(_NUMBERS)] = item
    return item


def around_forks(before: Callable[[], None], after: Callable[[], None]) -> None:
    """Call something before each `os.fork`, and behind it in the parent, as long as the process lives."""
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
        except Exception as error:  # The others begin anew all the same.
            sys.excepthook(type(error), error, error.__traceback__)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
