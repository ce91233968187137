"""An HTML page about a compilation: the arena over time, graphs of stages, and the log of each node."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from html import escape
from importlib.resources import files
from typing import Any

from glow_mlir.driver.compilation_log import CompilationLog
from glow_mlir.driver.pass_counts import PassCount
from glow_mlir.pictures.colours import COLOURS, meaning_of
from glow_mlir.pictures.graph import ENTRY, PASSIVE, Graph, Node
from glow_mlir.pictures.layout import layered
from glow_mlir.pictures.memory import DrawnStep, Memory
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.short_names import short_names

PACKAGE = "glow_mlir.pictures"
TEMPLATE = "page.html"
STYLE = "page.css"
SCRIPTS = (
    *("page.base.js", "page.view.js", "page.table.js", "page.passes.js"),
    *("page.memory.js", "page.graph.js", "page.js"),
)
"""The parts of the script, in order."""


@dataclass(frozen=True)
class StepTime:
    """The median and the least time of one instruction, branch or loop of the entry, and its kind."""

    kind: str
    microseconds: float
    least: float


@dataclass(frozen=True)
class Shown:
    """The displayed data of one compilation; any part may be missing. `label` distinguishes several compilations."""

    label: str = ""
    memory: Memory | None = None
    graphs: Mapping[str, Graph] = field(default_factory=dict[str, Graph])
    """Stage → graph."""
    log: CompilationLog = field(default_factory=CompilationLog)
    passes: Mapping[str, Sequence[PassCount]] = field(default_factory=dict[str, Sequence[PassCount]])
    """Stage → the passes since the previous stage, in order; the log numbers passes in this order from 1."""
    times: Sequence[StepTime] = ()
    """The times of the steps of function `measured`, in order, if measured."""
    measured: str = ENTRY

    def data(self) -> dict[str, Any]:
        """The data for the script."""
        times = {stage: node_times(graph, self.times, self.measured) for stage, graph in self.graphs.items()}
        graphs = {stage: graph_data(graph, times[stage]) for stage, graph in self.graphs.items()}
        nodes = {origin for graph in self.graphs.values() for node in graph.nodes for origin in node.origins}
        if self.memory is not None:
            nodes |= {origin for step in self.memory.steps for origin in step.origins}
        return {
            "label": self.label,
            "memory": None if self.memory is None else memory_data(self.memory, self.times),
            "graphs": graphs,
            "log": log_data(self.log, nodes),
            "passes": passes_data(self.passes),
            "names": {name: short for name, short in short_names(nodes).items() if short != name},
        }

    def families(self) -> set[str]:
        """The families of all displayed nodes."""
        found = {node.family for graph in self.graphs.values() for node in graph.nodes}
        return found | {buffer.family for buffer in (self.memory.buffers if self.memory else ())}


Row = tuple[str, str | None, str | None, str | None]
"""A row of a comparison: label, both values, and their difference; a heading has `None` in all three."""


@dataclass(frozen=True)
class Page:
    """A page about one compilation, or about several and their differences."""

    title: str
    compilations: Sequence[Shown]
    comparison: Sequence[Row] = ()

    def html(self) -> str:
        """The self-contained page."""
        # A `<` in the data could end the script, so it is escaped.
        data = json.dumps(self._data(), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        script = "\n".join(map(part, SCRIPTS))
        parts = {"TITLE": escape(self.title), "STYLE": part(STYLE), "SCRIPT": script, "DATA": data}
        return re.sub(r"\{\{([A-Z]+)\}\}", lambda found: parts[found[1]], part(TEMPLATE))

    def _data(self) -> dict[str, Any]:
        """All data for the script."""
        families = sorted(set[str]().union(*(shown.families() for shown in self.compilations)))
        return {
            "colours": COLOURS,
            "meanings": {family: meaning_of(family) for family in families},
            "comparison": self.comparison,
            "compilations": [shown.data() for shown in self.compilations],
        }


def node_times(graph: Graph, times: Sequence[StepTime], measured: str = ENTRY) -> list[float | None]:
    """
    The microseconds of each node of a graph of instructions: of those that are no part of a branch or loop, since only
    these are stamped. All are `None` where the graph is not of what was measured.
    """
    found: list[float | None] = [None] * len(graph.nodes)
    functions = [number for number, frame in enumerate(graph.frames) if frame.around is None]
    named = [number for number in functions if graph.frames[number].label.split()[0] == f"@{measured}"]
    for frame in named or functions[:1]:
        members = [
            number for number, node in enumerate(graph.nodes) if node.frame == frame and node.family not in PASSIVE
        ]
        if [graph.nodes[number].kind for number in members] == [time.kind for time in times]:
            for number, time in zip(members, times, strict=True):
                found[number] = time.microseconds
    return found


def part(name: str) -> str:
    """A constant part of every page."""
    return files(PACKAGE).joinpath(name).read_text(encoding="utf-8")


def graph_data(graph: Graph, times: Sequence[float | None] = ()) -> dict[str, Any]:
    """A graph with its layout; nodes and edges are lists, which the script reads by position."""
    layout = layered(graph)
    nodes = [
        [
            node.kind,
            node.family,
            node.name,
            node.origins,
            node.shape,
            node.size,
            details_of(graph, node),
            *position,
            time,
        ]
        for node, position, time in zip(graph.nodes, layout.positions, times or [None] * len(graph.nodes), strict=True)
    ]
    edges = [
        [edge.source, edge.target, edge.label, bends] for edge, bends in zip(graph.edges, layout.bends, strict=True)
    ]
    functions = [frame.label for frame in graph.frames if frame.around is None]
    return {"functions": functions, "nodes": nodes, "edges": edges}


def details_of(graph: Graph, node: Node) -> list[str]:
    """The details of a node, with its function and enclosing regions."""
    path = graph.path(node.frame)
    return [*node.details, f"in: {' › '.join(path)}"] if path else list(node.details)


Measured = tuple[float, float] | tuple[None, None]
"""The median and the least microseconds of a step, if it was measured."""


def step_times(steps: Sequence[DrawnStep], times: Sequence[StepTime]) -> list[Measured]:
    """The times of each step outside branches and loops; empty if the function was not measured."""
    outer = [number for number, step in enumerate(steps) if not step.depth]
    found: list[Measured] = [(None, None)] * len(steps)
    if [steps[number].kind for number in outer] == [time.kind for time in times]:
        for number, time in zip(outer, times, strict=True):
            found[number] = time.microseconds, time.least
    return found


def memory_data(memory: Memory, times: Sequence[StepTime] = ()) -> dict[str, Any]:
    """The memory data, with times if measured; the script accesses buffers and steps by position."""
    measured = step_times(memory.steps, times)
    buffers = [
        [
            *(buffer.name, buffer.kind, buffer.family, buffer.origins, buffer.shape),
            *(buffer.offset, buffer.size, buffer.begin, buffer.end),
            [[view.name, view.shape, view.offset, view.size] for view in buffer.views],
            buffer.notes,
        ]
        for buffer in memory.buffers
    ]
    steps = [
        [step.kind, step.family, step.kernel, step.moved, step.origins, time, step.depth, least]
        for step, (time, least) in zip(memory.steps, measured, strict=True)
    ]
    sizes = {
        "function": memory.function,
        "size": memory.size,
        "bound": memory.bound,
        "constants": memory.constants,
        "peak": memory.peak,
    }
    is_timed = any(time is not None for time, _ in measured)
    total = sum(time.microseconds for time in times) if is_timed else None
    least = sum(time.least for time in times) if is_timed else None
    return {**sizes, "time": total, "least": least, "buffers": buffers, "steps": steps}


def passes_data(stages: Mapping[str, Sequence[PassCount]]) -> dict[str, list[Any]]:
    """For each stage its passes: number, name, operations before and after, seconds, counts, changes."""
    found: dict[str, list[Any]] = {}
    number = 0
    for stage, runs in stages.items():
        rows = found.setdefault(stage, [])
        for run in runs:
            number += 1
            counted = [[what, times] for what, times in run.counted.most_common() if times]
            old, new = run.before, run.after
            changed = [[kind, old[kind], new[kind]] for kind in sorted(old | new) if old[kind] != new[kind]]
            rows.append([number, run.name, old.total(), new.total(), run.seconds, counted, changed])
    return found


def log_data(log: CompilationLog, shown: set[str]) -> dict[str, Any]:
    """The log entries of the displayed nodes: for each, the numbers of its pass and of its text in two lists."""
    passes: dict[int, str] = {}
    texts: dict[str, int] = {}
    nodes: dict[str, list[tuple[int, int]]] = {}
    for node, entries in log.nodes.items():
        if node in shown:
            passes.update((entry.run, entry.pass_name) for entry in entries)
            nodes[node] = [(entry.run, texts.setdefault(entry.text(), len(texts))) for entry in entries]
    return {"passes": [passes.get(run, "") for run in range(log.runs + 1)], "texts": list(texts), "nodes": nodes}
