"""What callers may give who have no type checker."""

from __future__ import annotations

import operator


def whole_number(value: object) -> int | None:
    """The whole number that a value is, numpy's among them; `None` for all else, and for truth values."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return None
