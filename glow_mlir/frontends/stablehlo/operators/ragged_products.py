"""Products in which each group of rows, or of summed elements, has a factor or a result of its own."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ExpandOp
from glow_mlir.dialects.glow_high.elementwise_binary import AndOp, GreaterOrEqualOp, LessOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.loop import Rows, Trips
from glow_mlir.dialects.glow_high.reductions import CumSumOp
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of
from glow_mlir.dialects.stablehlo.attributes import RaggedDotAttr
from glow_mlir.frontends.builder.emission import positions
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.stablehlo.node import StablehloNode, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.data_movement import transposed
from glow_mlir.frontends.stablehlo.operators.products import contracted
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Axes:
    """What the axes of both operands are: shared, summed, or left."""

    batch: tuple[Sequence[int], Sequence[int]]
    summed: tuple[Sequence[int], Sequence[int]]

    def product(self, node: StablehloNode, left: SSAValue, right: SSAValue) -> SSAValue:
        """The product of two operands."""
        return contracted(node, left, right, self.batch[0], self.batch[1], self.summed[0], self.summed[1])

    def rest(self, rank: int) -> list[int]:
        """The axes of the left operand that are left."""
        return [axis for axis in range(rank) if axis not in (*self.batch[0], *self.summed[0])]


@stablehlo_operator("chlo.ragged_dot")
def ragged_dot(node: StablehloNode) -> SSAValue:
    """
    A product in which an axis of the left operand consists of groups, whose sizes are the last operand.

    Each group of rows has a factor of its own; each group of summed elements has a result of its own, the first axis of
    the result. What is in no group counts as 0. Groups of an axis that both operands share change nothing.
    """
    left, right, sizes = node.inputs()
    numbers = node.properties["ragged_dot_dimension_numbers"]
    assert isinstance(numbers, RaggedDotAttr)
    batch = numbers.integers("lhs_batching_dimensions"), numbers.integers("rhs_batching_dimensions")
    summed = numbers.integers("lhs_contracting_dimensions"), numbers.integers("rhs_contracting_dimensions")
    axes, groups = Axes(batch, summed), numbers.integers("rhs_group_dimensions")
    (ragged,) = numbers.integers("lhs_ragged_dimensions")
    if ragged in batch[0]:
        return axes.product(node, left, right)
    if ragged in summed[0]:
        return _by_summed_elements(node, axes, left, right, sizes)
    return _by_rows(node, axes, left, right, sizes, groups[0])


def _by_rows(
    node: StablehloNode, axes: Axes, left: SSAValue, right: SSAValue, sizes: SSAValue, group_axis: int
) -> SSAValue:
    """A loop over groups of rows: the product with the factor of each, where its rows are."""
    ragged = node.properties["ragged_dot_dimension_numbers"]
    assert isinstance(ragged, RaggedDotAttr)
    (axis,) = ragged.integers("lhs_ragged_dimensions")
    around = [*axes.batch[0], *axes.rest(rank_of(left))]
    before = around[: around.index(axis)]
    factors = transposed(node, right, (group_axis, *(at for at in range(rank_of(right)) if at != group_axis)))
    own = Axes(
        (axes.batch[0], [_without(at, group_axis) for at in axes.batch[1]]),
        (axes.summed[0], [_without(at, group_axis) for at in axes.summed[1]]),
    )
    starts, ends = _bounds(node, sizes, [shape_of(left)[at] for at in before])
    shape = node.static_shape()
    body = Body(node, [node.splat(0, node.element(), shape)], [Rows(factors), Rows(starts), Rows(ends)])
    with node.builder.inside(body.block):
        factor, start, end = body.rows
        product = own.product(node, left, factor)
        mask = _within(node, start, end, len(before), len(shape), shape[len(before)])
        following = node.emit(WhereOp, mask, product, *body.carried)
    (found,) = body.emit(Trips(shape_of(factors)[0]), [following], ())
    return found


def _by_summed_elements(node: StablehloNode, axes: Axes, left: SSAValue, right: SSAValue, sizes: SSAValue) -> SSAValue:
    """A loop over groups of summed elements: the product of those of each."""
    numbers = node.properties["ragged_dot_dimension_numbers"]
    assert isinstance(numbers, RaggedDotAttr)
    (axis,) = numbers.integers("lhs_ragged_dimensions")
    place = axes.summed[0].index(axis)
    before = [*axes.batch[0], *axes.summed[0][:place]]
    operands = list(zip((left, right), axes.batch, axes.summed, strict=True))
    # Both operands with the axes of the groups in front, in the order in which the sizes of groups have them.
    fronts = [[*batch, *summed[: place + 1]] for _, batch, summed in operands]
    orders = [
        [*front, *(at for at in range(rank_of(value)) if at not in front)]
        for front, (value, _, _) in zip(fronts, operands, strict=True)
    ]
    moved = [transposed(node, value, order) for (value, _, _), order in zip(operands, orders, strict=True)]
    batches = [[order.index(at) for at in batch] for order, batch in zip(orders, axes.batch, strict=True)]
    sums = [[order.index(at) for at in summed] for order, summed in zip(orders, axes.summed, strict=True)]
    own = Axes((batches[0], batches[1]), (sums[0], sums[1]))
    starts, ends = _bounds(node, sizes, [shape_of(left)[at] for at in before])
    body = Body(node, [], [Rows(starts), Rows(ends)])
    with node.builder.inside(body.block):
        start, end = body.rows
        parts: list[SSAValue] = []
        for value in moved:
            mask = _within(node, start, end, len(before), rank_of(value), shape_of(value)[len(before)])
            parts.append(node.emit(WhereOp, mask, value, node.number(0, value)))
        product = own.product(node, *parts)
    (found,) = body.emit(Trips(shape_of(starts)[0]), [], [Rows(product)])
    return found


def _without(axis: int, removed: int) -> int:
    """The number of an axis once another one is removed."""
    return axis - (axis > removed)


def _bounds(node: StablehloNode, sizes: SSAValue, before: Sequence[int]) -> tuple[SSAValue, SSAValue]:
    """Where each group starts and ends [groups, before…]; the sizes may be the same for all indices before."""
    count = shape_of(sizes)[-1]
    if rank_of(sizes) == 1 and before:
        line = node.reshaped(sizes, (*[1] * len(before), count))
        sizes = node.emit(ExpandOp, line, shape=(*before, count))
    rank = rank_of(sizes)
    ends = node.emit(CumSumOp, sizes, axis=rank - 1)
    starts = node.emit(SubOp, ends, sizes)
    order = (rank - 1, *range(rank - 1))
    return transposed(node, starts, order), transposed(node, ends, order)


def _within(node: StablehloNode, start: SSAValue, end: SSAValue, axis: int, rank: int, size: int) -> SSAValue:
    """Whether each position along an axis of a tensor is from `start` on and before `end`, both for the axes before."""
    column = [1] * rank
    column[axis] = size
    numbers = node.reshaped(positions(size, element_of(start), node), column)
    first, last = (node.reshaped(value, (*shape_of(value), *[1] * (rank - axis))) for value in (start, end))
    return node.emit(AndOp, node.emit(GreaterOrEqualOp, numbers, first), node.emit(LessOp, numbers, last))
