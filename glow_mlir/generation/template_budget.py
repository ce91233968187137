"""
The work that a template may do: rounds of loops, calls, and characters that it makes or reads, in one unit.

A unit is some 30 ns, and 4 bytes of text. What is made of a value is charged before it is made, so that neither time
nor memory goes beyond the budget by much.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from typing import Any, cast

from glow_mlir.support.json_values import is_sequence

MAX_WORK = 1 << 26
"""The maximum number of units."""

MAX_TEXT = 1 << 23
"""The maximum number of characters of a text."""

MAX_BITS = 1 << 12
"""The maximum number of bits of a number."""

MAX_PRECISION = 64
"""The maximum number of decimal places, and of spaces that JSON is indented by."""

STEP, ELEMENT = 64, 64
"""Units of a round of a loop or of a call, and of an element of a list that is made or read."""

_DIGITS = re.compile(r"\d+")


class TooMuchError(Exception):
    """A template that goes on for too long, or makes too long a text."""


_LEFT: ContextVar[list[int]] = ContextVar("left")
"""The units that a template has left."""


def bounded(render: Callable[[], str]) -> str:
    """The text of a template, which may do `MAX_WORK`; raises `TooMuchError`."""
    token = _LEFT.set([MAX_WORK])
    try:
        return render()
    finally:
        _LEFT.reset(token)


def charge(units: int) -> None:
    """Take units of the budget. Raises `LookupError` outside of `bounded`: Jinja then folds no constants with it."""
    left = _LEFT.get()
    left[0] -= units
    if left[0] < 0:
        raise TooMuchError("the template takes too many steps, or makes too long a text")


def counted(items: Iterable[Any]) -> Iterator[Any]:
    """The items of a loop, a step for each."""
    for item in items:
        charge(STEP)
        yield item


def made(value: Any) -> Any:
    """A value that an operation made, charged by its size."""
    kind = cast("type[Any]", type(value))
    if issubclass(kind, str | bytes):
        check_length(len(value))
        charge(sys.getsizeof(value) >> 2)
    elif issubclass(kind, list | tuple | dict):
        charge(ELEMENT * len(value))
    elif issubclass(kind, int) and value.bit_length() > MAX_BITS:
        raise TooMuchError(f"the template makes a number of more than {MAX_BITS} bits")
    return value


def check_length(length: int) -> None:
    """Raise `TooMuchError` for a text that would be too long."""
    if length > MAX_TEXT:
        raise TooMuchError(f"the template makes a text of more than {MAX_TEXT} characters")


def read(value: Any) -> Any:
    """A value that an operation is about to read as a whole, charged with all that is in it."""
    extent(value)
    return value


def extent(value: Any) -> int:
    """
    The length of a value as text, about; charges its elements, as often as they are in it.

    A list that has another one twice, which has another one twice, is as long as its text would be.
    """
    length, left = 0, [value]
    while left:
        item = left.pop()
        if isinstance(item, str | bytes):
            charge(len(item) >> 3)
            length += len(item)
            continue
        parts = _parts(item)
        charge(ELEMENT * len(parts))
        length += 4 * len(parts) + 32
        left += parts
    return length


def _parts(value: Any) -> Sequence[Any]:
    """What is in a value that contains others."""
    kind = cast("type[Any]", type(value))
    if issubclass(kind, Mapping):
        return [*value.keys(), *value.values()]
    if issubclass(kind, list | tuple):
        return value
    if issubclass(kind, AbstractSet | ValuesView):
        charge(ELEMENT * len(value))
        return list(value)
    # The variables of a namespace, which its text has.
    return [getattr(value, "_Namespace__attrs", {})] if type(value).__name__ == "Namespace" else ()


def joined(parts: Iterable[Any]) -> str:
    """Texts, joined: those of a template, a macro or a block."""
    found, length = list[str](), 0
    for part in parts:
        charge(8 + (len(part) >> 3))
        length += len(part)
        check_length(length)
        found.append(part)
    return made("".join(found))


def texts(parts: Sequence[Any]) -> str:
    """The texts of values, joined: Jinja's `~`."""
    read(parts)
    return joined(map(str, parts))


def shown(value: Any) -> Any:
    """A value that the template writes out."""
    return value if isinstance(value, str) else str(read(value))


def check_growth(function: str, operands: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Raise `TooMuchError` for a function that makes far more than its operands are; the first one is the text."""
    lengths = _GROWTH.get(function)
    if lengths is not None and operands:
        length = lengths(operands[0], [*operands[1:], *named.values()])
        check_length(length)
        charge(length >> 2)


def _number(values: Sequence[Any], default: int = 0) -> int:
    """The largest number among operands, or the longest text."""
    sizes = [len(value) if isinstance(value, str) else abs(value) for value in values if isinstance(value, int | str)]
    return max(sizes, default=default)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(read(value))


def _padded(value: Any, others: Sequence[Any]) -> int:
    return len(_text(value)) + _number(others, 80)


def _expanded(value: Any, others: Sequence[Any]) -> int:
    text = value if isinstance(value, bytes) else _text(value).encode("utf-8", "replace")
    return len(text) + text.count(b"\t") * _number(others, 8)


def _indented(value: Any, others: Sequence[Any]) -> int:
    text = _text(value)
    return len(text) + (len(text.splitlines()) + 1) * _number(others, 4)


def _replaced(value: Any, others: Sequence[Any]) -> int:
    text, sizes = _text(value), [len(_text(other)) for other in others]
    old = _text(others[0]) if others else ""
    return len(text) + (text.count(old) if old else len(text) + 1) * max(sizes, default=0)


def _joined(value: Any, others: Sequence[Any]) -> int:
    """Of a filter, the list comes first; of a method, the separator."""
    items, separator = (others[0], value) if isinstance(value, str | bytes) and others else (value, others)
    count = len(items) if hasattr(items, "__len__") else 0
    return extent(items) + count * extent(separator)


def _formatted(value: Any, others: Sequence[Any]) -> int:
    text = _text(value)
    widths = [int(digits) if len(digits) < 9 else MAX_TEXT for digits in _DIGITS.findall(text)]
    groups: list[Sequence[Any]] = [other if is_sequence(other) else [other] for other in others]
    numbers = [item for group in groups for item in group]
    stars = sum(abs(item) for item in numbers if isinstance(item, int)) if "*" in text or "{" in text else 0
    each = sum(extent(other) for other in others) + stars
    return len(text) + sum(widths) + (text.count("%") + text.count("{")) * each


def _json(value: Any, others: Sequence[Any]) -> int:
    if any(_number([item]) > MAX_PRECISION for item in others if not isinstance(item, bool)):
        raise TooMuchError(f"the template indents JSON by more than {MAX_PRECISION}")
    return extent(value)


def _rounded(value: Any, others: Sequence[Any]) -> int:
    if _number(others) > MAX_PRECISION:
        raise TooMuchError(f"the template rounds to more than {MAX_PRECISION} decimal places")
    return 0


def _split(value: Any, others: Sequence[Any]) -> int:
    """Elements of lists are charged as so many characters."""
    text = value if isinstance(value, str) else ""
    separators = [other for other in others if isinstance(other, str) and other]
    count = text.count(separators[0]) if separators else len(text) >> 3
    charge(ELEMENT * count)
    return 0


def _summed(value: Any, others: Sequence[Any]) -> int:
    if any(isinstance(other, list | tuple) for other in others):
        raise TooMuchError("the template adds lists by sum")
    return 0


def _elements(value: Any, others: Sequence[Any]) -> int:
    """A text as a list of its characters."""
    charge(ELEMENT * len(value) if isinstance(value, str) else 0)
    charge(sum(ELEMENT * abs(other) for other in others if isinstance(other, int)))
    return 0


_GROWTH: Mapping[str, Callable[[Any, Sequence[Any]], int]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "truncate", "to_bytes"), _padded),
    **dict.fromkeys(("split", "rsplit", "splitlines", "title", "wordcount"), _split),
    **dict.fromkeys(("list", "sort", "unique", "batch", "slice", "groupby", "reverse", "map", "select"), _elements),
    "expandtabs": _expanded,
    "indent": _indented,
    "replace": _replaced,
    "join": _joined,
    "format": _formatted,
    "format_map": _formatted,
    "tojson": _json,
    "round": _rounded,
    "sum": _summed,
}
"""Filter or method → the length of its result at most, by the text and the other operands."""


def check_operator(operator: str, left: Any, right: Any) -> None:
    """Raise `TooMuchError` for an operator whose result would be too large."""
    if operator == "%" and isinstance(left, str):
        check_growth("format", (left, right), {})
    if operator == "*":
        length = max(_repeated(left, right), _repeated(right, left))
        check_length(length)
        charge(length if isinstance(left, str) or isinstance(right, str) else ELEMENT * length)
    if operator == "**" and isinstance(left, int) and isinstance(right, int):
        if left.bit_length() * max(right, 1) > MAX_BITS:
            raise TooMuchError(f"the template makes a number of more than {MAX_BITS} bits")


def _repeated(value: Any, count: Any) -> int:
    """The length of a text or list that is repeated."""
    is_long = isinstance(value, str | bytes) or is_sequence(value)
    return len(value) * count if is_long and isinstance(count, int) else 0
