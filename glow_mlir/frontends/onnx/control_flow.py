"""ONNX's control flow, as far as the compiler knows which way it goes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator


@onnx_operator("If")
def if_(node: Node) -> list[SSAValue | None] | None:
    """The branch that a constant condition chooses."""
    condition = node.known(0)
    if condition is None:
        raise UnsupportedError("the condition of If depends on an input of the model", node=node.name)
    if condition.size != 1:
        hint = "check the constant that the condition is"
        raise ModelError(f"If: the condition has {condition.size} elements, not 1", node=node.name, hint=hint)
    return node.scope.inline(node.subgraph("then_branch" if condition.item() else "else_branch"), node.name)
