"""
What PyTorch's operators that compute gradients share: they ask for those of our operators.

The pass `differentiate` puts operators in the place of these, so a backward pass that PyTorch derived becomes the same
instructions as one of ours.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.gradient import GradientOp, VariablesOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.frontends.torch.node import TorchNode


def gradients(node: TorchNode, target: SSAValue, cotangent: SSAValue, *sources: SSAValue) -> list[SSAValue]:
    """The derivatives of `target` · `cotangent` with regard to what it was computed of."""
    given = node.expanded(cotangent, sizes_of(target))
    found = node.emit_all(GradientOp, target, node.cast(given, element_of(target)), list(sources))
    return list(_unknown(node, found))


def gradient_through(
    node: TorchNode, function: Callable[[SSAValue], SSAValue], cotangent: SSAValue, source: SSAValue
) -> SSAValue:
    """The derivative of a function of one value, whose results are not kept, times the cotangent of its result."""
    (variable,) = variables(node, source)
    (found,) = gradients(node, function(variable), cotangent, variable)
    return node.cast(found, node.element)


def variables(node: TorchNode, *values: SSAValue) -> tuple[SSAValue, ...]:
    """
    Values as variables that depend on nothing.

    So derivatives by several of them are partial ones, where one value is several operands, or is computed of another.
    """
    return _unknown(node, node.emit_all(VariablesOp, list(values)))


def _unknown(node: TorchNode, values: tuple[SSAValue, ...]) -> tuple[SSAValue, ...]:
    """Values of which nothing is known while the graph is built."""
    for value in values:
        node.builder.folding.tell(value, None)
    return values
