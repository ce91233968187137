"""Names of which no two are equal."""

from __future__ import annotations

from collections.abc import Sequence


def apart(wishes: Sequence[str]) -> list[str]:
    """A name for each wish, in order: the wish, or where that is another one's, the wish with a number behind it."""
    taken, found = set(wishes), list[str]()
    for number, wish in enumerate(wishes):
        name = wish
        while name in found or (name != wish and name in taken):
            name, number = f"{wish}_{number}", number + 1
        found.append(name)
    return found
