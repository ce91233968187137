"""A graph in graphviz's language."""

from __future__ import annotations

from collections.abc import Iterator

from glow_mlir.pictures.colours import COLOURS, meaning_of
from glow_mlir.pictures.graph import BUFFER, INPUT, OUTPUT, Graph, Node

SHAPES = {INPUT: "ellipse", OUTPUT: "ellipse", BUFFER: "cylinder"}
"""Family → shape; operators are boxes."""


def dot(graph: Graph, title: str) -> str:
    """
    The text of a graph for `dot -Tsvg`.

    Functions, regions of branches and loops, and the operators of each ONNX node are drawn in labelled frames.
    """
    lines = [
        f"digraph {quoted(title)} {{",
        f"  graph [label={quoted(title)}, labelloc=t, fontname=Helvetica, ranksep=0.35, nodesep=0.25];",
        '  node [shape=box, style="rounded,filled", fillcolor="#eeeeee", fontname=Helvetica, fontsize=10];',
        '  edge [fontname=Helvetica, fontsize=8, color="#666666", fontcolor="#666666"];',
    ]
    lines += frame_lines(graph, None, "  ")
    lines += [f"  n{edge.source} -> n{edge.target} [label={quoted(edge.label)}];" for edge in graph.edges]
    return "\n".join([*lines, "}", ""])


def frame_lines(graph: Graph, frame: int | None, indent: str) -> Iterator[str]:
    """The statements of a frame, including nested frames."""
    for origin, members in grouped(graph, frame).items():
        nodes = [node_text(number, graph.nodes[number]) for number in members]
        if len(members) > 1 and origin:
            yield f"{indent}subgraph {quoted(f'cluster {frame} {origin}')} {{"
            yield f'{indent}  label={quoted(origin)}; style=dashed; color="#999999"; fontsize=9;'
            yield from (f"{indent}  {node}" for node in nodes)
            yield f"{indent}}}"
        else:
            yield from (f"{indent}{node}" for node in nodes)
    for number, inner in enumerate(graph.frames):
        if inner.around == frame:
            yield f"{indent}subgraph {quoted(f'cluster {number}')} {{"
            yield f'{indent}  label={quoted(inner.label)}; labeljust=l; style=solid; color="#666666"; fontsize=10;'
            yield from frame_lines(graph, number, indent + "  ")
            yield f"{indent}}}"


def grouped(graph: Graph, frame: int | None) -> dict[str, list[int]]:
    """The nodes of a frame by the ONNX nodes they come from; inputs, outputs and buffers are not grouped."""
    groups: dict[str, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        if node.frame == frame:
            origin = "" if node.family in SHAPES else "+".join(node.origins)
            groups.setdefault(origin, []).append(number)
    return groups


def node_text(number: int, node: Node) -> str:
    """The statement of one node."""
    label = "\n".join(label_lines(node))
    tooltip = "\n".join((", ".join(node.origins), *node.details)).strip() or node.kind
    shape = f", shape={SHAPES[node.family]}, style=filled" if node.family in SHAPES else ""
    fill = COLOURS[meaning_of(node.family)]
    return f'n{number} [label={quoted(label)}, tooltip={quoted(tooltip)}, fillcolor="{fill}"{shape}];'


def label_lines(node: Node) -> Iterator[str]:
    """The label lines of a node."""
    yield f"{node.kind} {node.name}".strip()
    yield node.shape
    yield bytes_text(node.size)


def bytes_text(number: int) -> str:
    """A number of bytes as text."""
    if number < 1 << 10:
        return f"{number} B"
    return f"{number / (1 << 10):.1f} KiB" if number < 1 << 20 else f"{number / (1 << 20):.1f} MiB"


def quoted(text: str) -> str:
    """Any text as a string of graphviz's, which knows no escapes but for quotes, and `\\n` in labels."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
