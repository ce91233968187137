"""PyTorch's operators defined by formulas: they are computed in one float type, and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import Operand, TorchNode

Formula = Callable[..., Tensor]
"""Operands of an operator → its result."""


def operand(node: TorchNode, value: Operand, element: Attribute) -> Tensor:
    """An operand in the float type of a formula; float operands are first rounded to the result's type."""
    if isinstance(value, SSAValue) and is_float(element_of(value)):
        value = node.tensor(value)
    return node.of(value, element)


def computed(node: TorchNode, formula: Formula, *operands: Operand, element: Attribute | None = None) -> SSAValue:
    """Compute a formula in a float type, by default PyTorch's, and convert it to the result's type and sizes."""
    element = node.wide if element is None else element
    found = formula(*(operand(node, value, element) for value in operands))
    return node.expanded(node.cast(node.value(found), node.element))


def exactly(node: TorchNode) -> Attribute:
    """A float type of higher precision than the result, or f64."""
    return f64 if node.wide == node.element else node.wide


def formula_operator(*names: str, is_exact: bool = False) -> Callable[[Formula], Formula]:
    """
    Register a formula as importer of operators whose tensors are their first arguments.

    If `is_exact`, it is computed in higher precision than the result.
    """

    def register(formula: Formula) -> Formula:
        def run(node: TorchNode, *operands: Operand, **_: Any) -> SSAValue:
            return computed(node, formula, *operands, element=exactly(node) if is_exact else None)

        torch_operator(*names)(run)
        return formula

    return register
