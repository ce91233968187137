"""From custom operators of TensorFlow Lite to operators."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_extra_operators.operators import LogitOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_custom_operator


@tflite_custom_operator("Logit")
def logit(node: TfliteNode) -> SSAValue:
    """Limits by `epsilon`, one of the options, which are a flexbuffer."""
    return node.emit(LogitOp, node.input(0), epsilon=node.custom_real("epsilon", 1e-6))
