"""`sink-reshapes`: move reshapes below elementwise operators, where they merge and cancel."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.shapes import Shape, has_one_element, rank_of, shape_of, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass


class MergeReshapes(Pattern):
    """Merge two reshapes into the last one, and remove a reshape to the same shape."""

    @rooted
    def match_and_rewrite(self, op: ReshapeOp, rewriter: Rewriter, /) -> None:
        source = op.input.owner.input if isinstance(op.input.owner, ReshapeOp) else op.input
        if sizes_of(source) == sizes_of(op.result):
            rewriter.replace(op, (), [source])
        elif source is not op.input:
            rewriter.replace(op, ReshapeOp.make(source, shape=shape_of(op.result)))


class SinkReshape(Pattern):
    """Apply an elementwise operator to the origins of reshaped operands, and reshape its result."""

    @rooted
    def match_and_rewrite(self, op: Elementwise, rewriter: Rewriter, /) -> None:
        shape = shape_before(op, rewriter.storage)
        if shape is None:
            return
        operands = [unshaped(value, shape, rewriter.emit) for value in op.operands]
        new = rewriter.emit.insert(type(op).inferred(operands, op.properties, op.location))
        rewriter.replace(op, ReshapeOp.make(new, shape=shape_of(op.result)))


@dataclass(frozen=True)
class SinkReshapesPass(PatternPass):
    """
    Move reshapes below elementwise operators, and merge those that meet (Glow's SinkReshapes and OptimizeReshape).

    An operator then directly follows its producer and can be fused with it. Operands must be reshapes from one shape,
    constants of the same size, or scalars.
    """

    name = "sink-reshapes"
    WALKS = (Walk((MergeReshapes(), SinkReshape())),)


def shape_before(op: Elementwise, storage: Storage) -> Shape | None:
    """The shape from which all operands with more than one element are or can be reshaped, or `None`."""
    found: Shape | None = None
    for value in op.operands:
        if has_one_element(value):
            continue
        if sizes_of(value) != sizes_of(op.result):
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
    """The origin of the reshaped operand `value`."""
    if has_one_element(value):
        return value if rank_of(value) == 0 else emit(ReshapeOp, value, shape=())
    if isinstance(value.owner, ReshapeOp):
        return value.owner.input
    array = emit.storage.deferred(value)
    assert array is not None
    return emit.constant(array.reshaped(shape), value.name_hint or "constant")
