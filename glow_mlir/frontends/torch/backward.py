"""
Gradient operators of PyTorch, expressed as gradients of our operators.

The pass `differentiate` replaces them by operators, so that a backward pass derived by PyTorch becomes the same code as
one of ours.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.gradient import GradientOp, VariablesOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.frontends.torch.node import TorchNode


def gradients(node: TorchNode, target: SSAValue, cotangent: SSAValue, *sources: SSAValue) -> list[SSAValue]:
    """The gradients of `target` · `cotangent` with respect to `sources`."""
    given = node.expanded(cotangent, sizes_of(target))
    found = node.emit_all(GradientOp, target, node.cast(given, element_of(target)), list(sources))
    return list(_unknown(node, found))


def gradient_through(
    node: TorchNode, function: Callable[[SSAValue], SSAValue], cotangent: SSAValue, source: SSAValue
) -> SSAValue:
    """The gradient of a unary function, recomputed from `source`, times the cotangent of its result."""
    (variable,) = variables(node, source)
    (found,) = gradients(node, function(variable), cotangent, variable)
    return node.cast(found, node.element)


def variables(node: TorchNode, *values: SSAValue) -> tuple[SSAValue, ...]:
    """
    Make values independent variables.

    This makes derivatives partial if a value is used as several operands, or is computed from another one.
    """
    return _unknown(node, node.emit_all(VariablesOp, list(values)))


def _unknown(node: TorchNode, values: tuple[SSAValue, ...]) -> tuple[SSAValue, ...]:
    """Exclude values from folding while the graph is built."""
    for value in values:
        node.builder.folding.tell(value, None)
    return values
