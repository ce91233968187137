"""
How broad a run of the tests is: all of it, or, with `--short`, what `make test` has time for.

A short run leaves out tests that are marked `long`, and those marked `extra`, which need packages or programs that come
with `make test-all`. Of the values of a swept parameter it takes one for each combination of the others, in turn, so
that each value has its share of the cases, and hypothesis draws a part of its examples.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pytest

SWEPT = frozenset(["target"])
"""Parameters that are swept wherever a test has them; the marker `sweep` names others."""

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


def in_short_run(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Those tests that a short run has, in their order."""
    functions: dict[str, dict[object, list[pytest.Item]]] = {}
    for item in items:
        if not item.get_closest_marker("long") and not item.get_closest_marker("extra"):
            combinations = functions.setdefault(item.nodeid.partition("[")[0], {})
            combinations.setdefault(_combination(item), []).append(item)
    chosen: set[pytest.Item] = set()
    for function, combinations in functions.items():
        first = zlib.crc32(function.encode())
        chosen |= {group[place % len(group)] for place, group in enumerate(combinations.values(), first)}
    return [item for item in items if item in chosen]


def _combination(item: pytest.Item) -> object:
    """The parameters of a test that are not swept, or what tells it from all others."""
    found = getattr(item, "callspec", None)
    # Values are told apart as objects, since most have no equality; tests that share a value share the object.
    values: dict[str, int] = {name: id(value) for name, value in found.params.items()} if found is not None else {}
    swept = SWEPT.union(*(marker.args for marker in item.iter_markers("sweep"))) & values.keys()
    return frozenset(item for item in values.items() if item[0] not in swept) if swept else item.nodeid
