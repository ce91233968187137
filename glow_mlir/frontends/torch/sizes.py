"""Convert traced sizes, which are expressions of symbols, to ours."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.torch.traced_graph import LEAVES, TracedSize
from glow_mlir.support.symbols import NUMBERS_INSTEAD, Size, SymbolicSize


def _quotient(one: Size, other: Size) -> Size:
    if isinstance(other, SymbolicSize):
        raise ValueError
    return one // other


def _rest(one: Size, other: Size) -> Size:
    return one - _quotient(one, other) * other


def _larger(one: Size, other: Size) -> Size:
    if smallest(one - other) >= 0:
        return one
    if largest(one - other) <= 0:
        return other
    raise ValueError


def _smaller(one: Size, other: Size) -> Size:
    return one if _larger(one, other) is other else other


OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "mul": operator.mul,
    "floordiv": _quotient,
    "mod": _rest,
    "max": _larger,
    "min": _smaller,
}
"""Word of an expression → its function on two sizes; raises `ValueError` if the result is not a size."""


def size_of_expression(size: TracedSize, known: Mapping[str, Size]) -> Size:
    """
    Convert a traced size; `known` has the values of symbols.

    Raises `UnsupportedError` if the result is not a size for all values of symbols.
    """
    if isinstance(size, int):
        return size
    if size.word == "number":
        return int(size.value)
    if size.word == "symbol":
        if (found := known.get(str(size.value))) is None:
            raise UnsupportedError(f"the size {size.value}, which depends on data, is not supported")
        return found
    operation = OPERATIONS.get(size.word)
    if operation is not None:
        try:
            return reduce(operation, (size_of_expression(part, known) for part in size.parts))
        except ValueError:
            pass
    raise UnsupportedError(f"the size {spelled(size)} is not supported", hint=NUMBERS_INSTEAD)


_SIGNS = {"add": " + ", "mul": " * ", "floordiv": " // "}


def spelled(size: TracedSize) -> str:
    """A size as text, which `size_from_label` can parse if it is a sum of products and quotients."""
    if isinstance(size, int):
        return str(size)
    if size.word in LEAVES:
        return str(size.value)
    parts = [spelled(part) for part in size.parts]
    if size.word not in _SIGNS:
        return f"{size.word}({', '.join(parts)})"
    if size.word == "add":
        return _SIGNS["add"].join(parts).replace("+ -1 * ", "- ").replace("+ -", "- ")
    return _SIGNS[size.word].join(
        f"({text})" if part.word in _SIGNS and part.word != "mul" else text
        for part, text in zip(size.parts, parts, strict=True)
    )
