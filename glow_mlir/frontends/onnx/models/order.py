"""Topological order of ONNX nodes, in which every operand comes before its use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx

from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.models.sparse import initializers_of
from glow_mlir.support.dataclass import dataclass


def node_name(proto: onnx.NodeProto) -> str:
    """The name of a node, or else of its first output."""
    return proto.name or next((name for name in proto.output if name), proto.op_type)


def sorted_nodes(nodes: Sequence[onnx.NodeProto], is_known: Callable[[str], bool]) -> list[onnx.NodeProto]:
    """
    The nodes in topological order.

    `is_known` returns whether a name is defined without a node. Raises `ModelError` for a cycle, an undefined name, or
    a name defined twice.
    """
    producers = _producers(nodes, is_known)
    for node in nodes:
        _check_operands(node, producers, is_known)
    order = _order(nodes, producers)
    if isinstance(order, _Cycle):
        listed = ", ".join(f"'{node_name(nodes[index])}'" for index in order.positions[:5])
        raise ModelError(f"the graph has a cycle through {listed}", node=node_name(nodes[order.positions[0]]))
    return [nodes[index] for index in order]


def topological(nodes: Sequence[onnx.NodeProto]) -> list[int] | None:
    """The positions of nodes in topological order; `None` if there is a cycle."""
    order = _order(nodes, _positions(nodes))
    return None if isinstance(order, _Cycle) else order


def first_late(nodes: Sequence[onnx.NodeProto]) -> tuple[int, int] | None:
    """The positions of the first node that uses a later node's result, and of that node; `None` if sorted."""
    producers = _positions(nodes)
    for user, node in enumerate(nodes):
        for name in used_names(node):
            if producers.get(name, -1) >= user:
                return user, producers[name]
    return None


def _positions(nodes: Sequence[onnx.NodeProto]) -> dict[str, int]:
    """Name → the position of the first node that defines it."""
    found: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name:
                found.setdefault(name, index)
    return found


@dataclass(frozen=True)
class _Cycle:
    """Positions of nodes on a cycle."""

    positions: Sequence[int]


def _order(nodes: Sequence[onnx.NodeProto], producers: Mapping[str, int]) -> list[int] | _Cycle:
    """The positions of nodes in topological order, which is the original order as far as possible; or a cycle."""
    operands = [
        list(dict.fromkeys(producers[name] for name in used_names(node) if name in producers)) for node in nodes
    ]
    done, open_ = dict[int, None](), set[int]()
    for root in range(len(nodes)):
        stack = [root]
        while stack:
            current = stack[-1]
            if current in done or current in open_:
                done[stack.pop()] = None
                continue
            open_.add(current)
            waiting = [index for index in operands[current] if index not in done]
            if any(index in open_ for index in waiting):
                return _Cycle([index for index in stack if index in open_ and index not in done])
            stack.extend(reversed(waiting))
    return list(done)


def _producers(nodes: Sequence[onnx.NodeProto], is_known: Callable[[str], bool]) -> dict[str, int]:
    """Name → the position of the node that defines it; raises `ModelError` for names defined twice."""
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


def _check_operands(node: onnx.NodeProto, producers: Mapping[str, int], is_known: Callable[[str], bool]) -> None:
    """Raise `ModelError` for an undefined operand."""
    for name in node.input:
        if name and name not in producers and not is_known(name):
            raise ModelError(
                f"operand '{name}' is neither an input, an initializer nor computed by a node", node=node_name(node)
            )


def used_names(node: onnx.NodeProto) -> Iterator[str]:
    """The names of a node's operands, then outer names that its attributes or subgraphs refer to."""
    yield from node.input
    if node.op_type == "Gradient" and node.domain == "ai.onnx.preview.training":
        yield from (attribute.s.decode(errors="replace") for attribute in node.attribute if attribute.name == "y")
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            own = {value.name for value in graph.input} | initializers_of(graph).keys()
            own.update(name for inner in graph.node for name in inner.output)
            yield from (value.name for value in graph.output if value.name not in own)
            yield from (name for inner in graph.node for name in used_names(inner) if name not in own)
