"""Reports of compiled PyTorch graphs, and of the operators that PyTorch computes itself."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import field
from pathlib import Path

from glow_mlir.support.dataclass import dataclass


def counted(count: int, what: str) -> str:
    """A number of things in words: `1 call`, `2 calls`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _with_short_paths(text: str) -> str:
    """Shorten file names in a text by removing the folders of Python's search path."""
    folders = {str(Path.cwd()), *(entry for entry in sys.path if os.path.isabs(entry))}
    for folder in sorted(folders, key=len, reverse=True):
        text = text.replace(f"{folder.rstrip(os.sep)}{os.sep}", "")
    return text


@dataclass
class GraphReport:
    """One graph: its origin, compilations and calls."""

    number: int
    phase: str
    """`inference`, `forward`, `backward`, or `body` for a graph that an operator of another graph calls."""
    operators: int
    location: str
    """The line of the program with its first operator."""
    compile_seconds: float = 0.0
    compilations: int = 0
    calls: int = 0
    eager: dict[str, str] = field(default_factory=dict[str, str])
    """Operator that PyTorch computes, with its line → reason."""
    failures: dict[str, str] = field(default_factory=dict[str, str])
    """Part of the graph that PyTorch computes because compiling it failed → the error."""
    reasons: list[str] = field(default_factory=list[str])
    """The reasons for further compilations."""

    def __str__(self) -> str:
        """One line, and one for each operator that PyTorch computes."""
        what = f"graph {self.number}, {self.phase}, {counted(self.operators, 'operator')}"
        made = f"{counted(self.compilations, 'compilation')} in {self.compile_seconds:.2f} s"
        summary = f"{what}: {made}, {counted(self.calls, 'call')}"
        lines = [f"{summary} ({self.location})" if self.location else summary]
        lines += [f"  compiled again: {reason}" for reason in self.reasons]
        lines += [f"  PyTorch computes {operator}: {reason}" for operator, reason in self.eager.items()]
        lines += [f"  PyTorch computes {part}: compiling it failed: {reason}" for part, reason in self.failures.items()]
        return _with_short_paths("\n".join(lines))


@dataclass
class Report:
    """All graphs of this process, in the order in which PyTorch traced them."""

    graphs: list[GraphReport] = field(default_factory=list[GraphReport])

    def __str__(self) -> str:
        """The graphs, one or more lines each."""
        return "\n".join(map(str, self.graphs)) or "no graphs were compiled"

    @property
    def eager(self) -> dict[str, str]:
        """Operator that PyTorch computes in any graph, with its line → reason."""
        return {operator: reason for graph in self.graphs for operator, reason in graph.eager.items()}

    @property
    def failures(self) -> dict[str, str]:
        """Part of any graph that PyTorch computes because compiling it failed → the error."""
        return {part: reason for graph in self.graphs for part, reason in graph.failures.items()}


_REPORT = Report()
_LOCK = threading.Lock()


def report() -> Report:
    """The report of all graphs compiled by this process so far."""
    return _REPORT


def new_graph(phase: str, operators: int, location: str) -> GraphReport:
    """Add the report of a new graph."""
    with _LOCK:
        found = GraphReport(len(_REPORT.graphs), phase, operators, location)
        _REPORT.graphs.append(found)
    return found


def forget_graphs() -> None:
    """Forget all graphs so far."""
    with _LOCK:
        _REPORT.graphs.clear()
