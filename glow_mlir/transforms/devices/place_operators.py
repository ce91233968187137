"""`place-operators`: assign each operator to a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.device import DEVICE, DeviceSpec, devices_of
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, SaveOp
from glow_mlir.errors import ModelError, OptionError, UnsupportedOperatorsError
from glow_mlir.ir import statistics
from glow_mlir.ir.locations import described, location_name, location_names, source_location
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.options.placement import PREFERRED, STRATEGIES
from glow_mlir.partitioning.latency import least_latency, preferring
from glow_mlir.partitioning.operators import Nodes, Profile, pinned, problem_of, refusals_of, seconds_of
from glow_mlir.partitioning.placement_file import read_placement, read_profile
from glow_mlir.partitioning.problem import Assignment, Problem
from glow_mlir.partitioning.stages import balanced_stages
from glow_mlir.partitioning.support import Support
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class PlaceOperatorsPass(ModulePass):
    """
    Assign each operator to a device that executes it.

    With the `strategy` *preferred*, an operator goes to the first device that executes it, unless transfers cost more
    than that gains; *latency* minimizes the time of one inference; *pipeline* gives each device a stage of the model
    and minimizes the time of the slowest. Every strategy respects the memory of devices. `assignments` is a file with
    the devices of some nodes, `profile` a file with measured seconds of nodes; both are JSON (docs/devices.md). Devices
    that operators declare take precedence.

    Raises `UnsupportedOperatorsError` for operators that no device executes, `ModelError` if memory does not suffice,
    and `OptionError`.
    """

    name = "place-operators"

    strategy: str = PREFERRED
    assignments: str = ""
    profile: str = ""

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise OptionError(f"there is no strategy '{self.strategy}'", hint=f"there are {', '.join(STRATEGIES)}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        devices, storage = devices_of(op), Storage(op)
        if not devices:
            raise OptionError("the module says no devices", hint="run the pass 'assign-devices' first")
        wanted_devices = read_placement(self.assignments, devices)
        profile: Profile = read_profile(Path(self.profile)) if self.profile else {}
        support, state = Support(storage), dict[str, str]()
        for function in high_functions(op):
            nodes = Nodes(function, storage)
            _pin(nodes, wanted_devices)
            for node, device in zip(nodes.ops, self._placed(nodes, devices, support, profile, state), strict=True):
                node.attributes[DEVICE] = StringAttr(device.name)
                statistics.count(f"operators on {device.name}")
                if isinstance(node, GetOp | SaveOp) and nodes.is_state(node):
                    state[node.storage_name] = device.name
        known = {name for node in op.walk() for name in location_names(node.location)}
        if unknown := sorted(set(wanted_devices) - known):
            raise OptionError(f"the model has no node '{unknown[0]}'", hint=f"{self.assignments} names it")

    def _placed(
        self,
        nodes: Nodes,
        devices: Sequence[DeviceSpec],
        support: Support,
        profile: Profile,
        state: Mapping[str, str],
    ) -> list[DeviceSpec]:
        """Assign a device to each node of a function."""
        refusals = refusals_of(nodes, devices, support)
        _check_supported(nodes, devices, refusals)
        _check_state(nodes, state)
        seconds = seconds_of(nodes, devices, refusals, profile, state)
        problem = problem_of(nodes, devices, seconds)
        found = self._assignment(problem)
        if found is None:
            raise _no_place(nodes.function, devices, problem, self.strategy)
        return [devices[number] for number in found]

    def _assignment(self, problem: Problem) -> Assignment | None:
        if not problem.seconds:
            return ()
        if self.strategy == "pipeline":
            found = balanced_stages(problem)
            return None if found is None else found[0]
        return least_latency(preferring(problem) if self.strategy == "preferred" else problem)


def _pin(nodes: Nodes, wanted_devices: Mapping[str, str]) -> None:
    """Assign the nodes in the file to their devices; for an operator made of several nodes, the last match counts."""
    for node in nodes.ops:
        found = [wanted_devices[name] for name in location_names(node.location) if name in wanted_devices]
        if found and pinned(node) is None:
            node.attributes[DEVICE] = StringAttr(found[-1])


def _check_supported(nodes: Nodes, devices: Sequence[DeviceSpec], refusals: Sequence[Sequence[str]]) -> None:
    """Raise one error that lists the operators that no device, or not their assigned device, executes."""
    refused = [op for op, reasons in zip(nodes.ops, refusals, strict=True) if all(reasons)]
    if refused:
        listed = [(f"{op.name} : {', '.join(map(str, op.result_types))}", described(op)) for op in refused]
        by = f"any of the devices {', '.join(device.name for device in devices)}"
        raise UnsupportedOperatorsError(
            listed, file=source_location(refused[0]), by=by, hint="add a device that executes it"
        )
    names = [device.name for device in devices]
    for op, reasons in zip(nodes.ops, refusals, strict=True):
        where = pinned(op)
        if where is not None and where not in names:
            raise OptionError(f"there is no device {where}", hint=f"there are {', '.join(names)}")
        if where is not None and (reason := reasons[names.index(where)]):
            raise ModelError(
                f"{op.name} is said to be on {where}, which refuses it: {reason}",
                file=source_location(op),
                node=location_name(op.location),
            )


def _check_state(nodes: Nodes, state: Mapping[str, str]) -> None:
    """Raise `ModelError` if an operator is assigned to another device than the state it accesses."""
    for op in nodes.ops:
        if isinstance(op, GetOp | SaveOp) and nodes.is_state(op):
            home, where = state.get(op.storage_name), pinned(op)
            if None not in (home, where) and home != where:
                raise ModelError(
                    f"{op.name} is said to be on {where}, and state @{op.storage_name} is on {home}",
                    file=source_location(op),
                    node=location_name(op.location),
                )


def _no_place(function: FuncOp, devices: Sequence[DeviceSpec], problem: Problem, strategy: str) -> ModelError:
    """The error for a function that does not fit the devices, or whose assignments contradict the order of stages."""
    name = function.sym_name.data
    if not any(problem.memory):
        if strategy != "pipeline":
            return ModelError(
                f"@{name} has operators on several devices that share state", file=source_location(function)
            )
        reason = f"@{name} is no pipeline of stages on {', '.join(device.name for device in devices)}, in this order"
        return ModelError(
            reason, file=source_location(function), hint="another order, fewer pinned operators, partition=…"
        )
    constants = {name: size for own in problem.constants for name, size in own}
    limits = ", ".join(f"{device.name} {device.memory_bytes:,}" for device in devices if device.memory_bytes)
    reason = f"@{name} does not fit onto the devices: its constants take {sum(constants.values()):,} bytes"
    return ModelError(
        reason, file=source_location(function), hint=f"memory: {limits}" if limits else "pin fewer operators"
    )
