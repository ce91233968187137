"""The placement problem of a function: operators as nodes, with their costs on the devices of the module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import inf

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from glow_mlir.analysis.cost import operator_work
from glow_mlir.backends.interface import costs_of, get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.device import DEVICE, DeviceSpec
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import ConstantOp, FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import bytes_of
from glow_mlir.dialects.target import Target
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.traversal import own_operations, subtree
from glow_mlir.partitioning.extraction import is_free, values_read
from glow_mlir.partitioning.problem import HOST, Problem, Value
from glow_mlir.partitioning.support import Support
from glow_mlir.support.dataclass import dataclass

SECONDS_PER_ADDITION = 1.4e-11
"""Seconds of one addition of the cost model: about 24 per cycle at 3 GHz."""

Profile = Mapping[str, Mapping[str, float]]
"""Device, or backend → name of a node → measured seconds."""


def cost(op: Operation, target: Target) -> float:
    """Seconds of an operator, nested regions included, on a machine: the backend's estimate, or the cost model's."""
    backend = get_backend(target.backend)
    total = 0.0
    for item in subtree(op):
        known = backend.cost(item, target) if isinstance(item, HighOp) else 0.0
        total += operator_work(item, costs_of(target)) * SECONDS_PER_ADDITION if known is None else known
    return total


@dataclass
class Nodes:
    """The operations of a function to place, in order, reads and saves of state included."""

    function: FuncOp
    storage: Storage
    ops: list[Operation] = field(default_factory=list[Operation])

    def __post_init__(self) -> None:
        self.ops = [op for op in own_operations(self.function) if self._is_placed(op)]

    def _is_placed(self, op: Operation) -> bool:
        if isinstance(op, SaveOp):
            return self.is_state(op) or is_free_value(op.input)
        return not is_free(op) and isinstance(op, HighOp | ControlFlowOp | GetOp)

    def is_state(self, op: Operation) -> bool:
        """Whether an operation reads or saves state."""
        used = self.storage.by_name[op.storage_name] if isinstance(op, GetOp | SaveOp) else None
        return isinstance(used, PlaceholderOp) and used.role == "state"

    @cached_property
    def numbers(self) -> dict[Operation, int]:
        """Operation → its number."""
        return {op: number for number, op in enumerate(self.ops)}

    def values(self) -> list[Value]:
        """The values that nodes or the host produce, with all readers."""
        readers: dict[SSAValue, list[int]] = {}
        given: dict[str, tuple[int, list[int]]] = {}
        for number, op in enumerate(self.ops):
            for value in values_read(op):
                if value.owner in self.numbers:
                    readers.setdefault(value, []).append(number)
                elif (name := self._input(value)) is not None:
                    given.setdefault(name, (bytes_of(value), []))[1].append(number)
        for op in own_operations(self.function):
            if isinstance(op, SaveOp) and not self.is_state(op) and op.input.owner in self.numbers:
                readers.setdefault(op.input, []).append(HOST)
        made = [
            Value(self.numbers[owner], tuple(found), bytes_of(value))
            for value, found in readers.items()
            if isinstance(owner := value.owner, Operation)
        ]
        return [*made, *(Value(HOST, tuple(found), nbytes) for nbytes, found in given.values())]

    def _input(self, value: SSAValue) -> str | None:
        """The input behind a value, if it is one."""
        owner = value.owner
        if not isinstance(owner, GetOp) or self.storage.is_constant(value):
            return None
        return owner.storage_name

    def crossing(self, groups: Sequence[object]) -> list[SSAValue]:
        """The values that one group produces and another reads, given the group of each node."""
        found: dict[SSAValue, None] = {}
        for op, group in zip(self.ops, groups, strict=True):
            for value in values_read(op):
                producer = self.numbers.get(value.owner) if isinstance(value.owner, Operation) else None
                if producer is not None and groups[producer] != group:
                    found[value] = None
        return list(found)

    def constants(self, op: Operation) -> tuple[tuple[str, int], ...]:
        """Name and bytes of the constants that an operation reads."""
        reads = (*(value.owner for value in values_read(op)), *subtree(op))
        gets = (item for item in reads if item is not op and isinstance(item, GetOp))
        return tuple(
            (item.storage_name, bytes_of(item.result))
            for item in gets
            if isinstance(self.storage.by_name[item.storage_name], ConstantOp)
        )

    def together(self) -> list[tuple[int, int]]:
        """Pairs of adjacent nodes that access the same state."""
        last: dict[str, int] = {}
        pairs: list[tuple[int, int]] = []
        for number, op in enumerate(self.ops):
            if isinstance(op, GetOp | SaveOp) and self.is_state(op):
                if op.storage_name in last:
                    pairs.append((last[op.storage_name], number))
                last[op.storage_name] = number
        return pairs


def is_free_value(value: SSAValue) -> bool:
    """Whether a value is a constant, an input or a splat."""
    return isinstance(value.owner, Operation) and is_free(value.owner)


def pinned(op: Operation) -> str | None:
    """The device that an operation is already assigned to."""
    known = op.attributes.get(DEVICE)
    return known.data if isinstance(known, StringAttr) else None


def refusals_of(nodes: Nodes, devices: Sequence[DeviceSpec], support: Support) -> list[list[str]]:
    """For each node and device, why the device does not execute it; empty if it does."""
    return [
        ["" if isinstance(op, GetOp | SaveOp) else support.refusal(op, device) for device in devices]
        for op in nodes.ops
    ]


def seconds_of(
    nodes: Nodes,
    devices: Sequence[DeviceSpec],
    refusals: Sequence[Sequence[str]],
    profile: Profile,
    state: Mapping[str, str],
) -> list[tuple[float, ...]]:
    """For each node and device, its seconds there; infinity if it is refused or assigned elsewhere."""
    measured = [
        _Measured(nodes.ops, profile.get(device.name, profile.get(device.target.backend, {}))) for device in devices
    ]
    found: list[tuple[float, ...]] = []
    for op, refused in zip(nodes.ops, refusals, strict=True):
        home = state.get(op.storage_name) if isinstance(op, GetOp | SaveOp) and nodes.is_state(op) else None
        where = pinned(op) or home
        found.append(
            tuple(
                inf if reason or where not in (None, device.name) else times.seconds(op, device.target)
                for device, reason, times in zip(devices, refused, measured, strict=True)
            )
        )
    return found


class _Measured:
    """Measured seconds of nodes, divided among the operators of each node in proportion to the model."""

    def __init__(self, ops: Iterable[Operation], times: Mapping[str, float]) -> None:
        self._ops = [op for op in ops if not isinstance(op, GetOp | SaveOp)]
        self._times = times
        self._found: dict[Target, dict[Operation, float]] = {}

    def seconds(self, op: Operation, target: Target) -> float:
        """Seconds of an operator: its share of the measurement, or the model's estimate without one."""
        if isinstance(op, GetOp | SaveOp):
            return 0.0
        if target not in self._found:
            self._found[target] = self._shared(target)
        found = self._found[target].get(op)
        return cost(op, target) if found is None else found

    def _shared(self, target: Target) -> dict[Operation, float]:
        """The seconds of operators with a measured name, alone or in a group."""
        by_name: dict[str, list[Operation]] = {}
        for op in self._ops:
            for name in location_names(op.location):
                by_name.setdefault(name, []).append(op)
        found: dict[Operation, float] = {}
        for nodes, seconds in self._times.items():
            members = {op: cost(op, target) for name in nodes.split("+") for op in by_name.get(name, ())}
            whole = sum(members.values())
            for op, modelled in members.items():
                share = modelled / whole if whole else 1 / len(members)
                found[op] = found.get(op, 0.0) + seconds * share
        return found


def transfers_between(devices: Sequence[DeviceSpec]) -> Callable[[int, int, int], float]:
    """Seconds of a transfer between devices, or to or from the host."""
    backends = [get_backend(device.target.backend) for device in devices]

    def seconds(source: int, target: int, nbytes: int) -> float:
        ends = (end for end in (source, target) if end != HOST)
        return sum(backends[end].transfer_cost(nbytes, devices[end].target) for end in ends)

    return seconds


def problem_of(nodes: Nodes, devices: Sequence[DeviceSpec], seconds: Sequence[tuple[float, ...]]) -> Problem:
    """The placement problem of the nodes of a function, given their seconds on devices."""
    return Problem(
        tuple(seconds),
        tuple(nodes.values()),
        transfers_between(devices),
        constants=tuple(nodes.constants(op) for op in nodes.ops),
        memory=tuple(device.memory_bytes for device in devices),
        together=tuple(nodes.together()),
    )
