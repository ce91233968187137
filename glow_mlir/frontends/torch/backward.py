"""
What PyTorch's operators that compute gradients share: they ask for those of our operators.

The pass `differentiate` puts operators in the place of these, so a backward pass that PyTorch derived becomes the same
instructions as one of ours.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.frontends.torch.node import TorchNode


def gradients(node: TorchNode, target: SSAValue, cotangent: SSAValue, *sources: SSAValue) -> list[SSAValue]:
    """The derivatives of `target` · `cotangent` with regard to what it was computed of."""
    given = node.expanded(cotangent, sizes_of(target))
    return list(node.emit_all(GradientOp, target, node.cast(given, element_of(target)), list(sources)))


def gradient_through(
    node: TorchNode, function: Callable[[SSAValue], SSAValue], cotangent: SSAValue, source: SSAValue
) -> SSAValue:
    """The derivative of a function of one value, whose results are not kept, times the cotangent of its result."""
    (found,) = gradients(node, function(source), cotangent, source)
    return node.cast(found, node.element)


def apart(node: TorchNode, *values: SSAValue) -> list[SSAValue]:
    """
    Values that are computed of nothing but these, one for each.

    So derivatives by several of them are partial ones, where one value is several operands, or is computed of another.
    """
    return [node.emit(ReshapeOp, value, shape=sizes_of(value)) for value in values]
