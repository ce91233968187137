"""The lowering of attention."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.attention import AttentionOp, causal_mask
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.properties import flag, number, size
from glow_mlir.dialects.shapes import element_of
from glow_mlir.dialects.sizes import static
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering


@lowering(AttentionOp)
def attention(op: AttentionOp, emit: Emitter) -> SSAValue:
    """Lower to two matrix products with a softmax between them."""
    scores = emit(MatMulOp, op.query, op.key, transpose_right=True)
    if number(op.scale) != 1:
        scores = emit(MulOp, scores, emit.splat(number(op.scale), scores))
    if op.mask is not None:
        scores = emit(AddOp, scores, op.mask)
    if flag(op.causal):
        queries, keys, past = static((*op.scores_shape()[-2:], size(op.past)))
        hidden = causal_mask(queries, keys, past, numpy_dtype(element_of(scores)))
        scores = emit(AddOp, scores, emit.constant(hidden, "causal_mask"))
    return emit(MatMulOp, emit(SoftmaxOp, scores), op.value)
