"""The order of ONNX nodes, in which every operand comes before its use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx

from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.sparse import initializers_of


def node_name(proto: onnx.NodeProto) -> str:
    """The name of a node: its own, or that of its first output."""
    return proto.name or next((name for name in proto.output if name), proto.op_type)


def sorted_nodes(nodes: Sequence[onnx.NodeProto], is_known: Callable[[str], bool]) -> list[onnx.NodeProto]:
    """
    The nodes, in which every operand comes before its use, as the standard demands.

    `is_known` tells names that need no node. Raises `ModelError` for a cycle, for nodes in another order, for a name
    that nothing gives, and for one that is given twice.
    """
    producers = _producers(nodes, is_known)
    operands = [_producing(node, producers, is_known) for node in nodes]
    late = ((user, giver) for user, givers in enumerate(operands) for giver in givers if giver >= user)
    if (found := next(late, None)) is not None:
        _raise_cycle(nodes, operands)
        user, giver = (nodes[index] for index in found)
        reason = f"the nodes are not sorted: '{node_name(giver)}' computes an operand of it, and comes later"
        raise ModelError(reason, node=node_name(user), hint="sort them, so that each comes after those it depends on")
    return list(nodes)


def _raise_cycle(nodes: Sequence[onnx.NodeProto], operands: Sequence[Sequence[int]]) -> None:
    """Raise `ModelError` where nodes depend on themselves; `operands` has the positions of those that each needs."""
    done, open_ = set[int](), set[int]()
    for root in range(len(nodes)):
        stack = [root]
        while stack:
            current = stack[-1]
            if current in done or current in open_:
                done.add(stack.pop())
                continue
            open_.add(current)
            waiting = [index for index in operands[current] if index not in done]
            if any(index in open_ for index in waiting):
                cycle = [node_name(nodes[index]) for index in stack if index in open_ - done]
                listed = ", ".join(f"'{name}'" for name in cycle[:5])
                raise ModelError(f"the graph has a cycle through {listed}", node=cycle[0])
            stack.extend(reversed(waiting))


def _producers(nodes: Sequence[onnx.NodeProto], is_known: Callable[[str], bool]) -> dict[str, int]:
    """The position of the node that gives each name."""
    producers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if not name:
                continue
            if name in producers or is_known(name):
                owner = (
                    f"node '{node_name(nodes[producers[name]])}'" if name in producers else "an input or initializer"
                )
                raise ModelError(f"output '{name}' has the name of another value, of {owner}", node=node_name(node))
            producers[name] = index
    return producers


def _producing(node: onnx.NodeProto, producers: Mapping[str, int], is_known: Callable[[str], bool]) -> list[int]:
    """The positions of the nodes whose outputs a node uses, also inside its subgraphs."""
    for name in node.input:
        if name and name not in producers and not is_known(name):
            raise ModelError(
                f"operand '{name}' is neither an input, an initializer nor computed by a node", node=node_name(node)
            )
    return list(dict.fromkeys(producers[name] for name in used_names(node) if name in producers))


def used_names(node: onnx.NodeProto) -> Iterator[str]:
    """The names of a node's operands, then those that its attributes name or its subgraphs use of what is around."""
    yield from node.input
    if node.op_type == "Gradient" and node.domain == "ai.onnx.preview.training":
        yield from (attribute.s.decode(errors="replace") for attribute in node.attribute if attribute.name == "y")
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            own = {value.name for value in graph.input} | initializers_of(graph).keys()
            own.update(name for inner in graph.node for name in inner.output)
            yield from (value.name for value in graph.output if value.name not in own)
            yield from (name for inner in graph.node for name in used_names(inner) if name not in own)
