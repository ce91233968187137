"""
How broad a run of the tests is: all of it, or, with `--short`, what `make test` has time for.

A short run leaves out tests that are marked `long`, and those marked `extra`, which need packages or programs that come
with `make test-all`. Of a test with several `parametrize` it takes as many as have each value of each of them, instead
of each combination, and one of those that differ in their target alone. Hypothesis draws a part of its examples.
"""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

TARGET = "target"
"""
The parameter of which any value will do, where a test has no other: the name of a target that is there. Where each asks
for other code, or where it is something else that a test is about, the parameter has another name.
"""

PART = 4
"""How many times fewer examples hypothesis draws in a short run."""

FEWEST = 5
"""How many it draws at least, if it is asked for as many."""

_breadth = {"is_short": False}


def begin(is_short: bool) -> None:
    """Say how broad the run is, before any test is imported."""
    _breadth["is_short"] = is_short


def examples(count: int) -> int:
    """How many examples hypothesis is to draw of so many."""
    return max(count // PART, min(count, FEWEST)) if _breadth["is_short"] else count


def long_ones(values: Iterable[T], is_long: Callable[[T], bool]) -> list[pytest.ParameterSet]:
    """Values of a `parametrize`, some of which a short run has no time for."""
    return [pytest.param(value, marks=pytest.mark.long if is_long(value) else ()) for value in values]


def share(items: Sequence[T], name: str) -> list[T]:
    """A part of the items, at least one, and another part by another name."""
    return list(items[zlib.crc32(name.encode()) % min(PART, len(items)) :: PART] if _breadth["is_short"] else items)


def combinations(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """All combinations of values; in a short run as many as the longest axis has, with each value of each axis."""
    values = [list(axis) for axis in axes]
    if not _breadth["is_short"]:
        return [*itertools.product(*values)]
    longest = max(map(len, values))
    chosen: list[tuple[Any, ...]] = []
    for number in range(longest):
        step, combination = 1, list[Any]()
        for axis in values:
            combination.append(axis[number // (step if len(axis) < longest else 1) % len(axis)])
            step *= len(axis) if len(axis) < longest else 1
        chosen.append(tuple(combination))
    return chosen


def is_drawn(name: str) -> bool:
    """Whether a run does what a short one has time for in a part of the tests alone, in the test of that name."""
    return not _breadth["is_short"] or zlib.crc32(name.encode()) % PART == 0


def in_short_run(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Those tests that a short run has, in their order."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not item.get_closest_marker("long") and not item.get_closest_marker("extra"):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    chosen = {item for name, group in functions.items() for item in _covering(name, group)}
    return [item for item in items if item in chosen]


def _covering(function: str, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """
    As many of the tests of a function as have each value of each `parametrize`, and all if there is but one.

    Where an axis has more values than another, those of the other take turns.
    """
    values = [_values(item) for item in items]
    axes = {axis for found in values for axis in found}
    if axes == {TARGET}:
        return [items[zlib.crc32(function.encode()) % len(items)]]
    if len(axes) < 2:
        return list(items)
    missing = {pair for found in values for pair in found.items()}
    used, chosen = Counter[tuple[str, object]](), list[pytest.Item]()

    def worth(place: int) -> tuple[int, int]:
        pairs = values[place].items()
        return len(missing & pairs), -sum(used[pair] for pair in pairs)

    while missing:
        best = max(range(len(items)), key=worth)
        missing -= values[best].items()
        used.update(values[best].items())
        chosen.append(items[best])
    return chosen


def _values(item: pytest.Item) -> Mapping[str, object]:
    """The value of each `parametrize` of a test, by the names of its parameters."""
    found = getattr(item, "callspec", None)
    if found is None:
        return {}
    names = [marker.args[0] for marker in item.iter_markers("parametrize")]
    parts = [(part.split(",") if isinstance(part, str) else part) for part in names]
    # Values are told apart as objects, since most have no equality; tests that share a value share the object.
    return {",".join(part): tuple(id(found.params[name.strip()]) for name in part) for part in parts}
