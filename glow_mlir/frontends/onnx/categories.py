"""Where values are in a list of categories, which constants say: the core of encoders."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import element_type
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


def positions_of(node: Node, value: SSAValue | Strings, categories: np.ndarray) -> SSAValue:
    """The position of each element in a list of categories, see `looked_up`; the length of the list for any other."""
    return looked_up(node, value, categories, np.arange(len(categories) + 1))


def looked_up(
    node: Node, value: SSAValue | Strings, categories: np.ndarray, results: np.ndarray, nan_equals: bool = False
) -> SSAValue:
    """
    For each element the number in `results` at its position in a list of categories; the last one for any other.

    There is one for each category, and one more. Of categories that come twice, the first counts. Strings have
    categories that are strings, numbers those of a type that theirs becomes. A NaN is a category only where
    `nan_equals`.
    """
    if isinstance(value, Strings):
        return _by_table(node, value.numbers, node.strings.numbers(categories), results)
    numbers, positions = np.unique(categories, return_index=True)
    if categories.dtype.kind in "iu":
        span = int(numbers[-1]) - int(numbers[0]) if len(numbers) else 0
        limits = np.iinfo(np.int64)
        has_beyond = not len(numbers) or (int(numbers[0]) > limits.min and int(numbers[-1]) < limits.max)
        is_dense = has_beyond and span < max(DENSE, 4 * len(numbers))
        if is_dense:
            return _by_table(node, value, categories, results)
        return _by_search(node, value, numbers, results[positions], results[-1])
    is_number = ~np.isnan(numbers)
    found = _by_search(node, value, numbers[is_number], results[positions[is_number]], results[-1])
    if nan_equals and np.isnan(categories).any():
        first = node.constant(results[np.flatnonzero(np.isnan(categories))[0]])
        found = node.emit(WhereOp, node.emit(IsNanOp, value), first, found)
    return found


def _by_table(node: Node, value: SSAValue, categories: np.ndarray, results: np.ndarray) -> SSAValue:
    """The results for integers that are close to each other, from a table by their values."""
    if not len(categories):
        return _everywhere(node, value, results[-1])
    least, most = int(categories.min()), int(categories.max())
    table = np.full(most - least + 3, results[-1], results.dtype)  # At each end there is one for all that is beyond.
    table[categories[::-1] - least + 1] = results[-2::-1]
    limits = (node.constant(np.array(limit, np.int64)) for limit in (least - 1, most + 1))
    index = node.emit(SubOp, node.emit(ClipOp, node.cast(value, i64), *limits), node.splat(least - 1, i64))
    return node.emit(GatherOp, node.constant(table, "categories"), index, axis=0)


def _by_search(
    node: Node, value: SSAValue, numbers: np.ndarray, results: np.ndarray, otherwise: np.generic
) -> SSAValue:
    """The results for numbers by a binary search in sorted ones, each of which has its own."""
    if not len(numbers):
        return _everywhere(node, value, otherwise)
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
    result = node.emit(GatherOp, node.constant(results, "values"), found, axis=0)
    return node.emit(WhereOp, is_there, result, node.constant(np.asarray(otherwise)))


def _everywhere(node: Node, value: SSAValue, result: np.generic) -> SSAValue:
    """One result for all elements of a value."""
    return node.splat(result.item(), element_type(result.dtype), sizes_of(value))
