"""Arrays of strings in a GGUF file: found at once, decoded when they are read."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from glow_mlir.support.dataclass import dataclass

LENGTH_BYTES = 8
"""The bytes of a string's length, in front of it."""

BORDER = 0xFF
"""A byte that is in no text in UTF-8."""

_DECODED_BORDER = bytes([BORDER]).decode("utf-8", "surrogateescape")

WINDOW = 1 << 18
"""The bytes in which short strings are looked for together: temporary arrays of a few times that size."""

SLOW_STRINGS = 1 << 12
"""The number of strings that take as long to find one by one as a window takes to search."""


@dataclass(frozen=True)
class Strings:
    """Strings in the bytes of a file: string i begins at `begins[i]` and ends at `ends[i]`."""

    data: memoryview
    begins: np.ndarray
    ends: np.ndarray

    def decoded(self) -> list[str]:
        """The strings; bytes that are not UTF-8 become surrogates."""
        if not len(self.begins):
            return []
        starts = self.begins - self.begins[0]
        whole = np.array(self.data[int(self.begins[0]) - LENGTH_BYTES : int(self.ends[-1])])
        # Decoded together: of each length one byte stays, between two strings, which UTF-8 does not have.
        whole[starts + (LENGTH_BYTES - 1)] = BORDER
        is_kept = np.ones(len(whole), bool)
        for number in range(LENGTH_BYTES - 1):
            is_kept[starts + number] = False
        kept = whole[is_kept]
        if np.count_nonzero(kept == BORDER) == len(starts):
            return kept[1:].tobytes().decode("utf-8", "surrogateescape").split(_DECODED_BORDER)
        pairs = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        return [str(self.data[begin:end], "utf-8", "surrogateescape") for begin, end in pairs]


class Metadata(Mapping[str, Any]):
    """The entries of a file's metadata; arrays of strings are decoded when they are read first."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, key: str) -> Any:
        found = self._entries[key]
        if isinstance(found, Strings):
            found = self._entries[key] = found.decoded()
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def strings_at(data: memoryview, position: int, count: int) -> Strings:
    """
    The `count` strings from a position on, each behind its length.

    Raises `IndexError` with the number of the first one that takes more bytes than are left.
    """
    found = np.empty(count, np.int64)
    done = 0
    while done < count:
        starts = _short_strings(data, position)[: count - done]
        # The last one may go on behind the window.
        known = max(len(starts) - 1, 0)
        found[done : done + known] = position + starts[:known]
        position, done = position + int(starts[known]) if known else position, done + known
        for number in range(done, min(done + max(1, SLOW_STRINGS - known), count)):
            begin = position + LENGTH_BYTES
            size = _LENGTH.unpack_from(data, position)[0] if begin <= len(data) else LENGTH_BYTES
            if begin + size > len(data):
                raise IndexError(number)
            found[number] = position
            position, done = begin + size, number + 1
    begins = found + LENGTH_BYTES
    return Strings(data, begins, np.append(found[1:], position))


_LENGTH = struct.Struct("<Q")


def _short_strings(data: memoryview, position: int) -> np.ndarray:
    """
    Where strings of 1 to 255 bytes start from a position on, one behind the other; the first starts at 0.

    Their lengths are a byte and seven zeros, which are looked for everywhere at once. What looks like a length is one
    where it is as far behind the one before as that says. Empty if the first string is no such string.
    """
    window = np.frombuffer(data[position : position + WINDOW], np.uint8)
    is_zero = window == 0
    runs = is_zero[1:-1] & is_zero[2:]
    runs = runs[:-2] & runs[2:]
    if len(runs) < 4:
        return np.empty(0, np.int64)
    starts = np.flatnonzero(~is_zero[: len(runs) - 3] & runs[:-3] & runs[3:])
    if not len(starts) or starts[0]:
        return np.empty(0, np.int64)
    follows = starts[:-1] + LENGTH_BYTES + window[starts[:-1]] == starts[1:]
    return starts if follows.all() else starts[: int(np.argmin(follows)) + 1]
