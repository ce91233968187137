"""The placement problem: nodes with different times on devices, and values transferred between devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from math import inf

from glow_mlir.support.dataclass import dataclass

HOST = -1
"""The source of inputs and destination of outputs, in place of a device or of a node."""

Assignment = tuple[int, ...]
"""The device number of each node, in order."""


@dataclass(frozen=True)
class Value:
    """A value of a node or of `HOST`: its readers, `HOST` among them for an output, and its bytes."""

    producer: int
    readers: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True)
class Problem:
    """
    Nodes in an executable order, their costs on each device, and the values between them.

    `seconds` has the time of each node on each device; infinity if the device does not execute it. A transfer between
    devices, or to or from `HOST`, takes `transfer_seconds(source, target, bytes)`.
    """

    seconds: tuple[tuple[float, ...], ...]
    values: tuple[Value, ...]
    transfer_seconds: Callable[[int, int, int], float]
    constants: tuple[tuple[tuple[str, int], ...], ...] = ()
    """For each node, name and bytes of the constants that it reads."""
    memory: tuple[int, ...] = ()
    """For each device, the maximum bytes of constants and values; 0 for no limit."""
    together: tuple[tuple[int, int], ...] = field(default=())
    """Pairs of nodes that must share a device, such as those that read and write the same state."""

    @property
    def devices(self) -> range:
        """The numbers of the devices."""
        return range(len(self.seconds[0]) if self.seconds else 0)

    def latency(self, assignment: Sequence[int]) -> float:
        """Seconds of one sequential inference; infinity if it is impossible."""
        if any(assignment[left] != assignment[right] for left, right in self.together):
            return inf
        computed = sum(times[device] for times, device in zip(self.seconds, assignment, strict=True))
        return computed + sum(self.moving_seconds(value, assignment) for value in self.values)

    def moving_seconds(self, value: Value, assignment: Sequence[int]) -> float:
        """Seconds of the transfers of a value: one per other device that reads it."""
        source = assigned_device(value.producer, assignment)
        targets = {assigned_device(reader, assignment) for reader in value.readers} - {source}
        return sum(self.transfer_seconds(source, target, value.nbytes) for target in targets)

    def bytes_on(self, assignment: Sequence[int], device: int) -> int:
        """Bytes of the constants on a device, each once, plus its peak of live values."""
        constants: dict[str, int] = {}
        for own, on in zip(self.constants, assignment, strict=False):
            if on == device:
                constants.update(own)
        return sum(constants.values()) + self._peak(assignment, device)

    def _peak(self, assignment: Sequence[int], device: int) -> int:
        """The peak bytes of values live on a device when nodes run in order."""
        changes: dict[int, int] = {}
        for value in self.values:
            here = [node for node in (value.producer, *value.readers) if assigned_device(node, assignment) == device]
            if here:
                changes[min(here)] = changes.get(min(here), 0) + value.nbytes
                changes[max(here) + 1] = changes.get(max(here) + 1, 0) - value.nbytes
        most = live = 0
        for position in sorted(changes):
            live += changes[position]
            most = max(most, live)
        return most

    def fits(self, assignment: Sequence[int]) -> bool:
        """Whether the assignment respects the memory of each device."""
        limits = enumerate(self.memory)
        return all(not most or self.bytes_on(assignment, device) <= most for device, most in limits)


def assigned_device(node: int, assignment: Sequence[int]) -> int:
    """The device of a node, or `HOST`."""
    return HOST if node == HOST else assignment[node]


def grouped(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Partition the numbers up to `count` into groups that keep pairs together, ordered by first member."""
    group = list(range(count))

    def root(node: int) -> int:
        while group[node] != node:
            group[node] = group[group[node]]
            node = group[node]
        return node

    for left, right in pairs:
        low, high = sorted((root(left), root(right)))
        group[high] = low
    found: dict[int, list[int]] = {}
    for node in range(count):
        found.setdefault(root(node), []).append(node)
    return list(found.values())
