"""`sink-reshapes`: move reshapes below elementwise operators, where they meet others and vanish."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.shapes import Shape, shape_of, size_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace


@dataclass(frozen=True)
class SinkReshapesPass(ModulePass):
    """
    Move reshapes below elementwise operators, and merge those that meet (Glow's SinkReshapes and OptimizeReshape).

    An operator then follows its producer directly and can be computed with it. Operands have to be reshapes from one
    shape, constants of the same size, or single numbers.
    """

    name = "sink-reshapes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, ReshapeOp):
                    merge_reshape(candidate, storage)
                elif isinstance(candidate, Elementwise):
                    sink_reshape(candidate, storage)
            erase_dead(function.block)


def merge_reshape(op: ReshapeOp, storage: Storage) -> None:
    """Merge a reshape with the one it reads; one to the shape that is there is nothing."""
    source = op.input.owner.input if isinstance(op.input.owner, ReshapeOp) else op.input
    if shape_of(source) == shape_of(op.result):
        replace(op, [source])
    elif source is not op.input:
        replace(op, [Emitter(op, storage)(ReshapeOp, source, shape=shape_of(op.result))])


def sink_reshape(op: Elementwise, storage: Storage) -> None:
    """Rewrite `op` on what its reshaped operands were, and reshape its result."""
    shape = shape_before(op, storage)
    if shape is None:
        return
    emit = Emitter(op, storage)
    operands = [unshaped(value, shape, emit) for value in op.operands]
    new = emit.insert(type(op).inferred(operands, op.properties, op.location))
    replace(op, [emit(ReshapeOp, new.results[0], shape=shape_of(op.result))])


def shape_before(op: Elementwise, storage: Storage) -> Shape | None:
    """The shape from which all operands with more than one element are or can be reshaped, or `None`."""
    found: Shape | None = None
    for value in op.operands:
        if size_of(value.type) == 1:
            continue
        if shape_of(value) != shape_of(op.result):
            return None
        if isinstance(value.owner, ReshapeOp):
            shape = shape_of(value.owner.input)
            if found not in (None, shape):
                return None
            found = shape
        elif not storage.is_constant(value):
            return None
    return found


def unshaped(value: SSAValue, shape: Shape, emit: Emitter) -> SSAValue:
    """The operand whose reshape is `value`."""
    if size_of(value.type) == 1:
        return value if shape_of(value) == () else emit(ReshapeOp, value, shape=())
    if isinstance(value.owner, ReshapeOp):
        return value.owner.input
    array = emit.storage.deferred(value)
    assert array is not None
    return emit.constant(array.reshaped(shape), value.name_hint or "constant")
