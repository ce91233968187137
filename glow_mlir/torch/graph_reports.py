"""What was compiled of PyTorch's graphs, and what PyTorch computes itself."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import field
from pathlib import Path

from glow_mlir.support.dataclass import dataclass


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _with_short_paths(text: str) -> str:
    """A text in which files are named as modules are found: without the folder that Python looks for them in."""
    folders = {str(Path.cwd()), *(entry for entry in sys.path if os.path.isabs(entry))}
    for folder in sorted(folders, key=len, reverse=True):
        text = text.replace(f"{folder.rstrip(os.sep)}{os.sep}", "")
    return text


@dataclass
class GraphReport:
    """One graph: where it comes from, what became of it, and how often it ran."""

    number: int
    phase: str
    """`inference`, `forward` or `backward`."""
    operators: int
    location: str
    """The line of the program where its first operator is."""
    compile_seconds: float = 0.0
    compilations: int = 0
    calls: int = 0
    eager: dict[str, str] = field(default_factory=dict[str, str])
    """What PyTorch computes itself: operator and its line → why."""
    reasons: list[str] = field(default_factory=list[str])
    """Why it was compiled more than once."""

    def __str__(self) -> str:
        """One line, and one for each operator that PyTorch computes."""
        what = f"graph {self.number}, {self.phase}, {_counted(self.operators, 'operator')}"
        made = f"{_counted(self.compilations, 'compilation')} in {self.compile_seconds:.2f} s"
        summary = f"{what}: {made}, {_counted(self.calls, 'call')}"
        lines = [f"{summary} ({self.location})" if self.location else summary]
        lines += [f"  compiled again: {reason}" for reason in self.reasons]
        lines += [f"  PyTorch computes {operator}: {reason}" for operator, reason in self.eager.items()]
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
        """What PyTorch computes itself in all graphs: operator and its line → why."""
        return {operator: reason for graph in self.graphs for operator, reason in graph.eager.items()}


_REPORT = Report()
_LOCK = threading.Lock()


def report() -> Report:
    """What ran where: the graphs that this process compiled so far."""
    return _REPORT


def new_graph(phase: str, operators: int, location: str) -> GraphReport:
    """The report of another graph."""
    with _LOCK:
        found = GraphReport(len(_REPORT.graphs), phase, operators, location)
        _REPORT.graphs.append(found)
    return found


def forget_graphs() -> None:
    """Forget the graphs so far."""
    with _LOCK:
        _REPORT.graphs.clear()
