"""Lowerings of predicates: into the product that computes the value, or to nothing."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp, PredicatedMatMulOp
from glow_mlir.dialects.glow_high.predicate import PredicateOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering
from glow_mlir.transforms.graph.fold_transposes_into_matmul import operands_of


@lowering(PredicateOp)
def predicate(op: PredicateOp, emit: Emitter) -> SSAValue:
    """
    Let the product behind the value, or behind its reshape, skip masked rows.

    The value itself if it is no product, or has other readers.
    """
    value, reshape = op.value, op.value.owner
    if isinstance(reshape, ReshapeOp) and value.has_one_use() and sizes_of(value)[-1:] == sizes_of(reshape.input)[-1:]:
        value = reshape.input
    product = value.owner
    is_by_row = rank_of(op.mask) == rank_of(op.value) - 1
    if not isinstance(product, MatMulOp | FullyConnectedOp) or not value.has_one_use() or not is_by_row:
        return op.value
    flags: dict[str, bool] = {}
    if isinstance(product, MatMulOp):
        flags = {name: flag(product.properties[name]) for name in ("transpose_left", "transpose_right")}
    left, right, bias = operands_of(product)
    rows = sizes_of(value)[:-1]
    mask = op.mask if sizes_of(op.mask) == rows else emit(ReshapeOp, op.mask, shape=rows)
    found = emit(PredicatedMatMulOp, left, right, mask, bias, to=product.to, **flags)
    return found if value is op.value else emit(ReshapeOp, found, shape=sizes_of(op.value))


@lowering(PredicatedMatMulOp)
def predicated_matmul(op: PredicatedMatMulOp, emit: Emitter) -> SSAValue:
    """Compute all rows."""
    flags = {name: flag(op.properties[name]) for name in ("transpose_left", "transpose_right")}
    return emit(MatMulOp, op.left, op.right, op.bias, to=op.to, **flags)
