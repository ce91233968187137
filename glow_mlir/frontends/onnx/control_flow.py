"""ONNX's control flow, as far as the compiler knows which way it goes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.registry import onnx_operator


@onnx_operator("If")
def if_(node: Node) -> list[SSAValue | None] | None:
    """The branch that a constant condition chooses."""
    condition = node.known(0)
    if condition is None:
        raise UnsupportedError("the condition of If depends on an input of the model", node=node.name)
    return node.scope.inline(node.subgraph("then_branch" if condition.item() else "else_branch"), node.name)
