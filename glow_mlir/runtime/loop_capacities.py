"""The capacities of loops that nothing bounds: how many trips of each an executable has memory for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from glow_mlir.errors import OUT_OF_ROOM, ExecutionError
from glow_mlir.runtime.assumptions import Assumptions
from glow_mlir.runtime.executable import Executable
from glow_mlir.support.symbols import Dimension

FIRST = 64
"""The first capacity of a loop, in trips."""
GROWTH = 4
"""The factor by which a capacity grows."""
MAXIMUM = 1 << 24
"""The largest capacity: a loop may never end."""


class LoopCapacities:
    """
    The capacity of each loop that nothing bounds, in trips, by the label of the loop.

    A capacity grows when a call needs more trips of that loop; the others stay. It may take `maximum_bytes` of
    activations and outputs. Methods are called under the lock of the session.
    """

    def __init__(self, maximum_bytes: int) -> None:
        self._maximum_bytes = maximum_bytes
        self._trips: dict[str, int] = {}
        self._growing: dict[Assumptions, tuple[int, set[str]]] = {}
        """Assumptions but for capacities → the bytes of the executable before, and the loops that have grown since."""

    def __bool__(self) -> bool:
        return bool(self._trips)

    def __contains__(self, label: str) -> bool:
        return label in self._trips

    def sizes(self) -> Iterable[tuple[str, Dimension]]:
        """Each loop and its capacity, as a dimension that code is compiled for."""
        return [(label, (1, trips)) for label, trips in self._trips.items()]

    def hold(self, assumptions: Assumptions) -> bool:
        """Whether assumptions have the present capacities."""
        return all(size in assumptions.sizes for size in self.sizes())

    def add(self, labels: Iterable[str]) -> None:
        """Give further loops their first capacity."""
        self._trips = {**self._trips, **dict.fromkeys(labels, FIRST)}

    def grow(self, error: ExecutionError, wanted: Assumptions, executable: Executable) -> bool:
        """
        Grow the capacity of the loop that made a call fail, unless another call has grown it by now.

        `wanted` is what `executable` was compiled for. Returns whether the call may be tried again; raises
        `ExecutionError` where the capacity is the largest.
        """
        label = _failed_loop(error)
        if label not in self._trips:
            return False
        trips = self._trips[label]
        if (label, (1, trips)) not in wanted.sizes:
            return True
        if trips * GROWTH > MAXIMUM:
            raise _full(label, trips, f"the largest capacity is {MAXIMUM}")
        self._trips = {**self._trips, label: trips * GROWTH}
        self._growing.setdefault(self._others(wanted), (_bytes(executable), set()))[1].add(label)
        return True

    def check(self, wanted: Assumptions, executable: Executable) -> None:
        """
        Raise `ExecutionError` where loops that have grown take too much memory, and shrink them again.

        The bytes of a capacity follow from those of the executable before, which had room for fewer trips.
        """
        before, grown = self._growing.pop(self._others(wanted), (0, set[str]()))
        if not grown:
            return
        taken = max(0, _bytes(executable) - before) * GROWTH // (GROWTH - 1)
        if taken <= self._maximum_bytes:
            return
        self._trips = {label: trips // GROWTH if label in grown else trips for label, trips in self._trips.items()}
        label = max(grown)
        trips = self._trips[label]
        reason = f"memory for {trips * GROWTH} takes {taken} bytes, more than {self._maximum_bytes}"
        raise _full(label, trips, reason)

    def _others(self, assumptions: Assumptions) -> Assumptions:
        """Assumptions without capacities."""
        return Assumptions(tuple(size for size in assumptions.sizes if size[0] not in self._trips), assumptions.values)


def _bytes(executable: Executable) -> int:
    """The bytes of activations and outputs."""
    outputs = sum(binding.nbytes for binding in executable.entry().bindings if binding.role == "output")
    return executable.activation_bytes + outputs


def _failed_loop(error: ExecutionError) -> str:
    """The label of the loop that an error is about."""
    found = re.fullmatch(rf"{re.escape(OUT_OF_ROOM)} '(.*)'", error.reason, re.DOTALL)
    return found[1] if found else ""


def _full(label: str, trips: int, reason: str) -> ExecutionError:
    """The error for a loop whose capacity does not grow any more."""
    hint = f"it may never end; dimensions={{'{label}': N}} reserves memory for N trips, limits= limits it"
    return ExecutionError(f"{OUT_OF_ROOM} '{label}': {trips} trips; {reason}", node=label.rpartition(".")[0], hint=hint)
