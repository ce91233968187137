"""Emit computations in index notation as one `generic`: maps and folds that read their operands once."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.generic_form import generic_form, operand_tensors, rounded
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.index_notation import Signature
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.node_builder import NodeBuilder


def computed(
    node: NodeBuilder, signature: Signature, expression: Callable[..., Tensor], *operands: SSAValue
) -> SSAValue:
    """Compute an expression of operands, in the element type of the first one; f16 and bf16 are computed in f32."""
    elements, shapes = [element_of(value) for value in operands], [sizes_of(value) for value in operands]
    signature = signature.expanded([rank_of(value) for value in operands])
    root = rounded(expression(*operand_tensors(signature, elements)), elements[0])
    form = generic_form(signature, root, elements, shapes)
    return node.insert(GenericOp.of(operands, form, node.location)).results[0]
