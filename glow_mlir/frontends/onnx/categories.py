"""Where values are in a list of categories, which constants say: the core of encoders."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    ClipOp,
    EqualOp,
    LessOrEqualOp,
    MinOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import IsNanOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Strings

DENSE = 1 << 12
"""How long a table by value may be however few the categories are."""


def positions_of(node: Node, value: SSAValue | Strings, categories: np.ndarray, nan_equals: bool = False) -> SSAValue:
    """
    The position of each element in a list of categories, i64 of its shape; the length of the list for any other.

    Of categories that come twice, the first counts. Strings have categories that are strings, numbers those of a type
    that theirs becomes. A NaN is a category only where `nan_equals`.
    """
    if isinstance(value, Strings):
        return _by_table(node, value.numbers, node.strings.numbers(categories))
    numbers, places = np.unique(categories, return_index=True)
    if categories.dtype.kind in "iu":
        span = int(numbers[-1]) - int(numbers[0]) if len(numbers) else 0
        limits = np.iinfo(np.int64)
        has_beyond = not len(numbers) or (int(numbers[0]) > limits.min and int(numbers[-1]) < limits.max)
        is_dense = has_beyond and span < max(DENSE, 4 * len(numbers))
        return _by_table(node, value, categories) if is_dense else _by_search(node, value, numbers, places, categories)
    is_number = ~np.isnan(numbers)
    found = _by_search(node, value, numbers[is_number], places[is_number], categories)
    if nan_equals and np.isnan(categories).any():
        first = node.splat(int(np.flatnonzero(np.isnan(categories))[0]), i64)
        found = node.emit(WhereOp, node.emit(IsNanOp, value), first, found)
    return found


def _by_table(node: Node, value: SSAValue, categories: np.ndarray) -> SSAValue:
    """The positions of integers that are close to each other, from a table by their values."""
    count = len(categories)
    if not count:
        return node.splat(0, i64, sizes_of(value))
    least, most = int(categories.min()), int(categories.max())
    table = np.full(most - least + 3, count, np.int64)  # At each end there is one for all that is beyond.
    table[categories[::-1] - least + 1] = np.arange(count)[::-1]
    limits = (node.constant(np.array(limit, np.int64)) for limit in (least - 1, most + 1))
    index = node.emit(SubOp, node.emit(ClipOp, node.cast(value, i64), *limits), node.splat(least - 1, i64))
    return node.emit(GatherOp, node.constant(table, "categories"), index, axis=0)


def _by_search(
    node: Node, value: SSAValue, numbers: np.ndarray, places: np.ndarray, categories: np.ndarray
) -> SSAValue:
    """The positions of numbers by a binary search in sorted ones, of which each has its place in the list."""
    missing = node.splat(len(categories), i64)
    if not len(numbers):
        return node.splat(len(categories), i64, sizes_of(value))
    known = node.constant(numbers, "categories")
    last = node.splat(len(numbers) - 1, i64)
    found = node.splat(0, i64, sizes_of(value))
    step = 1 << max(0, (len(numbers) - 1).bit_length() - 1) if len(numbers) > 1 else 0
    while step:
        further = node.emit(MinOp, node.emit(AddOp, found, node.splat(step, i64)), last)
        is_below = node.emit(LessOrEqualOp, node.emit(GatherOp, known, further, axis=0), value)
        found = node.emit(WhereOp, is_below, further, found)
        step //= 2
    is_there = node.emit(EqualOp, node.emit(GatherOp, known, found, axis=0), value)
    return node.emit(
        WhereOp, is_there, node.emit(GatherOp, node.constant(places.astype(np.int64)), found, axis=0), missing
    )
