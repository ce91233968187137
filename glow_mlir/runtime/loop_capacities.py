"""The capacities of unbounded loops: the number of iterations that an executable has memory for."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import field

from glow_mlir.errors import OUT_OF_CAPACITY, ExecutionError, GlowError
from glow_mlir.runtime.assumptions import Assumptions
from glow_mlir.runtime.executable import Executable
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Dimension

FIRST = 64
"""The initial capacity of a loop, in iterations."""
GROWTH = 4
"""The factor by which a capacity grows."""
MAXIMUM = 1 << 24
"""The largest capacity, because a loop may never end."""

MAX_KEPT = 1024
"""The number of assumptions whose capacities are kept."""

Trips = dict[str, int]
"""Label of a loop → its capacity in trips."""


@dataclass
class _Known:
    """What is known of the loops under some assumptions."""

    trips: Trips
    first_bytes: int | None = None
    """The bytes of an executable with the initial capacities, if there was one."""
    accepted: Trips = field(default_factory=dict[str, int])
    """The capacities of the executable that serves calls."""
    refused: list[tuple[Trips, str]] = field(default_factory=list[tuple[Trips, str]])
    """Capacities that need too much memory, and the reason."""


class LoopCapacities:
    """
    The capacity of each unbounded loop in iterations, by label, for each combination of sizes and values.

    A call that needs more iterations of a loop increases the capacity of that loop only. Capacities above the initial
    ones may use `maximum_bytes` of activations and outputs. New sizes start with the capacities accepted last, or with
    the initial ones if those need too much. Methods are called under the lock of the session.
    """

    def __init__(self, maximum_bytes: int) -> None:
        self._maximum_bytes = maximum_bytes
        self._begin: Trips = {}
        self._known: OrderedDict[Assumptions, _Known] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._begin)

    def __contains__(self, label: str) -> bool:
        return label in self._begin

    def add(self, labels: Iterable[str]) -> None:
        """Give further loops their initial capacity."""
        self._begin = {**self._begin, **dict.fromkeys(labels, FIRST)}
        self._known.clear()

    def with_capacities(self, others: Assumptions) -> Assumptions:
        """The assumptions for sizes and values, with the capacities of all loops added as dimensions."""
        if not self._begin:
            return others
        sizes: Iterable[tuple[str, Dimension]] = [(label, (1, most)) for label, most in self._of(others).trips.items()]
        return Assumptions((*others.sizes, *sizes), others.values)

    def without(self, wanted: Assumptions) -> Assumptions:
        """The assumptions without capacities."""
        return Assumptions(tuple(size for size in wanted.sizes if size[0] not in self._begin), wanted.values)

    def hold(self, wanted: Assumptions) -> bool:
        """Whether assumptions contain the present capacities."""
        return not self._begin or wanted == self.with_capacities(self.without(wanted))

    def _of(self, others: Assumptions) -> _Known:
        """The record for assumptions without capacities."""
        if (found := self._known.get(others)) is None:
            found = self._known[others] = _Known(dict(self._begin))
            if len(self._known) > MAX_KEPT:
                self._known.popitem(last=False)
        return found

    def failed_loop(self, error: GlowError) -> str | None:
        """The label of the loop whose capacity an error reports, if that may grow."""
        found = re.fullmatch(rf"{re.escape(OUT_OF_CAPACITY)} '(.*)'", error.reason, re.DOTALL)
        return found[1] if found and found[1] in self._begin else None

    def grow(self, label: str, error: GlowError, wanted: Assumptions) -> None:
        """
        Increase the capacity of the loop that made a call fail, unless another call already did.

        `wanted` are the assumptions of the code that failed. Raises `ExecutionError` if the capacity cannot grow.
        """
        known = self._of(self.without(wanted))
        trips = known.trips[label]
        if (label, (1, trips)) not in wanted.sizes:
            return
        grown = {**known.trips, label: trips * GROWTH}
        reason = next((reason for refused, reason in known.refused if _reaches(grown, refused)), "")
        if trips * GROWTH > MAXIMUM:
            reason = f"the largest capacity is {MAXIMUM}"
        if reason:
            reason, hint = (
                f"{error.reason}: {trips} trips; {reason}",
                f"it may never end; {error.hint}, limits= raises limits",
            )
            raise ExecutionError(reason, file=error.file, node=error.node, hint=hint)
        known.trips = grown

    def accept(self, wanted: Assumptions, executable: Executable) -> bool:
        """Whether an executable may serve calls; otherwise its capacities are refused, and replaced by smaller ones."""
        if not self.hold(wanted) or not self._begin:
            return True  # Another call increased a capacity meanwhile.
        known = self._of(self.without(wanted))
        outputs = sum(binding.nbytes for binding in executable.entry().bindings if binding.role == "output")
        taken = executable.activation_bytes + outputs
        if _is_first(known.trips):
            known.first_bytes = taken
        elif known.first_bytes is None:
            if taken > self._maximum_bytes:
                known.trips, known.accepted = (
                    dict.fromkeys(known.trips, FIRST),
                    {},
                )  # The baseline.
                return False
        elif (taken := taken - known.first_bytes) > self._maximum_bytes:
            self._refuse(known, f"memory for more takes {taken} bytes, more than {self._maximum_bytes}")
            return False
        known.accepted = self._begin = dict(known.trips)
        return True

    def shrink(self, wanted: Assumptions, error: GlowError) -> bool:
        """Refuse the capacities of a compilation or call that ran out of memory; false if they are the initial ones."""
        if not self._begin:
            return False
        known = self._of(self.without(wanted))
        if not self.hold(wanted):
            return True  # Another call changed them meanwhile.
        if _is_first(known.trips):
            return False
        self._refuse(known, error.reason)
        return True

    def _refuse(self, known: _Known, reason: str) -> None:
        """Return to the capacities accepted before."""
        known.refused.append((known.trips, reason))
        first = dict.fromkeys(known.trips, FIRST)
        known.trips = first if known.accepted in ({}, known.trips) else dict(known.accepted)
        self._begin = dict.fromkeys(self._begin, FIRST)


def _is_first(trips: Trips) -> bool:
    """Whether no capacity has grown."""
    return max(trips.values()) == FIRST


def _reaches(trips: Mapping[str, int], refused: Mapping[str, int]) -> bool:
    """Whether capacities are at least the refused ones."""
    return all(trips[label] >= most for label, most in refused.items())
