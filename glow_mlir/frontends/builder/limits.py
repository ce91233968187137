"""Limits for the size of modules and their values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.shapes import MAX_AXES, sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.errors import UnsupportedError
from glow_mlir.support.identity import kept_by_identity

MAX_ELEMENTS = 1 << 40
"""The maximum number of elements of a value: more would not fit into memory, and byte counts stay far below 2^63."""

MAX_OPERATORS = 1 << 20
"""The maximum number of operators of a graph: more take hours to compile, and unrolled nested loops can be huge."""


def check_results(op: Operation) -> None:
    """Raise `UnsupportedError` for results whose sizes may be negative, and errors like `check_shape`."""
    for result in op.results:
        _check_type(result.type)


@kept_by_identity
def _check_type(type_: Attribute) -> None:
    """`check_results` for a result's type."""
    sizes = sizes_of(type_)
    for size in sizes:
        if not isinstance(size, int) and smallest(size) < 0:
            hint = "give narrower bounds, or sizes"
            raise UnsupportedError(f"the size {size} may be negative", hint=hint)
    check_shape([largest(size) for size in sizes])


def check_shape(shape: Sequence[int]) -> None:
    """
    Raise `UnsupportedError` for more than `MAX_AXES` axes or `MAX_ELEMENTS` elements, counting sizes of 0 as 1.

    Raises `VerifyException` for negative sizes.
    """
    if min(shape, default=0) < 0:
        raise VerifyException(f"no value has the shape {tuple(shape)} (hint: check what its sizes come from)")
    if len(shape) > MAX_AXES:
        hint = f"values have at most {MAX_AXES} axes: merge adjacent ones"
        raise UnsupportedError(f"a value of {len(shape)} axes is not supported", hint=hint)
    if math.prod([size or 1 for size in shape]) > MAX_ELEMENTS:
        hint = "check the sizes of inputs, and constants that determine sizes"
        raise UnsupportedError(f"a value of shape {tuple(shape)} is too large", hint=hint)


def check_count(operators: int) -> None:
    """Raise `UnsupportedError` for more operators than `MAX_OPERATORS`."""
    if operators > MAX_OPERATORS:
        hint = "loops whose shapes change from trip to trip are unrolled: give them fewer trips"
        raise UnsupportedError(f"the graph becomes more than {MAX_OPERATORS} operators", hint=hint)
