"""An order of ONNX nodes in which every operand comes before its use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx

from glow_mlir.errors import ModelError


def node_name(proto: onnx.NodeProto) -> str:
    """The name of a node: its own, or that of its first output."""
    return proto.name or next((name for name in proto.output if name), proto.op_type)


def sorted_nodes(nodes: Sequence[onnx.NodeProto], is_known: Callable[[str], bool]) -> list[onnx.NodeProto]:
    """
    The nodes in an order in which every operand comes before its use; nodes that are in order stay as they are.

    `is_known` tells names that need no node. Raises `ModelError` for a cycle, for a name that nothing gives, and for
    one that is given twice.
    """
    producers = _producers(nodes, is_known)
    operands = [_producing(node, producers, is_known) for node in nodes]
    ordered: list[onnx.NodeProto] = []
    done, open_ = set[int](), set[int]()
    for root in range(len(nodes)):
        stack = [root]
        while stack:
            current = stack[-1]
            if current in done or current in open_:
                stack.pop()
                if current not in done:
                    done.add(current)
                    ordered.append(nodes[current])
                continue
            open_.add(current)
            waiting = [index for index in operands[current] if index not in done]
            if any(index in open_ for index in waiting):
                _raise_cycle([nodes[index] for index in stack if index in open_ - done])
            stack.extend(reversed(waiting))
    return ordered


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
    """The names of a node's operands, then those that nodes of its subgraphs use."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            yield from (value.name for value in graph.output)
            for inner in graph.node:
                yield from used_names(inner)


def _raise_cycle(nodes: Sequence[onnx.NodeProto]) -> None:
    names = ", ".join(f"'{node_name(node)}'" for node in nodes[:5])
    raise ModelError(f"the graph has a cycle through {names}", node=node_name(nodes[0]))
