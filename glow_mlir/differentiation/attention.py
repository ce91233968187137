"""Gradients of attention: probabilities are recomputed, and matrix products propagate cotangents."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.differentiation.contributions import Contributions
from glow_mlir.differentiation.lowered import by_lowering
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient


@gradient(AttentionOp)
def attention(op: AttentionOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """Propagate through the two products, the mask and the softmax."""
    return by_lowering(op, cotangent, emit)
