"""Operators in terms of simpler ones, for backends that have no kernel for them."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_extra_operators.operators import BiasGeluOp
from glow_mlir.dialects.glow_high.activations import GeluOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering


@lowering(BiasGeluOp)
def bias_gelu(op: BiasGeluOp, emit: Emitter) -> SSAValue:
    """Two elementwise operators, which the compiler stacks into one loop."""
    return emit(GeluOp, emit(AddOp, op.input, op.bias))
