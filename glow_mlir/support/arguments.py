"""Checks of arguments from untyped callers."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any, cast


def whole_number(value: object) -> int | None:
    """
    The value as an integer if it is a whole number, possibly numpy's; `None` for anything else, including booleans.
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return None


def seconds(value: object) -> float | None:
    """The value as a nonnegative duration; `None` for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    found = float(value)
    return found if 0 <= found < math.inf else None


def truth(text: str) -> bool | None:
    """Parse a boolean in the spellings of LLVM's command-line library; `None` for anything else."""
    return {"1": True, "true": True, "0": False, "false": False}.get(text.lower())


def plain_numbers(value: Any) -> Any:
    """Convert a numpy integer, or a tuple of them, to Python integers; other values are unchanged."""
    if isinstance(value, tuple):
        return tuple(map(plain_numbers, cast("tuple[Any, ...]", value)))
    number = whole_number(value)
    return value if number is None else number
