"""Functions of one operand that TOSA has, and that scalar bodies put together from others."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import SigmoidOp
from glow_mlir.dialects.glow_high.elementwise import Unary
from glow_mlir.dialects.glow_high.elementwise_math import ReciprocalOp
from glow_mlir.dialects.shapes import element_of
from tosa_backend.builder import TosaBuilder
from tosa_backend.rules import emits


def _on_floats(op: Unary) -> bool:
    return element_of(op.input) == f32


@emits(SigmoidOp, when=_on_floats)
def sigmoid(op: SigmoidOp, b: TosaBuilder) -> SSAValue:
    """SIGMOID."""
    return b("sigmoid", b.value(op.input))


@emits(ReciprocalOp, when=_on_floats)
def reciprocal(op: ReciprocalOp, b: TosaBuilder) -> SSAValue:
    """RECIPROCAL."""
    return b("reciprocal", b.value(op.input))
