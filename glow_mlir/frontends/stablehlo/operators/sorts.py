"""Sorts by any comparator, and the largest elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, i8, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, is_float
from glow_mlir.dialects.glow_high.data_movement import PadOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AndOp,
    BitwiseAndOp,
    BitwiseXorOp,
    EqualOp,
    LessOp,
    OrOp,
    WhereOp,
    XorOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import BitCastOp, NotOp
from glow_mlir.dialects.glow_high.indexing import GatherElementsOp, GatherOp
from glow_mlir.dialects.glow_high.loop import Rows, Trips
from glow_mlir.dialects.glow_high.reductions import TopKOp
from glow_mlir.dialects.shapes import declared_shape, element_of, rank_of, shape_of, sizes_of
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.control_flow import leaves, rebuilt
from glow_mlir.frontends.stablehlo.operators.data_movement import transposed
from glow_mlir.frontends.stablehlo.operators.elementwise import flipped_bits, ordered_bits
from glow_mlir.frontends.stablehlo.operators.reductions import counts
from glow_mlir.frontends.stablehlo.orders import Key, keys_of


@stablehlo_operator("sort")
def sort(node: StablehloNode) -> Sequence[Value]:
    """Tensors whose elements are put in the order of a comparator along a dimension; equal ones keep their order."""
    values = [node.value(number) for number in range(node.count)]
    axis, shape = (
        node.integer("dimension", -1) % node.declared().get_num_dims(),
        node.static_shape(like=sizes_of(leaves(values)[0])),
    )
    if shape[axis] < 2 or 0 in shape:
        return values
    keys = keys_of(node.block(0))
    if keys is None:
        return sorted_by_network(node, values, axis)
    tensors = _key_tensors(node, values, keys)
    ordered, order = _ordered(node, tensors[-1], axis, keys[-1].descending)
    for tensor, key in zip(tensors[-2::-1], keys[-2::-1], strict=True):
        # The sort is stable: what is equal by this key stays in the order of the later ones.
        ordered, next_ = _ordered(node, _taken(node, tensor, order, axis), axis, key.descending)
        order = _taken(node, order, next_, axis)
    found: list[Value] = []
    for number, value in enumerate(values):
        if keys[0].operand == number and keys[0].is_element:
            found.append(node.cast(ordered, element_of(leaves([value])[0])))
        elif isinstance(value, SSAValue) and counts(node.op.operands[number], axis):
            found.append(node.cast(order, element_of(value)))
        else:
            found += rebuilt([value], [_taken(node, part, order, axis) for part in leaves([value])])
    return found


def _key_tensors(node: StablehloNode, values: Sequence[Value], keys: Sequence[Key]) -> list[SSAValue]:
    """The tensors of keys."""
    if not all(key.is_element for key in keys):
        node.mapped(0, [value for value in values for _ in range(2)])
    found: list[SSAValue] = []
    for key in keys:
        value = values[key.operand] if key.is_element else node.program.values[key.value]
        assert isinstance(value, SSAValue)
        is_total = key.total and not key.is_element and is_float(element_of(value))
        found.append(ordered_bits(node, value) if is_total else value)
    return found


def _ordered(
    node: StablehloNode, value: SSAValue, axis: int, descending: bool, count: int | None = None
) -> tuple[SSAValue, SSAValue]:
    """The first `count` elements of an axis in order, or all of them, and where they were."""
    value = node.cast(value, i8) if is_bool(element_of(value)) else value
    taken = shape_of(value)[axis] if count is None else count
    values, positions = node.emit_all(TopKOp, value, k=taken, axis=axis, largest=descending)
    return values, positions


def _taken(node: StablehloNode, value: SSAValue, order: SSAValue, axis: int) -> SSAValue:
    """The elements of an axis at other positions."""
    if rank_of(value) == 1:
        return node.emit(GatherOp, value, order, axis=0)
    return node.emit(GatherElementsOp, value, order, axis=axis)


@stablehlo_operator("chlo.top_k")
def top_k(node: StablehloNode) -> Sequence[SSAValue]:
    """The largest elements of the last axis in their total order, and where they are."""
    return _largest(node, node.integer("k"))


def dynamic_top_k(node: StablehloNode) -> Sequence[SSAValue]:
    """The largest elements of the last axis, whose number is an operand."""
    (count,) = node.required_integers(node.input(1), "number")
    return _largest(node, count)


def _largest(node: StablehloNode, count: int) -> Sequence[SSAValue]:
    value = node.input()
    shape, axis = shape_of(value), rank_of(value) - 1
    if 0 in (*shape, count):
        taken = (*shape[:-1], count)
        return [node.splat(0, element_of(value), taken), node.splat(0, node.element(1), taken)]
    is_real = is_float(element_of(value))
    keys = ordered_bits(node, value) if is_real else value
    keys = node.cast(keys, i8) if is_bool(element_of(keys)) else keys
    found, positions = node.emit_all(TopKOp, keys, k=count, axis=axis)
    if is_real:
        found = node.emit(BitCastOp, flipped_bits(node, found), to=element_of(value))
    return [node.cast(found, element_of(value)), node.cast(positions, node.element(1))]


def approximate_top_k(node: StablehloNode) -> Sequence[Value]:
    """
    The first elements of an axis by a comparator, and what a second operand has for each: all of them, in order.

    XLA may leave some out, as its recall says. Where it may give more elements than those asked for, which it has not
    put in order, these are the first ones as well.
    """
    settings = node.op.attributes.get("mhlo.backend_config", node.op.properties.get("backend_config"))
    dimension = settings.data.get("reduction_dim") if isinstance(settings, DictionaryAttr) else None
    keys = [key for block in node.called_computations() for key in keys_of(block) or ()]
    if not isinstance(dimension, IntegerAttr) or len(keys) != 1 or not keys[0].is_element:
        raise node.unsupported("by a comparator of more than the elements, or without a dimension, is not supported")
    values, tags = node.input(0), node.input(1)
    axis = dimension.value.data % rank_of(values)
    count = _count_of_selected(node, axis)
    ordered, order = _ordered(node, values, axis, keys[0].descending, count)
    return [node.cast(ordered, element_of(values)), _taken(node, tags, order, axis)]


def _count_of_selected(node: StablehloNode, axis: int) -> int:
    """The number of elements that a selection gives along an axis: what the program says, or else its fifth operand."""
    declared = declared_shape(node.declared())[axis]
    if declared >= 0 or node.count < 5:
        return node.static_shape(like=sizes_of(node.input()))[axis]
    (count,) = node.required_integers(node.input(4), "number")
    return count


# ---- Comparators that compare no keys


def sorted_by_network(node: StablehloNode, values: Sequence[Value], axis: int) -> list[Value]:
    """
    The sort by any comparator: a bitonic network, whose stages are the trips of a loop.

    In each stage every element is compared with a partner, whose position differs in one bit. Positions before the sort
    decide between elements that are equal; those behind the end go last.
    """
    parts = leaves(values)
    shape, length = shape_of(parts[0]), shape_of(parts[0])[axis]
    width = 1 << (length - 1).bit_length()
    order = [at for at in range(len(shape)) if at != axis]
    order = [axis, *order]
    lines = [_padded(node, transposed(node, value, order), width - length) for value in parts]
    column = (width, *[1] * (len(shape) - 1))
    positions = node.constant(np.arange(width).reshape(column))
    stages = [(1 << size, 1 << bit) for size in range(1, width.bit_length()) for bit in reversed(range(size))]
    blocks, bits = (node.constant(np.array(item, np.int64)) for item in zip(*stages, strict=True))
    numbers = node.constant(np.ascontiguousarray(np.broadcast_to(np.arange(width).reshape(column), shape_of(lines[0]))))
    body = Body(node, [*lines, numbers], [Rows(blocks), Rows(bits)])
    with node.builder.inside(body.block):
        block, bit = body.rows
        own = body.carried
        partners = node.reshaped(node.emit(BitwiseXorOp, positions, bit), (width,))
        theirs = [node.emit(GatherOp, value, partners, axis=0) for value in own]
        before = _goes_before(node, values, own, theirs, length)
        zero = node.splat(0, i64)
        is_first = node.emit(EqualOp, node.emit(BitwiseAndOp, positions, bit), zero)
        ascends = node.emit(EqualOp, node.emit(BitwiseAndOp, positions, block), zero)
        wants_first = node.emit(NotOp, node.emit(XorOp, is_first, ascends))
        stays = node.emit(NotOp, node.emit(XorOp, before, wants_first))
        following = [node.emit(WhereOp, stays, *pair) for pair in zip(own, theirs, strict=True)]
    found = body.emit(Trips(len(stages)), following, ())[:-1]
    back = [order.index(at) for at in range(len(shape))]
    return rebuilt(values, [transposed(node, cut(node, value, {0: (0, length)}), back) for value in found])


def _padded(node: StablehloNode, value: SSAValue, count: int) -> SSAValue:
    """A value with that many elements behind the first axis."""
    if not count:
        return value
    rank = rank_of(value)
    pads = [0] * rank + [count] + [0] * (rank - 1)
    return node.emit(PadOp, value, node.splat(0, value), pads=pads, mode="constant")


def _goes_before(
    node: StablehloNode, values: Sequence[Value], own: Sequence[SSAValue], theirs: Sequence[SSAValue], length: int
) -> SSAValue:
    """Whether each element goes before its partner; the last of the values are positions before the sort."""
    mine, other = rebuilt(values, own[:-1]), rebuilt(values, theirs[:-1])
    less, more = (_compared(node, *pair) for pair in ((mine, other), (other, mine)))
    is_earlier = node.emit(LessOp, own[-1], theirs[-1])
    precedes = node.emit(OrOp, less, node.emit(AndOp, node.emit(NotOp, more), is_earlier))
    end = node.splat(length, i64)
    are_there = [node.emit(LessOp, numbers[-1], end) for numbers in (own, theirs)]
    both = node.emit(AndOp, *are_there)
    return node.emit(WhereOp, both, precedes, is_earlier)


def _compared(node: StablehloNode, one: Sequence[Value], other: Sequence[Value]) -> SSAValue:
    """What the comparator says of each pair of elements."""
    pairs = [value for pair in zip(one, other, strict=True) for value in pair]
    (found,) = leaves(node.mapped(0, pairs))
    return found
