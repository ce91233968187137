"""Strings represented by numbers in machine code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from glow_mlir.errors import InputError

EMPTY = 0
"""The number of the empty string, which is used for padding."""


class StringTable:
    """
    A table of numbered strings: those of a model, followed by those of a call.

    Equal strings have equal numbers; the order of numbers has no meaning.
    """

    def __init__(self, known: Iterable[str] = ("",)) -> None:
        self._words = list(known)
        self._numbers = {word: number for number, word in enumerate(self._words)}

    @property
    def words(self) -> tuple[str, ...]:
        """All strings, in the order of their numbers."""
        return tuple(self._words)

    def number(self, word: str) -> int:
        """The number of a string, which is added if it is new."""
        found = self._numbers.setdefault(word, len(self._words))
        if found == len(self._words):
            self._words.append(word)
        return found

    def numbers(self, words: np.ndarray | Sequence[str], what: str = "a tensor of strings") -> np.ndarray:
        """
        The numbers of an array of strings, as int64 of the same shape.

        Raises `InputError` for elements of `what` that are not strings.
        """
        array = np.asarray(words, object)
        try:
            found = list(map(self._numbers.get, array.ravel().tolist()))
        except TypeError:  # Lists and dictionaries are not hashable.
            found = [None]
        if None in found:
            found = [self.number(as_text(word, what)) for word in array.ravel().tolist()]
        return np.array(found, np.int64).reshape(array.shape)

    def strings(self, numbers: np.ndarray) -> np.ndarray:
        """The strings for an array of numbers, as an array of `str` objects of the same shape."""
        found = np.empty(numbers.size, object)
        words = self._words
        found[:] = [words[number] for number in numbers.ravel().tolist()]
        return found.reshape(numbers.shape)


class CallStrings(StringTable):
    """A table for one call; its additions to the model's strings are dropped afterwards."""

    def __init__(self, known: StringTable) -> None:
        self._known = known
        self._words = known._words
        self._numbers = known._numbers

    def number(self, word: str) -> int:
        if self._words is self._known._words and word not in self._numbers:
            self._words, self._numbers = list(self._words), dict(self._numbers)
        return super().number(word)


def as_strings(words: np.ndarray, what: str) -> np.ndarray:
    """An array of `str` objects; raises `InputError` for elements of `what` that are not strings."""
    if {str}.issuperset(map(type, words.ravel().tolist())):
        return words
    found = np.empty(words.size, object)
    found[:] = [as_text(word, what) for word in words.ravel().tolist()]
    return found.reshape(words.shape)


def as_text(word: Any, what: str) -> str:
    """A caller's string as `str`; raises `InputError` for anything else."""
    if isinstance(word, bytes):
        return word.decode(errors="surrogateescape")
    if isinstance(word, str):
        return str(word)
    raise InputError(f"{what} has {word!r}, which is not a string", hint="convert it with astype(str)")
