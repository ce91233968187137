"""Folds along dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i8
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.dialects.element_types import is_bool, is_float, numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, SliceOp
from glow_mlir.dialects.glow_high.reductions import (
    ArgMaxOp,
    ArgMinOp,
    ReduceMaxOp,
    ReduceMinOp,
    ReduceProdOp,
    ReduceSumOp,
)
from glow_mlir.dialects.shapes import element_of, shape_of, sizes_of
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.control_flow import leaves, rebuilt
from glow_mlir.frontends.stablehlo.operators.data_movement import expanded, transposed
from glow_mlir.frontends.stablehlo.regions import Expression, argument, computation, operation

FOLDS: Mapping[str, type[HighOp]] = {
    "stablehlo.add": ReduceSumOp,
    "stablehlo.multiply": ReduceProdOp,
    "stablehlo.maximum": ReduceMaxOp,
    "stablehlo.minimum": ReduceMinOp,
}
"""The operation of a region → the operator that folds by it."""

FOLDS_OF_TRUTH: Mapping[str, type[HighOp]] = {
    "stablehlo.add": ReduceMaxOp,
    "stablehlo.maximum": ReduceMaxOp,
    "stablehlo.or": ReduceMaxOp,
    "stablehlo.multiply": ReduceMinOp,
    "stablehlo.minimum": ReduceMinOp,
    "stablehlo.and": ReduceMinOp,
}
"""The same for truth values."""


EMPTY_FOLDS: Mapping[str, int] = {"stablehlo.add": 0, "stablehlo.multiply": 1}
"""Operation → the fold of no numbers."""


def single_operation(block: Block) -> str:
    """The name of the only operation of a region, which is on its two arguments; else an empty string."""
    operations = list(block.ops)
    if len(operations) != 2 or len(block.args) != 2:
        return ""
    one, end = operations
    is_pair = set(one.operands) == set(block.args) and list(end.operands) == list(one.results)
    return one.name if is_pair else ""


@stablehlo_operator("reduce")
def reduce(node: StablehloNode) -> Sequence[Value]:
    """A fold of tensors along dimensions by a region."""
    axes, count = sorted(node.integers("dimensions")), node.count // 2
    values, initial = ([node.value(number + first) for number in range(count)] for first in (0, count))
    folded = _by_operator(node, values, axes) or _position(node, values, axes)
    if folded is not None:
        return folded
    shape = node.static_shape()
    starts = [rebuilt([item], [expanded(node, leaf, shape) for leaf in leaves([item])])[0] for item in initial]
    if 0 in shape_of(leaves(values)[0]):
        return starts
    found = node.mapped(0, [*starts, *folded_in_pairs(node, values, axes)])
    return rebuilt(found, [expanded(node, leaf, shape) for leaf in leaves(found)])


def _by_operator(node: StablehloNode, values: Sequence[Value], axes: Sequence[int]) -> Sequence[Value] | None:
    """The fold of one tensor by one operation, combined with what it starts from."""
    if len(values) != 1:
        return None
    kind, parts = single_operation(node.op.regions[0].block), leaves(values)
    if len(parts) > 1 and kind != "stablehlo.add":
        return None
    folded = [item for part in parts if (item := folded_by(node, part, kind, axes)) is not None]
    if not folded:
        return None
    starts = [node.fold(part) for part in leaves([node.value(1)])]
    if all(start is not None and _is_identity(kind, start) for start in starts):
        return rebuilt(values, folded)
    return node.mapped(0, [*rebuilt(values, folded), node.value(1)])


def _is_identity(kind: str, start: np.ndarray) -> bool:
    """Whether a fold by an operation may leave out what it starts from."""
    if kind in EMPTY_FOLDS:
        return bool((start == EMPTY_FOLDS[kind]).all())
    if start.dtype == bool:
        return bool((start == (kind in ("stablehlo.minimum", "stablehlo.and"))).all())
    limit = limits_of(start.dtype)[kind == "stablehlo.minimum"]
    return kind in ("stablehlo.maximum", "stablehlo.minimum") and bool((start == limit).all())


def limits_of(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The smallest and the largest number of an element type, infinite for floats."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return -np.inf, np.inf


def _position(node: StablehloNode, values: Sequence[Value], axes: Sequence[int]) -> Sequence[Value] | None:
    """The first extreme along an axis and its position, as JAX writes it: a NaN is the extreme."""
    if len(values) != 2 or len(axes) != 1 or not counts(node.op.operands[1], axes[0]):
        return None
    found, value = computation(node.op.regions[0].block), values[0]
    direction = next((word for word in ("GT", "LT") if found is not None and found.results == _extreme(word)), "")
    direction = direction or next((w for w in ("GT", "LT") if found and found.results == _extreme(w, " FLOAT")), "")
    if not direction or not isinstance(value, SSAValue) or not _starts_from_nothing(node, value, direction):
        return None
    number = node.cast(value, i8) if is_bool(element_of(value)) else value
    reduction, search = (ReduceMaxOp, ArgMaxOp) if direction == "GT" else (ReduceMinOp, ArgMinOp)
    extreme = node.emit(reduction, number, axes=tuple(axes), keepdims=False)
    where = node.emit(search, number, axis=axes[0], keepdims=False)
    return [node.cast(extreme, element_of(value)), node.cast(where, node.element(1))]


def _extreme(direction: str, kind: str = "") -> tuple[Expression, Expression]:
    """What JAX's region returns for the extreme of numbers (arguments 0 and 2), and its position (1 and 3)."""
    one, own, other, position = map(argument, range(4))
    is_nan = operation(f"compare NE{kind}", one, one)
    wins = operation("or", operation(f"compare {direction}{kind}", one, other), is_nan)
    is_equal = operation(f"compare EQ{kind}", one, other)
    is_first = operation("and", is_equal, operation("compare LT", own, position))
    first = operation("or", wins, is_first)
    return operation("select", wins, one, other), operation("select", first, own, position)


def _starts_from_nothing(node: StablehloNode, value: SSAValue, direction: str) -> bool:
    """Whether an extreme starts from the number that every other one beats, and position 0."""
    known = [node.fold(node.input(number)) for number in (2, 3)]
    if known[0] is None or known[1] is None or known[1].item() != 0:
        return False
    return known[0].item() == limit_of(element_of(value), is_lowest=direction == "GT")


def folded_in_pairs(node: StablehloNode, values: Sequence[Value], axes: Sequence[int]) -> list[Value]:
    """Tensors folded along axes by the region of the node, neighbours with neighbours, until one element is left."""
    parts, axis = leaves(values), axes[0] if axes else 0
    shape = shape_of(parts[0])
    kept = [size for at, size in enumerate(shape) if at not in axes]
    if len(axes) != 1:  # The axes become one in front.
        order = [*axes, *(at for at in range(len(shape)) if at not in axes)]
        length = math.prod(shape[at] for at in axes)
        parts = [node.reshaped(transposed(node, part, order), (length, *kept)) for part in parts]
        axis = 0
    while (length := shape_of(parts[0])[axis]) > 1:
        sides = [[_every_other(node, part, axis, first) for part in parts] for first in (0, 1)]
        combined = leaves(node.mapped(0, [value for side in sides for value in rebuilt(values, side)]))
        if length % 2:
            rest = [cut(node, part, {axis: (length - 1, length)}) for part in parts]
            combined = [node.emit(ConcatOp, pair, axis=axis) for pair in zip(combined, rest, strict=True)]
        parts = combined
    return rebuilt(values, [node.reshaped(part, kept) for part in parts])


def _every_other(node: StablehloNode, value: SSAValue, axis: int, first: int) -> SSAValue:
    """Every other element of an axis, from the one at `first` on, as many as there are pairs."""
    shape = shape_of(value)
    starts = [first if at == axis else 0 for at in range(len(shape))]
    ends = [first + size // 2 * 2 - 1 if at == axis else size for at, size in enumerate(shape)]
    steps = [2 if at == axis else 1 for at in range(len(shape))]
    return node.emit(SliceOp, value, starts=starts, ends=ends, steps=steps)


@stablehlo_operator("map")
def map_(node: StablehloNode) -> Value:
    """A region for each element of tensors of one shape."""
    (found,) = node.mapped(0, [node.value(number) for number in range(node.count)])
    (found,) = rebuilt([found], [expanded(node, leaf, node.static_shape()) for leaf in leaves([found])])
    return found


def counts(value: SSAValue, axis: int) -> bool:
    """Whether a value of a program has the positions along an axis."""
    op = value.owner
    if not isinstance(op, Operation) or op.name != "stablehlo.iota":
        return False
    dimension = op.properties.get("iota_dimension")
    return isinstance(dimension, IntegerAttr) and dimension.value.data == axis


def limit_of(element: Attribute, is_lowest: bool) -> float:
    """The lowest or the highest number of an element type: an infinity of floats."""
    if is_float(element):
        return -inf if is_lowest else inf
    if is_bool(element):
        return 0 if is_lowest else 1
    limits = np.iinfo(numpy_dtype(element))
    return int(limits.min if is_lowest else limits.max)


def folded_by(node: StablehloNode, value: SSAValue, kind: str, axes: Sequence[int]) -> SSAValue | None:
    """A value folded along axes by an operation; `None` if there is no operator for it."""
    if is_bool(element_of(value)):
        operator = FOLDS_OF_TRUTH.get(kind)
        if operator is None:
            return None
        return node.cast(_folded(node, operator, node.cast(value, i8), axes), element_of(value))
    operator = FOLDS.get(kind)
    return None if operator is None else _folded(node, operator, value, axes)


def _folded(node: StablehloNode, operator: type[HighOp], value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """
    A value folded along axes, which the result has no longer.

    The operator keeps them, since most results broadcast along them, as softmax and normalization do.
    """
    found = node.emit(operator, value, axes=tuple(axes), keepdims=True)
    return node.reshaped(found, [size for axis, size in enumerate(sizes_of(value)) if axis not in axes])
