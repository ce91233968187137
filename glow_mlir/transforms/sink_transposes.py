"""`sink-transposes`: move transposes towards the outputs, where they meet others and vanish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.normalization import (
    BatchNormalizationOp,
    GroupNormalizationOp,
    HardmaxOp,
    InstanceNormalizationOp,
    LogSoftmaxOp,
    LrnOp,
    SoftmaxOp,
)
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceMeanOp, ReduceMinOp, ReduceSumOp
from glow_mlir.dialects.properties import flag, integer, ints
from glow_mlir.dialects.shapes import Shape, normalize_axis, rank_of, shape_of, size_of
from glow_mlir.pass_statistics import tally
from glow_mlir.storage import Storage
from glow_mlir.transforms.emitter import Emitter
from glow_mlir.transforms.rewriting import erase_dead, high_functions, replace

Properties = dict[str, Attribute]


def _same(op: HighOp, permutation: Shape) -> Properties:
    return dict(op.properties)


def _mapped_axis(op: HighOp, permutation: Shape) -> Properties:
    """Properties with `axis` renamed: axis i of the transposed operand is axis permutation[i] of the operand."""
    axis = normalize_axis(integer(op.properties["axis"]), len(permutation))
    return {**op.properties, "axis": to_attribute(permutation[axis])}


def _mapped_image_axis(op: HighOp, permutation: Shape) -> Properties | None:
    """Like `_mapped_axis`, for operators whose batch is axis 0; `None` where the transpose moves it."""
    return None if permutation[0] else _mapped_axis(op, permutation)


def _mapped_axes(op: HighOp, permutation: Shape) -> Properties | None:
    """Properties of a reduction that keeps its axes; `None` for one that drops them."""
    if not flag(op.properties["keepdims"]):
        return None
    axes = sorted(permutation[normalize_axis(axis, len(permutation))] for axis in ints(op.properties["axes"]))
    return {**op.properties, "axes": to_attribute(axes)}


def _mapped_bounds(op: HighOp, permutation: Shape) -> Properties:
    """Properties of a slice, whose lists have one element an axis."""
    lists = {name: value for name, value in op.properties.items() if name in ("starts", "ends", "steps")}
    return {**op.properties, **{name: to_attribute(_moved(ints(value), permutation)) for name, value in lists.items()}}


def _mapped_pads(op: HighOp, permutation: Shape) -> Properties:
    """Properties of a pad, whose list has the leading widths of all axes before the trailing ones."""
    pads = ints(op.properties["pads"])
    rank = len(permutation)
    moved = (*_moved(pads[:rank], permutation), *_moved(pads[rank:], permutation))
    return {**op.properties, "pads": to_attribute(moved)}


def _moved(items: Shape, permutation: Shape) -> Shape:
    """A list with one element an axis of the transposed operand, in the order of the operand's axes."""
    return tuple(items[permutation.index(axis)] for axis in range(len(permutation)))


Rule = Callable[[HighOp, Shape], "Properties | None"]

SINKABLE: dict[type[HighOp], Rule] = {
    BatchNormalizationOp: _mapped_axis,
    ConcatOp: _mapped_axis,
    GroupNormalizationOp: _mapped_image_axis,
    HardmaxOp: _mapped_axis,
    InstanceNormalizationOp: _mapped_image_axis,
    LogSoftmaxOp: _mapped_axis,
    LrnOp: _mapped_axis,
    PadOp: _mapped_pads,
    ReduceMaxOp: _mapped_axes,
    ReduceMeanOp: _mapped_axes,
    ReduceMinOp: _mapped_axes,
    ReduceSumOp: _mapped_axes,
    SliceOp: _mapped_bounds,
    SoftmaxOp: _mapped_axis,
}
"""Operator → its properties on operands that are not transposed; its result is then the transposed one's origin."""

CHANNEL_OPERANDS: dict[type[HighOp], int] = dict.fromkeys(
    (BatchNormalizationOp, GroupNormalizationOp, InstanceNormalizationOp, PadOp), 1
)
"""Operator → how many leading operands the transpose concerns, where not all."""


@dataclass(frozen=True)
class SinkTransposesPass(ModulePass):
    """
    Move transposes below elementwise operators, concatenations and normalizations, and merge those that meet
    (Glow's SinkCode for Transpose).

    An operator is rewritten where every operand is a transpose by the same permutation, a constant or of one element.
    """

    name = "sink-transposes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, TransposeOp):
                    merge_transpose(candidate, storage)
                elif isinstance(candidate, HighOp):
                    sink_below(candidate, storage)
            erase_dead(function.block)


def merge_transpose(op: TransposeOp, storage: Storage) -> None:
    """Merge a transpose with the one it reads; drop identities; one that moves only unit axes is a reshape."""
    permutation = ints(op.permutation)
    source = op.input
    if isinstance(source.owner, TransposeOp):
        inner = ints(source.owner.permutation)
        permutation = tuple(inner[axis] for axis in permutation)
        source = source.owner.input
    shape = shape_of(source)
    moved = [axis for axis in permutation if shape[axis] != 1]
    emit = Emitter(op, storage)
    if permutation == tuple(range(len(permutation))):
        replace(op, [source])
        tally("identities erased")
    elif moved == sorted(moved):
        replace(op, [emit(ReshapeOp, source, shape=shape_of(op.result))])
        tally("transposes turned into reshapes")
    elif source is not op.input:
        replace(op, [emit(TransposeOp, source, permutation=permutation)])
        tally("transposes merged")


def sink_below(op: HighOp, storage: Storage) -> None:
    """Rewrite `op` on the origins of its transposed operands, and transpose its result."""
    rule = _same if isinstance(op, Elementwise) else SINKABLE.get(type(op))
    if rule is None or len(op.results) != 1:
        return
    count = CHANNEL_OPERANDS.get(type(op), len(op.operands))
    permutation = common_permutation(op, op.operands[:count], storage)
    properties = None if permutation is None else rule(op, permutation)
    if permutation is None or properties is None:
        return
    emit = Emitter(op, storage)
    operands = [
        origin(value, permutation, emit) if position < count else value for position, value in enumerate(op.operands)
    ]
    new = emit.insert(type(op).inferred(operands, properties, op.location))
    replace(op, [emit(TransposeOp, new.results[0], permutation=permutation)])
    tally("transposes sunk")


def common_permutation(op: HighOp, operands: Sequence[SSAValue], storage: Storage) -> Shape | None:
    """The permutation by which all operands but constants are transposed, or `None`."""
    found: Shape | None = None
    rank = rank_of(op.results[0])
    for value in operands:
        if isinstance(value.owner, TransposeOp) and rank_of(value) == rank:
            permutation = ints(value.owner.permutation)
            if found not in (None, permutation):
                return None
            found = permutation
        elif size_of(value.type) != 1 and storage.value_of(value) is None:
            return None
    return found


def origin(value: SSAValue, permutation: Shape, emit: Emitter) -> SSAValue:
    """The operand whose transpose by `permutation` is `value`."""
    if isinstance(value.owner, TransposeOp) and rank_of(value) == len(permutation):
        return value.owner.input
    shape = (1,) * (len(permutation) - rank_of(value)) + shape_of(value)
    if size_of(value.type) == 1:
        return value
    array = emit.known(value)
    assert array is not None
    inverse = tuple(int(axis) for axis in np.argsort(permutation))
    return emit.constant(np.ascontiguousarray(array.reshape(shape).transpose(inverse)), value.name_hint or "constant")
