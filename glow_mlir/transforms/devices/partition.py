"""`partition`: split a function into one function per device, and a graph of calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.device import DeviceSpec, devices_of
from glow_mlir.dialects.glow_high.call import CallOp, read_by, written_by
from glow_mlir.dialects.glow_high.sizes import BindSymbolOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.errors import ModelError, OptionError, UnsupportedError
from glow_mlir.ir import statistics
from glow_mlir.ir.entries import entries_of, symbols_in
from glow_mlir.ir.locations import described, location_name, source_location
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import operations, own_operations, own_operations_backward
from glow_mlir.partitioning.extraction import extracted
from glow_mlir.partitioning.operators import Nodes, pinned
from glow_mlir.partitioning.problem import HOST
from glow_mlir.support.dataclass import dataclass

Group = tuple[int, str]
"""Maximum number of device changes that lead to a partition, and its device: values never return to a partition."""


@dataclass(frozen=True)
class PartitionPass(ModulePass):
    """
    Split each function into one function per device, or several if values go to another device and come back, and let
    the function call them (paper §6, the partitioner's graph of sub-functions, which has no cycles).

    Values between partitions are storage. Raises `ModelError` for an operator without a device, and `UnsupportedError`
    for sizes that are known only at run time.
    """

    name = "partition"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        devices = {device.name: device for device in devices_of(op)}
        if not devices:
            raise OptionError("the module says no devices", hint="run the pass 'assign-devices' first")
        entries, storage = entries_of(op), Storage(op)
        for function in high_functions(op):
            if function in entries and not any(isinstance(item, CallOp) for item in own_operations(function)):
                _check_sizes(function)
                _Partitioning(op, function, storage, devices).run()


def _check_sizes(function: FuncOp) -> None:
    """Raise `UnsupportedError` for a size that is not a number."""
    binding = next((item for item in operations(function) if isinstance(item, BindSymbolOp)), None)
    if binding is not None or symbols_in(function):
        raise UnsupportedError(
            f"@{function.sym_name.data} has sizes that are known at run time only, and partitions take numbers",
            file=source_location(function if binding is None else binding),
            hint="a session compiles for the sizes of its calls; --bind says them beforehand"
            if binding is None
            else "without devices=… the model runs",
        )


def _sources(nodes: Nodes) -> list[list[int]]:
    """For each node, the nodes it depends on."""
    before: list[list[int]] = [[] for _ in nodes.ops]
    for value in nodes.values():
        for reader in value.readers:
            if HOST not in (value.producer, reader):
                before[reader].append(value.producer)
    for earlier, later in nodes.together():
        before[later].append(earlier)
    return before


def merged(groups: Sequence[Group], before: Sequence[Sequence[int]], busy: Collection[Group]) -> list[Group]:
    """
    Merge each group with the next group of its device, unless a group between them depends on one of them.

    Groups in `busy` are not merged with a group that would make them wait for others.
    """
    names = dict(zip(groups, groups, strict=True))
    for group in sorted(names, key=lambda item: -item[0]):
        later = sorted({other for other in names.values() if other[1] == group[1] and other[0] > group[0]})
        if later:
            waits = _waits([names[item] for item in groups], before)
            own, others = _all_waits(waits, group), _all_waits(waits, later[0])
            is_held_up = group in busy and not others <= own | {group}
            is_circle = any(group in waits[other] for other in others) or later[0] in own
            if not is_held_up and not is_circle:
                names = {item: later[0] if name == group else name for item, name in names.items()}
    return [names[group] for group in groups]


def _waits(groups: Sequence[Group], before: Sequence[Sequence[int]]) -> dict[Group, set[Group]]:
    """For each group, the groups it directly depends on."""
    waits: dict[Group, set[Group]] = {}
    for group, sources in zip(groups, before, strict=True):
        waits.setdefault(group, set()).update(groups[source] for source in sources if groups[source] != group)
    return waits


def _all_waits(waits: Mapping[Group, set[Group]], group: Group) -> set[Group]:
    """All groups that `group` depends on, directly or not."""
    pending, found = list(waits[group]), set[Group]()
    while pending:
        other = pending.pop()
        if other not in found:
            found.add(other)
            pending += waits[other]
    return found


def in_order(groups: Sequence[Group], before: Sequence[Sequence[int]]) -> list[Group]:
    """Each group once, in topological order."""
    waits = _waits(groups, before)
    found: dict[Group, None] = {}
    while len(found) < len(waits):
        ready = [group for group in waits if group not in found and waits[group] <= found.keys()]
        found.update(dict.fromkeys(sorted(ready)))
    return list(found)


@dataclass
class _Partitioning:
    """The partitioning of one function."""

    module: ModuleOp
    function: FuncOp
    storage: Storage
    devices: dict[str, DeviceSpec]
    outputs: dict[SSAValue, list[str]] = field(default_factory=dict[SSAValue, "list[str]"])
    """Value → the outputs that save it."""
    known_as: dict[str, str] = field(default_factory=dict[str, str])
    """Output → the storage between partitions with the same value."""

    def run(self) -> None:
        """Replace the body of the function by calls."""
        nodes = Nodes(self.function, self.storage)
        before = _sources(nodes)
        groups = self._groups(nodes, before)
        busy = {group for op, group in zip(nodes.ops, groups, strict=True) if not isinstance(op, GetOp | SaveOp)}
        groups = merged(groups, before, busy)
        self._collect_outputs(nodes)
        given, saved = self._between(nodes, groups)
        parts: dict[Group, list[Operation]] = {}
        for op, group in zip(nodes.ops, groups, strict=True):
            parts.setdefault(group, []).append(op)
        made = [
            self._part(number, parts[group], group, given, saved)
            for number, group in enumerate(in_order(groups, before))
        ]
        statistics.count("partitions", len(made))
        self._call(made)

    def _groups(self, nodes: Nodes, before: Sequence[Sequence[int]]) -> list[Group]:
        """The partition of each node: the earliest possible."""
        found: list[Group] = []
        for op, sources in zip(nodes.ops, before, strict=True):
            device = pinned(op)
            if device not in self.devices:
                what = f"{op.name} ('{described(op)}') is on no device of the module"
                hint = "run the pass 'place-operators' first"
                raise ModelError(what, file=source_location(op), node=location_name(op.location), hint=hint)
            levels = [found[source][0] + (found[source][1] != device) for source in sources]
            found.append((max(levels, default=0), device))
        return found

    def _collect_outputs(self, nodes: Nodes) -> None:
        for op in own_operations(self.function):
            if isinstance(op, SaveOp) and op not in nodes.numbers:
                self.outputs.setdefault(op.input, []).append(op.storage_name)

    def _between(self, nodes: Nodes, groups: Sequence[Group]) -> tuple[dict[SSAValue, str], dict[SSAValue, list[str]]]:
        """The storage between partitions, by value, and the outputs that save a value."""
        given: dict[SSAValue, str] = {}
        saved = {value: list(names) for value, names in self.outputs.items()}
        for value in nodes.crossing(groups):
            type_ = value.type
            assert isa(type_, TensorType[Attribute])
            owner = value.owner
            assert isinstance(owner, Operation)
            name = self.storage.unique_name(f"{self.function.sym_name.data}.{value.name_hint or 'value'}")
            self.storage.add(PlaceholderOp.bound(name, type_, "between", owner.location))
            given[value] = name
            # If the value is also an output, it is returned once, to the caller, who saves it.
            if outputs := saved.get(value):
                self.known_as[outputs.pop(0)] = name
            saved.setdefault(value, []).append(name)
        return given, saved

    def _part(
        self,
        number: int,
        ops: Sequence[Operation],
        group: Group,
        given: dict[SSAValue, str],
        saved: dict[SSAValue, list[str]],
    ) -> FuncOp:
        """Insert the function of one partition into the module."""
        device = self.devices[group[1]]
        own = {result for op in ops for result in op.results}
        name = self.storage.unique_function(f"{self.function.sym_name.data}_part_{number}")
        foreign = {value: symbol for value, symbol in given.items() if value not in own}
        here = {value: names for value, names in saved.items() if value in own}
        made = extracted(name, ops, self.storage, foreign, here, device.target)
        made.device = StringAttr(device.name)
        self.module.body.block.insert_op_before(made, self.function)
        return made

    def _call(self, made: Sequence[FuncOp]) -> None:
        """Replace the body of the function by calls of its partitions."""
        block = self.function.block
        for op in own_operations_backward(block):
            block.erase_op(op, safe_erase=False)
        known: dict[str, SSAValue] = {}
        for part in made:
            for name in read_by(part):
                if name not in known:
                    read = GetOp.of(self.storage.by_name[name], part.location)
                    read.result.name_hint = _hint(name)
                    block.add_op(read)
                    known[name] = read.result
            call = CallOp.of(part, [known[name] for name in read_by(part)], part.location)
            block.add_op(call)
            for name, value in zip(written_by(part), call.values, strict=True):
                value.name_hint = _hint(name.removeprefix(f"{self.function.sym_name.data}."))
                known[name] = value
        for name in self.function.binding_names:
            bound = self.storage.by_name[name]
            if isinstance(bound, PlaceholderOp) and bound.role == "output":
                block.add_op(SaveOp.to(known[self.known_as.get(name, name)], name, bound.location))


def _hint(name: str) -> str | None:
    """The name hint for the content of storage, if its name is valid."""
    return name if SSAValue.is_valid_name(name) else None
