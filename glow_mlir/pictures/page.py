"""One HTML page about a compilation: the arena over time, the graphs before and after, and the log of every node."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

from glow_mlir.driver.compilation_log import CompilationLog
from glow_mlir.pictures.graph import Graph, Node
from glow_mlir.pictures.layout import layered
from glow_mlir.pictures.memory import Memory

PACKAGE = "glow_mlir.pictures"
TEMPLATE = "page.html"
STYLE = "page.css"
SCRIPT = "page.js"


@dataclass
class Page:
    """What one page shows; any part may be missing."""

    title: str
    memory: Memory | None = None
    graphs: dict[str, Graph] = field(default_factory=dict[str, Graph])
    """Stage → graph."""
    log: CompilationLog | None = None

    def html(self) -> str:
        """The page, complete in itself: it loads nothing."""
        # A `<` in the data could end the script; JSON may spell it otherwise.
        data = json.dumps(self._data(), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        parts = {"TITLE": escape(self.title), "STYLE": part(STYLE), "SCRIPT": part(SCRIPT), "DATA": data}
        return re.sub(r"\{\{([A-Z]+)\}\}", lambda found: parts[found[1]], part(TEMPLATE))

    def _data(self) -> dict[str, Any]:
        """Everything that the script draws."""
        graphs = {stage: graph_data(graph) for stage, graph in self.graphs.items()}
        shown = {origin for graph in self.graphs.values() for node in graph.nodes for origin in node.origins}
        if self.memory is not None:
            shown |= {origin for step in self.memory.steps for origin in step.origins}
        log = log_data(self.log or CompilationLog(), shown)
        memory = None if self.memory is None else memory_data(self.memory)
        return {"memory": memory, "graphs": graphs, "log": log}


def part(name: str) -> str:
    """A part of every page."""
    return files(PACKAGE).joinpath(name).read_text(encoding="utf-8")


def graph_data(graph: Graph) -> dict[str, Any]:
    """A graph with its layout; nodes and edges are lists, which the script reads by position."""
    layout = layered(graph)
    nodes = [
        [node.kind, node.family, node.name, node.origins, node.shape, node.size, details_of(graph, node), *place]
        for node, place in zip(graph.nodes, layout.places, strict=True)
    ]
    edges = [
        [edge.source, edge.target, edge.label, bends] for edge, bends in zip(graph.edges, layout.bends, strict=True)
    ]
    functions = [frame.label for frame in graph.frames if frame.around is None]
    return {"functions": functions, "nodes": nodes, "edges": edges}


def details_of(graph: Graph, node: Node) -> list[str]:
    """The details of a node, with the function and the regions that it is in."""
    path = graph.path(node.frame)
    return [*node.details, f"in: {' › '.join(path)}"] if path else list(node.details)


def memory_data(memory: Memory) -> dict[str, Any]:
    """The memory; buffers and steps are lists, which the script reads by position."""
    buffers = [
        [
            *(buffer.name, buffer.kind, buffer.family, buffer.origins, buffer.shape),
            *(buffer.offset, buffer.size, buffer.begin, buffer.end),
            [[view.name, view.shape, view.offset, view.size] for view in buffer.views],
        ]
        for buffer in memory.buffers
    ]
    steps = [[step.kind, step.family, step.kernel, step.moved, step.origins] for step in memory.steps]
    sizes = {"size": memory.size, "bound": memory.bound, "constants": memory.constants, "peak": memory.peak}
    return {**sizes, "buffers": buffers, "steps": steps}


def log_data(log: CompilationLog, shown: set[str]) -> dict[str, Any]:
    """The entries of the nodes that are shown: for each the numbers of its pass and of its text in two lists."""
    passes: dict[int, str] = {}
    texts: dict[str, int] = {}
    nodes: dict[str, list[tuple[int, int]]] = {}
    for node, entries in log.nodes.items():
        if node in shown:
            passes.update((entry.run, entry.pass_name) for entry in entries)
            nodes[node] = [(entry.run, texts.setdefault(entry.text(), len(texts))) for entry in entries]
    return {"passes": [passes.get(run, "") for run in range(log.runs + 1)], "texts": list(texts), "nodes": nodes}
