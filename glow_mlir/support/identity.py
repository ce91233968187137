"""Answers about immutable objects, kept by which object it is: to hash one takes longer than most of the answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache, wraps
from itertools import count
from typing import TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

MAX_KEPT = 1 << 16
"""Answers of one function at most; then all are forgotten, so that a long process does not grow."""


def kept_by_identity(function: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    """The function, which is computed once for each object that it is asked about; that must never change."""
    kept: dict[int, tuple[Asked, Answer]] = {}

    @wraps(function)
    def ask(asked: Asked) -> Answer:
        found = kept.get(id(asked))
        if found is not None:
            return found[1]
        answer = function(asked)
        if len(kept) >= MAX_KEPT:
            kept.clear()
        kept[id(asked)] = asked, answer  # The object stays, so that no other one gets its identity.
        return answer

    return ask


_NUMBERS: dict[Hashable, int] = {}
_FURTHER = count()


@kept_by_identity
def number_of(value: Hashable) -> int:
    """A number that equal values have in common: to hash it takes no time."""
    if len(_NUMBERS) >= MAX_KEPT:
        _NUMBERS.clear()  # No number is given again, so that those of other values stay others.
    return _NUMBERS.setdefault(value, next(_FURTHER))


@cache
def is_kind(kind: type, wanted: type | tuple[type, ...]) -> bool:
    """
    Whether a class inherits from another one, or from one of several.

    To ask an abstract class with `isinstance` takes several times as long, and the first time about each class longer
    still.
    """
    bases = kind.__mro__
    return any(one in bases for one in wanted) if isinstance(wanted, tuple) else wanted in bases


class Subclasses(dict[type, bool]):
    """Class → whether it inherits from another one."""

    def __init__(self, base: type) -> None:
        super().__init__()
        self._base = base

    def __missing__(self, kind: type) -> bool:
        self[kind] = is_kind(kind, self._base)
        return self[kind]


@cache
def subclasses_of(base: type) -> Subclasses:
    """Which classes inherit from one, for those who ask of many objects in a row."""
    return Subclasses(base)
