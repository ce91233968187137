"""What was compiled of PyTorch's graphs, and what PyTorch computes itself."""

from __future__ import annotations

import threading
from dataclasses import field

from glow_mlir.support.dataclass import dataclass


@dataclass
class GraphReport:
    """One graph: where it comes from, what became of it, and how often it ran."""

    number: int
    phase: str
    """`inference`, `forward` or `backward`."""
    operators: int
    place: str
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
        what = f"graph {self.number}, {self.phase}, {self.operators} operators"
        told = f"{what}: {self.compilations} compilations in {self.compile_seconds:.2f} s, {self.calls} calls"
        lines = [f"{told} ({self.place})" if self.place else told]
        lines += [f"  compiled again: {reason}" for reason in self.reasons]
        lines += [f"  PyTorch computes {operator}: {reason}" for operator, reason in self.eager.items()]
        return "\n".join(lines)


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


def new_graph(phase: str, operators: int, place: str) -> GraphReport:
    """The report of another graph."""
    with _LOCK:
        found = GraphReport(len(_REPORT.graphs), phase, operators, place)
        _REPORT.graphs.append(found)
    return found


def forget_graphs() -> None:
    """Forget the graphs so far."""
    with _LOCK:
        _REPORT.graphs.clear()
