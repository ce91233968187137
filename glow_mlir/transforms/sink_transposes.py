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
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.shapes import Shape, normalize_axis, rank_of, shape_of, size_of
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


SINKABLE: dict[type[HighOp], Callable[[HighOp, Shape], Properties]] = {
    BatchNormalizationOp: _mapped_axis,
    ConcatOp: _mapped_axis,
}
"""Operator → its properties on operands that are not transposed; its result is then the transposed one's origin."""

CHANNEL_OPERANDS: dict[type[HighOp], int] = {BatchNormalizationOp: 1}
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
    elif moved == sorted(moved):
        replace(op, [emit(ReshapeOp, source, shape=shape_of(op.result))])
    elif source is not op.input:
        replace(op, [emit(TransposeOp, source, permutation=permutation)])


def sink_below(op: HighOp, storage: Storage) -> None:
    """Rewrite `op` on the origins of its transposed operands, and transpose its result."""
    rule = _same if isinstance(op, Elementwise) else SINKABLE.get(type(op))
    if rule is None or len(op.results) != 1:
        return
    count = CHANNEL_OPERANDS.get(type(op), len(op.operands))
    permutation = common_permutation(op, op.operands[:count], storage)
    if permutation is None:
        return
    emit = Emitter(op, storage)
    operands = [
        origin(value, permutation, emit) if position < count else value for position, value in enumerate(op.operands)
    ]
    new = emit.insert(type(op).inferred(operands, rule(op, permutation), op.location))
    replace(op, [emit(TransposeOp, new.results[0], permutation=permutation)])


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
