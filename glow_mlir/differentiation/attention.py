"""Gradients of attention: probabilities are computed again, and matrix products hand cotangents on."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.differentiation.contributions import Contributions
from glow_mlir.differentiation.lowered import by_lowering
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient


@gradient(AttentionOp)
def attention(op: AttentionOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """Those of its two products, its mask and its softmax."""
    return by_lowering(op, cotangent, emit)
