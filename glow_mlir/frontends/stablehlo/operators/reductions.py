"""Folds along dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, i8
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.expressions import Tensor, fold
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
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of, sizes_of
from glow_mlir.frontends.builder.generics import computed
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.stablehlo.folds import fold_of, limit_of, starts_neutral
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.control_flow import leaves, rebuilt
from glow_mlir.frontends.stablehlo.operators.data_movement import expanded, transposed
from glow_mlir.frontends.stablehlo.regions import Expression, argument, computation, operation

OPERATORS: Mapping[str, type[HighOp]] = {
    "add": ReduceSumOp,
    "mul": ReduceProdOp,
    "max": ReduceMaxOp,
    "min": ReduceMinOp,
}
"""Fold → the operator of it."""


@stablehlo_operator("reduce")
def reduce(node: StablehloNode) -> Sequence[Value]:
    """A fold of tensors along dimensions by a region."""
    axes, count = sorted(node.integers("dimensions")), node.count // 2
    values, initial = ([node.value(number + first) for number in range(count)] for first in (0, count))
    sizes = sizes_of(leaves(values)[0])
    shape = tuple(size for axis, size in enumerate(sizes) if axis not in axes)
    starts = rebuilt(initial, [expanded(node, leaf, shape) for leaf in leaves(initial)])
    if 0 in sizes:
        return starts
    folded = _by_operator(node, values, axes) or _position(node, values, axes)
    if folded is not None:
        return folded
    found = node.mapped(0, [*starts, *folded_in_pairs(node, values, axes)])
    return rebuilt(found, [expanded(node, leaf, shape) for leaf in leaves(found)])


def _by_operator(node: StablehloNode, values: Sequence[Value], axes: Sequence[int]) -> Sequence[Value] | None:
    """The fold of one tensor by one operation, combined with what it starts from unless that changes nothing."""
    if len(values) != 1:
        return None
    parts = leaves(values)
    kind = fold_of(node.block(0), element_of(parts[0]))
    if not kind or (len(parts) > 1 and kind != "add"):
        return None
    folded = rebuilt(values, [folded_by(node, part, kind, axes) for part in parts])
    if all(starts_neutral(node, part, kind) for part in leaves([node.value(1)])):
        return folded
    return node.mapped(0, [*folded, node.value(1)])


def _position(node: StablehloNode, values: Sequence[Value], axes: Sequence[int]) -> Sequence[Value] | None:
    """The first extreme along an axis and its position, as JAX writes it: a NaN is the extreme."""
    if len(values) != 2 or len(axes) != 1 or not counts(node.op.operands[1], axes[0]):
        return None
    found, value = computation(node.block(0)), values[0]
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
    return rebuilt(values, [node.reshaped(part, tuple(kept)) for part in parts])


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
    values = [node.value(number) for number in range(node.count)]
    shape = sizes_of(leaves(values)[0])
    (found,) = node.mapped(0, values)
    (found,) = rebuilt([found], [expanded(node, leaf, shape) for leaf in leaves([found])])
    return found


def counts(value: SSAValue, axis: int) -> bool:
    """Whether a value of a program has the positions along an axis."""
    op = value.owner
    if not isinstance(op, Operation) or op.name not in ("stablehlo.iota", "stablehlo.dynamic_iota"):
        return False
    dimension = op.properties.get("iota_dimension")
    return isinstance(dimension, IntegerAttr) and dimension.value.data == axis


def folded_by(node: StablehloNode, value: SSAValue, kind: str, axes: Sequence[int]) -> SSAValue:
    """A value folded along axes, which the result has no longer."""
    element = element_of(value)
    if is_bool(element):
        kind = {"or": "max", "and": "min"}.get(kind, kind)
        return node.cast(folded_by(node, node.cast(value, i8), kind, axes), element)
    if kind in OPERATORS:
        # The operator keeps the axes, since most results broadcast along them, as softmax and normalization do.
        found = node.emit(OPERATORS[kind], value, axes=tuple(axes), keepdims=True)
        return node.reshaped(found, tuple(size for axis, size in enumerate(sizes_of(value)) if axis not in axes))
    names = [f"d{axis}" for axis in range(rank_of(value))]
    along = [names[axis] for axis in axes]
    kept = tuple(name for name in names if name not in along)
    signature = Signature((Access("input", tuple(names)),), Access("result", kept))

    def folded(x: Tensor) -> Tensor:
        return fold(kind, x, along)

    return computed(node, signature, folded, value)
