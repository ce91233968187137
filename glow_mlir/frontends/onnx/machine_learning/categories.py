"""Look up values in a constant list of categories: the core of encoders."""

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
"""The length that a table indexed by value may always have, however few categories there are."""


def positions_of(node: Node, value: SSAValue | Strings, categories: np.ndarray) -> SSAValue:
    """The position of each element in a list of categories, else the length of the list; see `looked_up`."""
    return looked_up(node, value, categories, np.arange(len(categories) + 1))


def looked_up(
    node: Node, value: SSAValue | Strings, categories: np.ndarray, results: np.ndarray, nan_equals: bool = False
) -> SSAValue:
    """
    Map each element to the entry of `results` at its position in a list of categories.

    `results` has an entry for each category, and a last one for all other elements. If a category is repeated, the
    first one counts. Categories are strings if the elements are strings, else numbers. NaN matches the category NaN
    only if `nan_equals`.
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
    """The results for categories that are integers close together, from a table indexed by value."""
    if not len(categories):
        return _everywhere(node, value, results[-1])
    least, most = int(categories.min()), int(categories.max())
    table = np.full(most - least + 3, results[-1], results.dtype)  # Each end has an entry for values outside.
    table[categories[::-1] - least + 1] = results[-2::-1]
    limits = (node.constant(np.array(limit, np.int64)) for limit in (least - 1, most + 1))
    index = node.emit(SubOp, node.emit(ClipOp, node.cast(value, i64), *limits), node.splat(least - 1, i64))
    return node.emit(GatherOp, node.constant(table, "categories"), index, axis=0)


def _by_search(
    node: Node, value: SSAValue, numbers: np.ndarray, results: np.ndarray, otherwise: np.generic
) -> SSAValue:
    """The results by binary search in sorted `numbers`, each with its entry of `results`; else `otherwise`."""
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
    """The same result for all elements of a value."""
    return node.splat(result.item(), element_type(result.dtype), sizes_of(value))
