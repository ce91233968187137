"""Gradients through predicates: masked elements have no influence."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import WhereOp
from glow_mlir.dialects.glow_high.linear import PredicatedMatMulOp
from glow_mlir.dialects.glow_high.predicate import PredicateOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.differentiation.contributions import Contributions
from glow_mlir.differentiation.linear import matmul
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient


def _seen(cotangent: SSAValue, mask: SSAValue, emit: Emitter) -> SSAValue:
    """A cotangent that is 0 where the mask ignores elements."""
    sizes = (*sizes_of(mask), *(1,) * (rank_of(cotangent) - rank_of(mask)))
    return emit(WhereOp, emit(ReshapeOp, mask, shape=sizes), cotangent, emit.splat(0, cotangent))


@gradient(PredicateOp)
def predicate(op: PredicateOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The cotangent of the elements that are not masked."""
    return {"value": lambda: _seen(cotangent, op.mask, emit)}


@gradient(PredicatedMatMulOp)
def predicated_matmul(op: PredicatedMatMulOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The gradients of the product, for the rows that are not masked."""
    return matmul(op, _seen(cotangent, op.predicate, emit), emit)
