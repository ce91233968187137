"""Index of the open runs by buffer, so that an instruction need not be compared with all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import SSAValue

from glow_mlir.analysis.extents import Extents
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import root_of
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.rewriting.elementwise_runs import BufferKey, Buffers, ElementwiseRun, Use
from glow_mlir.support.symbols import Sizes


class OpenRuns:
    """
    The open runs of one block, by the memory that their members use.

    An instruction may join runs that read or write one of its buffers, and conflicts with runs whose elements it
    overlaps: only these runs are visited.
    """

    def __init__(self, buffers: Buffers) -> None:
        self._buffers = buffers
        self._runs: dict[ElementwiseRun, None] = {}
        self._used: dict[tuple[SSAValue, bool], Extents[ElementwiseRun]] = {}
        """(Allocation or weight, whether it is written) → the runs with such a use."""
        self._joinable: dict[tuple[BufferKey, Sizes], dict[ElementwiseRun, None]] = {}
        """(Buffer, index space) → the runs that may still be joined through it."""

    def all(self) -> list[ElementwiseRun]:
        """All open runs, oldest first."""
        return _in_order(self._runs)

    def accepting(self, op: DerivedInstruction, time: int, most: int) -> list[ElementwiseRun]:
        """The runs that an instruction may join, up to `most` members, oldest first."""
        space = sizes_of(op.outputs()[0])
        keys = [(self._buffers.buffer_key(value), space) for value in op.inputs()]
        found = _in_order(run for key in keys for run in self._joinable.get(key, ()))
        accepting = [run for run in found if run.accepts(op, time, most)]
        for run in found:
            if run not in accepting and not run.may_grow(most):
                self._end_joining(run)
        return accepting

    def conflicting(self, uses: Sequence[Use]) -> list[ElementwiseRun]:
        """The runs that must come before an instruction with these uses, oldest first."""
        near: dict[ElementwiseRun, None] = {}
        for value, writes in uses:
            root = root_of(value)
            for is_written in (True, False) if writes else (True,):
                if (extents := self._used.get((root, is_written))) is not None:
                    near.update(dict.fromkeys(extents.near(self._buffers.region(value))))
        return [run for run in _in_order(near) if run.conflicts(uses)]

    def add(self, run: ElementwiseRun, time: int, op: DerivedInstruction) -> None:
        """Add an instruction to a run, which may be a new one with members."""
        if run not in self._runs:
            self._runs[run] = None
            self._note(run, run.uses(), (*run.sources, *run.written))
        self._note(run, *run.add(time, op))

    def drop(self, run: ElementwiseRun) -> None:
        """Remove a run."""
        del self._runs[run]
        for value, writes in run.uses():
            self._used[root_of(value), writes].remove(self._buffers.region(value), run)
        self._end_joining(run)

    def _note(self, run: ElementwiseRun, uses: Iterable[Use], buffer_keys: Iterable[BufferKey]) -> None:
        for value, writes in uses:
            self._used.setdefault((root_of(value), writes), Extents()).add(self._buffers.region(value), run)
        for buffer_key in buffer_keys:
            self._joinable.setdefault((buffer_key, run.space), {})[run] = None

    def _end_joining(self, run: ElementwiseRun) -> None:
        """Mark a run as closed to further members."""
        for buffer_key in (*run.sources, *run.written):
            self._joinable[buffer_key, run.space].pop(run, None)


def _in_order(runs: Iterable[ElementwiseRun]) -> list[ElementwiseRun]:
    """Each run once, oldest first."""
    return sorted(dict.fromkeys(runs), key=lambda run: run.members[0][0])
