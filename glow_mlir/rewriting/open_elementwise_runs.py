"""Runs that are still open, found by what an instruction uses without a walk over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import SSAValue

from glow_mlir.analysis.extents import Extents
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import root_of
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.rewriting.elementwise_runs import Buffers, ElementwiseRun, Place, Use
from glow_mlir.support.symbols import Sizes


class OpenRuns:
    """
    The open runs of one block, by the memory that their members use.

    A run is joined for a buffer that it reads or writes as an instruction reads it, and stands against one whose
    elements it meets: only those are looked at.
    """

    def __init__(self, buffers: Buffers) -> None:
        self._buffers = buffers
        self._runs: dict[ElementwiseRun, None] = {}
        self._used: dict[tuple[SSAValue, bool], Extents[ElementwiseRun]] = {}
        """Allocation or weight, and whether it is written → the runs that use parts of it so."""
        self._joinable: dict[tuple[Place, Sizes], dict[ElementwiseRun, None]] = {}
        """Buffer that is known to a run, and its space → the runs that may still be joined."""

    def all(self) -> list[ElementwiseRun]:
        """All of them, the one that began first in front."""
        return _in_order(self._runs)

    def accepting(self, op: DerivedInstruction, time: int, most: int) -> list[ElementwiseRun]:
        """Those that an instruction may join, with `most` members, the one that began first in front."""
        space = sizes_of(op.outputs()[0])
        keys = [(self._buffers.place(value), space) for value in op.inputs()]
        found = _in_order(run for key in keys for run in self._joinable.get(key, ()))
        accepting = [run for run in found if run.accepts(op, time, most)]
        for run in found:
            if run not in accepting and not run.may_grow(most):
                self._end_joining(run)
        return accepting

    def conflicting(self, uses: Sequence[Use]) -> list[ElementwiseRun]:
        """Those that come before an instruction with these uses, the one that began first in front."""
        near: dict[ElementwiseRun, None] = {}
        for value, writes in uses:
            root = root_of(value)
            for is_written in (True, False) if writes else (True,):
                if (extents := self._used.get((root, is_written))) is not None:
                    near.update(dict.fromkeys(extents.near(self._buffers.region(value))))
        return [run for run in _in_order(near) if run.conflicts(uses)]

    def add(self, run: ElementwiseRun, time: int, op: DerivedInstruction) -> None:
        """Let an instruction join a run, which may be a new one with members."""
        if run not in self._runs:
            self._runs[run] = None
            self._note(run, run.uses(), (*run.sources, *run.written))
        self._note(run, *run.add(time, op))

    def drop(self, run: ElementwiseRun) -> None:
        """Let go of a run."""
        del self._runs[run]
        for value, writes in run.uses():
            self._used[root_of(value), writes].remove(self._buffers.region(value), run)
        self._end_joining(run)

    def _note(self, run: ElementwiseRun, uses: Iterable[Use], places: Iterable[Place]) -> None:
        for value, writes in uses:
            self._used.setdefault((root_of(value), writes), Extents()).add(self._buffers.region(value), run)
        for place in places:
            self._joinable.setdefault((place, run.space), {})[run] = None

    def _end_joining(self, run: ElementwiseRun) -> None:
        """A run is joined no more."""
        for place in (*run.sources, *run.written):
            self._joinable[place, run.space].pop(run, None)


def _in_order(runs: Iterable[ElementwiseRun]) -> list[ElementwiseRun]:
    """Each run once, the one that began first in front."""
    return sorted(dict.fromkeys(runs), key=lambda run: run.members[0][0])
