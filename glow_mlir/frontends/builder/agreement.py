"""
Sizes that depend on data, but must equal other sizes: they are assumed to be equal, and each call checks it.

The other size is a number or a symbolic size. The tensor is gathered along the axis, such that a call with different
sizes fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high.base import HighOp, Operand
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, AndOp, EqualOp, MulOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, NotOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.shapes import Relation, SizesDifferError, rank_of, sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.builder.slices import bound_number, cut, iota, scalar, zero_unless
from glow_mlir.support.symbols import Size, Sizes, product_of, symbols_of


class AgreeingBuilder(NodeBuilder):
    """A builder of nodes that assumes that sizes which depend on data agree with the sizes they must equal."""

    def assume_equal(self, one: Size, other: Size) -> None:
        """Record the assumption that two sizes are equal, at least one of which depends on data."""

    def emit_all(
        self, operator: type[HighOp], *operands: Operand, **properties: AttributeValue | None
    ) -> tuple[SSAValue, ...]:
        """Emit an operator and return all its results; raises `VerifyException` if operands cannot fit."""
        try:
            return super().emit_all(operator, *operands, **properties)
        except SizesDifferError as error:
            return self.emit_all(operator, *agreed(self, operands, error), **properties)


def is_of_data(node: NodeBuilder, size: Size) -> bool:
    """Whether a size depends on data, not only on dimensions of inputs."""
    return any(symbol.name not in node.builder.input_symbols for symbol in symbols_of([size]))


def agreed(node: AgreeingBuilder, operands: Sequence[Operand], error: SizesDifferError) -> list[Operand]:
    """Make the operands agree in the sizes of `error`; raises it if neither size depends on data."""
    pair = error.one, error.other
    if not any(is_of_data(node, size) for size in pair):
        raise error
    ways: Sequence[Mapping[Size, Size]]
    if error.relation is Relation.BROADCAST and not any(isinstance(size, int) for size in pair):
        common = _common(node, *pair)
        ways = [dict.fromkeys(pair, common)]
    elif error.relation is Relation.COVERS or isinstance(error.other, int) or not is_of_data(node, error.other):
        ways = [{error.one: error.other}, {error.other: error.one}]
    else:
        ways = [{error.other: error.one}, {error.one: error.other}]
    for wanted in ways:
        found = [_adjusted(node, operand, wanted, error) for operand in operands]
        if found != list(operands):
            return found
    raise error


def _common(node: NodeBuilder, one: Size, other: Size) -> Size:
    """The size to which two sizes broadcast: if they differ, one of them must be 1."""
    first, second = scalar(node, one), scalar(node, other)
    count = node.emit(WhereOp, node.emit(EqualOp, first, scalar(node, 1)), second, first)
    return bound_number(node, count, max(largest(one), largest(other)))


def _adjusted(node: AgreeingBuilder, operand: Operand, wanted: Mapping[Size, Size], error: SizesDifferError) -> Operand:
    """Replace sizes of an operand as mapped by `wanted`, along the axes to which the error refers."""
    if operand is None or isinstance(operand, SSAValue):
        return operand if operand is None else _resized(node, operand, wanted, error)
    if isinstance(operand, Operation):
        return _resized(node, operand.results[0], wanted, error)
    return [_resized(node, value, wanted, error) for value in operand]


def _resized(node: AgreeingBuilder, value: SSAValue, wanted: Mapping[Size, Size], error: SizesDifferError) -> SSAValue:
    rank = rank_of(value)
    positions = range(rank) if error.axis is None else [rank + error.axis]
    for axis in positions:
        if axis >= 0 and (size := wanted.get(sizes_of(value)[axis])) is not None:
            value = with_size(node, value, axis, size, error.relation)
    return value


def with_size(
    node: AgreeingBuilder, value: SSAValue, axis: int, size: Size, relation: Relation = Relation.EQUAL
) -> SSAValue:
    """Assume that an axis has the given size; a call fails if its actual size is not in `relation` to it."""
    own = sizes_of(value)[axis]
    if own != size:
        node.assume_equal(own, size)
    return checked_size(node, value, axis, size, relation)


def checked_size(
    node: NodeBuilder, value: SSAValue, axis: int, size: Size, relation: Relation = Relation.EQUAL
) -> SSAValue:
    """Give an axis the size that the model declares; a call fails if its actual size is not in `relation` to it."""
    own = sizes_of(value)[axis]
    if own == size:
        return value
    positions = iota(node, size)
    if relation is Relation.COVERS:
        return _taken(node, value, positions, axis)
    number, wanted = scalar(node, own), scalar(node, size)
    is_wrong = node.emit(NotOp, node.emit(EqualOp, number, wanted))
    if relation is Relation.BROADCAST and smallest(own) <= 1 <= largest(own):
        is_longer = node.emit(NotOp, node.emit(EqualOp, number, scalar(node, 1)))
        is_wrong = node.emit(AndOp, is_wrong, is_longer)
        positions = node.emit(MulOp, positions, node.emit(CastOp, is_longer, to=i64))
    zero = zero_unless(node, is_wrong, f"the sizes {own} and {size} have to be equal")
    return _taken(node, value, node.emit(AddOp, positions, zero), axis)


def _taken(node: NodeBuilder, value: SSAValue, positions: SSAValue, axis: int) -> SSAValue:
    """The elements of an axis at positions."""
    if sizes_of(positions)[0] == 0:
        return cut(node, value, {axis: (0, 0)})
    return node.emit(GatherOp, value, positions, axis=axis)


def stretched(node: AgreeingBuilder, value: SSAValue, shape: Sizes) -> SSAValue:
    """Give a value the sizes of the shape it must broadcast to, except for axes of size 1 and missing leading axes."""
    for axis, size in zip(reversed(range(rank_of(value))), reversed(shape)):
        own = sizes_of(value)[axis]
        if 1 not in (own, size) and any(is_of_data(node, item) for item in (own, size)):
            value = with_size(node, value, axis, size, Relation.BROADCAST)
    return value


def with_least(node: NodeBuilder, value: SSAValue, axis: int, least: int) -> SSAValue:
    """Give an axis whose size depends on data the lower bound `least`; a call with fewer elements fails."""
    size = sizes_of(value)[axis]
    if smallest(size) >= least or largest(size) < least or not is_of_data(node, size):
        return value
    bound = node.bind_symbol(scalar(node, size), largest(size), least)
    return checked_size(node, value, axis, bound)


def reshaped(node: AgreeingBuilder, value: SSAValue, shape: Sizes) -> SSAValue:
    """Reshape a value; if the number of elements depends on data, a call with a different number fails."""
    count, wanted = product_of(sizes_of(value)), product_of(shape)
    if count != wanted and (is_of_data(node, count) or is_of_data(node, wanted)):
        value = with_size(node, node.emit(ReshapeOp, value, shape=(count,)), 0, wanted)
    return node.emit(ReshapeOp, value, shape=shape)
