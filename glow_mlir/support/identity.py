"""Caches keyed by object identity, because hashing immutable objects takes longer than most results."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache, wraps
from itertools import count
from typing import TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

MAX_KEPT = 1 << 16
"""The maximum number of cached results of a function, after which all are dropped."""


def kept_by_identity(function: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    """Cache a function by the identity of its argument, which must never change."""
    kept: dict[int, tuple[Asked, Answer]] = {}

    @wraps(function)
    def ask(asked: Asked) -> Answer:
        found = kept.get(id(asked))
        if found is not None:
            return found[1]
        answer = function(asked)
        if len(kept) >= MAX_KEPT:
            kept.clear()
        kept[id(asked)] = asked, answer  # Keep the object, so that its identity is not reused.
        return answer

    return ask


_NUMBERS: dict[Hashable, int] = {}
_FURTHER = count()


@kept_by_identity
def number_of(value: Hashable) -> int:
    """A number shared by equal values, which is fast to hash."""
    if len(_NUMBERS) >= MAX_KEPT:
        _NUMBERS.clear()  # Numbers are never reused.
    return _NUMBERS.setdefault(value, next(_FURTHER))


@cache
def is_kind(kind: type, wanted: type | tuple[type, ...]) -> bool:
    """
    Whether a class inherits from another one, or from one of several.

    `isinstance` with an abstract class is several times slower, and slower still at its first use with each class.
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
    """A lookup table of a class's subclasses, for many queries in a row."""
    return Subclasses(base)
