"""What callers may give who have no type checker."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any, cast


def whole_number(value: object) -> int | None:
    """The whole number that a value is, numpy's among them; `None` for all else, and for truth values."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return None


def seconds(value: object) -> float | None:
    """The duration that a value is, from 0 on; `None` for all else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    found = float(value)
    return found if 0 <= found < math.inf else None


def truth(text: str) -> bool | None:
    """The truth value that a text is, in one of the spellings of LLVM's command-line library; `None` for all else."""
    return {"1": True, "true": True, "0": False, "false": False}.get(text.lower())


def plain_numbers(value: Any) -> Any:
    """A whole number, or a tuple of some, in numbers of Python, where numpy's are given; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(map(plain_numbers, cast("tuple[Any, ...]", value)))
    number = whole_number(value)
    return value if number is None else number
