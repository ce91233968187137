"""Shorten long node names to distinguishing parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

SEPARATORS = "/."
"""The separators between the parts of a hierarchical name; the first that occurs is used."""

WIDTH = 28
"""The maximum length of a name after the common prefix that is kept unchanged."""

OMITTED = "…"
"""The replacement for parts in the middle of a name."""


def short_names(names: Iterable[str], width: int = WIDTH) -> dict[str, str]:
    """
    Name → distinct short name, consisting of complete parts.

    Parts common to the beginning of all names are dropped. If the rest exceeds `width`, as many last parts stay as fit,
    but enough to distinguish the name. If these do not fit, parts in their middle are dropped.
    """
    whole = list(dict.fromkeys(names))
    separator = next((mark for mark in SEPARATORS if any(mark in name for name in whole)), SEPARATORS[0])
    parts = {name: name.split(separator) for name in whole}
    begin = _shared(list(parts.values()))
    ends = Counter(separator.join(split[first:]) for split in parts.values() for first in range(len(split)))
    found = {
        name: _end([separator.join(split[first:]) for first in range(begin, len(split))], ends, width)
        for name, split in parts.items()
    }
    long = {name: end.split(separator) for name, end in found.items() if len(end) > width}
    gaps = Counter(gap for split in parts.values() for gap in set(_gaps(split, separator))) if long else Counter[str]()
    for name, split in long.items():
        alone = [gap for gap in _gaps(split, separator, first=0) if gaps[gap] == 1 and gap not in parts]
        found[name] = next((gap for gap in alone if len(gap) <= width), min([found[name], *alone], key=len))
    return found


def _shared(parts: Sequence[Sequence[str]]) -> int:
    """How many parts all begin with, of which none is the last one of a name."""
    if len(parts) < 2:
        return 0
    columns = zip(*(split[:-1] for split in parts), strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


def _end(candidates: Sequence[str], ends: Counter[str], width: int) -> str:
    """The first of ever shorter ends of a name that has room, or the last that is the end of no other name."""
    alone = [end for end in candidates if ends[end] == 1] or [candidates[0]]
    return next((end for end in alone if len(end) <= width), alone[-1])


def _gaps(split: Sequence[str], separator: str, first: int | None = None) -> Iterator[str]:
    """A part, then only the last ones, ever fewer: of any part, or of the `first`."""
    for position in range(len(split)) if first is None else (first,):
        for last in range(position + 2, len(split)):
            yield separator.join((split[position], OMITTED, *split[last:]))
