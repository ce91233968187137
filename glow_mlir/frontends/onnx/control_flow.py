"""ONNX's branches."""

from __future__ import annotations

from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Region, SSAValue

from glow_mlir.dialects.control_flow import verify_scalar
from glow_mlir.dialects.glow_high.control_flow import IfOp, YieldOp
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator

BRANCHES = ("then_branch", "else_branch")
"""The attributes of If that are graphs."""


@onnx_operator("If")
def if_(node: Node) -> list[SSAValue | None] | None:
    """The branch that a constant condition chooses, or both as regions where the condition is computed."""
    condition = node.known(0)
    if condition is None:
        return _branch(node)
    if condition.size != 1:
        hint = "check the constant that the condition is"
        raise ModelError(f"If: the condition has {condition.size} elements, not 1", node=node.name, hint=hint)
    return node.scope.inline(node.subgraph(BRANCHES[0 if condition.item() else 1]), node.name)


def _branch(node: Node) -> list[SSAValue | None] | None:
    """Both branches as regions."""
    verify_scalar(node.input(), i1, "the condition")
    blocks = [Block(), Block()]
    ends = [node.region(name, block) for name, block in zip(BRANCHES, blocks, strict=True)]
    results: list[list[SSAValue]] = [end for end in ends if end is not None]
    if len(results) != len(BRANCHES):
        return None
    check_number(node, len(results[0]), len(results[1]), "a branch gives")
    for position, (one, other) in enumerate(zip(*results, strict=True)):
        _check_alike(node, position, one, other)
    for block, values in zip(blocks, results, strict=True):
        block.add_op(YieldOp.of(values, node.location))
    branch = IfOp.of(node.input(), [value.type for value in results[0]], map(Region, blocks), node.location)
    return list(node.insert(branch).results)


def check_number(node: Node, expected: int, found: int, what: str) -> None:
    """Raise `ModelError` where `what` there is has another number than expected."""
    if found != expected:
        hint = "check the graphs inside of the node"
        raise ModelError(f"{node.kind}: {what} {found} values, not {expected}", node=node.name, hint=hint)


def _check_alike(node: Node, position: int, one: SSAValue, other: SSAValue) -> None:
    """Raise for a result that the branches give different types."""
    if element_of(one) != element_of(other):
        reason = f"If: result {position} is of {element_of(one)} in one branch, of {element_of(other)} in the other"
        raise ModelError(reason, node=node.name, hint="cast one of them")
    if shape_of(one) != shape_of(other):
        shapes = f"{shape_of(one)} in one branch, {shape_of(other)} in the other"
        what = f"If: result {position} has the shape {shapes}: the condition"
        raise node.graph.missing_value(node.input(), what, node.name)
