"""
Choose the values that forward saves for backward: PyTorch's choice, but backward recomputes views from their bases.

So forward saves each tensor once, instead of parts and permutations of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._functorch.partitioners import default_partition

aten = torch.ops.aten

VIEWS = frozenset(
    overload
    for packet in (
        aten.alias, aten.as_strided, aten.detach, aten.diagonal, aten.expand, aten.permute, aten.select, aten.slice,
        aten.split, aten.split_with_sizes, aten.squeeze, aten.t, aten.transpose, aten.unbind, aten.unfold,
        aten.unsqueeze, aten.view,
    )
    for overload in (getattr(packet, name) for name in packet.overloads())
)  # fmt: skip
"""Operators whose results share the memory of their operand."""


def partition(
    joint: fx.GraphModule, inputs: Sequence[Any], *, num_fwd_outputs: int, **further: Any
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Split a joint graph into forward and backward; backward takes views of the saved tensors."""
    nodes: list[fx.Node] = list(joint.graph.nodes)
    last = max(position for position, node in enumerate(nodes) if _is_of_forward(node))
    forward = set(nodes[: last + 1])
    for node in reversed(nodes[: last + 1]):
        if _is_view(node):
            _take_again(joint.graph, node, forward)
    joint.graph.lint()
    joint.recompile()
    return default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **further)


def _is_of_forward(node: fx.Node) -> bool:
    """Whether PyTorch traced a node in the forward pass."""
    return node.meta.get("partitioner_tag") == "is_forward" or (
        node.op == "placeholder" and "tangents" not in node.name
    )


def _is_view(node: fx.Node) -> bool:
    if node.target in VIEWS:
        return True
    # A part of the result of an operator with several views.
    source = node.args[0] if node.args else None
    return (
        node.op == "call_function"
        and isinstance(source, fx.Node)
        and "getitem" in str(node.target)
        and _is_view(source)
    )


def _take_again(graph: fx.Graph, node: fx.Node, forward: set[fx.Node]) -> None:
    """Give the users of a view in backward a view of their own."""
    users = [user for user in node.users if user not in forward and user.op != "output"]
    if not users:
        return
    with graph.inserting_before(min(users)):
        again = graph.node_copy(node)
    again.meta["partitioner_tag"] = "is_backward"
    for user in users:
        user.replace_input_with(node, again)
