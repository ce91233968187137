"""`expand-layers`: add the instructions of the layers that `collapse-layers` erased, as copies of a kept layer's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, FusedLoc, LocationAttr, ModuleOp, NameLoc, StringAttr
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.deferred import Deferred
from glow_mlir.constants.layer_weights import leaves, of_later_layer, resolved
from glow_mlir.constants.storage import Storage, deferred_constant
from glow_mlir.dialects.collapsed_layers import CollapsedLayers, collapsed_layers, keep_collapsed
from glow_mlir.dialects.glow_high.storage import ConstantOp
from glow_mlir.dialects.glow_low.memory import FuncOp, WeightOp
from glow_mlir.errors import LayersDifferError
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.rewriting.repetition import OperationSequence, Repetition, form_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.xdsl_patches.operations import cloned_operation


@dataclass(frozen=True)
class ExpandLayersPass(ModulePass):
    """
    Copy the instructions of a kept layer for each layer that `collapse-layers` erased, with the weights of that layer.

    A layer's instructions are those between which the function repeats itself, so that what is fused across layers
    stays fused. Raises `LayersDifferError` for a function that does not repeat itself: its kept layers have different
    instructions.
    """

    name = "expand-layers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        runs = collapsed_layers(op)
        if not runs:
            return
        storage = Storage(op)
        for run in runs:
            for function in low_functions(op):
                _Expansion(function, storage, run).run()
        keep_collapsed(op, ())


@dataclass
class _Expansion:
    """The expansion of one run of layers in a function."""

    function: FuncOp
    storage: Storage
    layers: CollapsedLayers
    weights: dict[str, WeightOp] = field(default_factory=dict[str, WeightOp])
    """Name of storage → its declaration."""

    def run(self) -> None:
        """Insert the copies, and give each layer its own weights."""
        block = self.function.block
        self.weights = {op.storage_name: op for op in own_operations(block) if isinstance(op, WeightOp)}
        sequence = OperationSequence(
            [op for op in own_operations(block) if not isinstance(op, WeightOp)], form_of, self._is_next_layer
        )
        found = sequence.longest(2, lambda run: self._covers(sequence, run))
        if found is None:
            raise LayersDifferError(f"the layers of @{self.function.sym_name.data} have different instructions")
        for name in self._arrays:  # Their names are free for the weights that they stand for.
            self.storage.by_name.pop(name).detach()
        self._insert(sequence, found)
        for name in self._arrays:  # No others of that name were added.
            if name not in self.storage.by_name:
                self.weights[name].detach()
                self.weights[name].erase()

    # ---- storage of layers -------------------------------------------------------------------------------------

    @cached_property
    def _arrays(self) -> dict[str, Deferred]:
        """Name → the array of each constant that differs between the layers of this run."""
        found: dict[str, Deferred] = {}
        for name in self.weights:
            op = self.storage.by_name[name]
            if not isinstance(op, ConstantOp) or not (array := deferred_constant(op)).is_per_layer:
                continue
            runs = {weights.table.run for weights in leaves(array)}
            if self.layers.name in runs:
                if len(runs) > 1:
                    raise LayersDifferError(f"'{name}' is of layers of several forms")
                found[name] = array
        return found

    @cached_property
    def _next(self) -> dict[str, str]:
        """Name → digest of the array that the next layer has in place of a constant."""
        return {name: of_later_layer(array, 1).digest for name, array in self._arrays.items()}

    @cached_property
    def _columns(self) -> dict[str, tuple[tuple[str, ...], int]]:
        """Name → the names of a placeholder in all layers, and the number of its own."""
        return {name: (row, layer) for row in self.layers.placeholders for layer, name in enumerate(row)}

    def _is_next_layer(self, one: SSAValue, other: SSAValue) -> bool:
        """Whether a buffer is the same in all layers, or the next layer has `other` in its place."""
        left, right = one.owner, other.owner
        if not isinstance(left, WeightOp) or not isinstance(right, WeightOp) or one.type != other.type:
            return False
        name, following = left.storage_name, right.storage_name
        if name in self._arrays:
            return following in self._arrays and self._next[name] == self._arrays[following].digest
        if name in self._columns:
            row, layer = self._columns[name]
            return layer + 1 < len(row) and row[layer + 1] == following
        return name == following

    def _of_layer(self, value: SSAValue, count: int) -> SSAValue:
        """The buffer that the layer `count` layers later has in place of this one."""
        name = value.owner.storage_name if isinstance(value.owner, WeightOp) else ""
        if name in self._columns:
            row, layer = self._columns[name]
            return self._declared(row[layer + count], value)
        if name not in self._arrays:
            return value
        array = self._arrays[name]
        source = next(leaves(array))
        before, after = source.table.names[source.layer], source.table.names[source.layer + count]
        wish = after + name.removeprefix(before) if name.startswith(before) else name
        constant = self.storage.add_constant(wish, resolved(array, count), cast("WeightOp", value.owner).location)
        return self._declared(constant.sym_name.data, value)

    def _declared(self, name: str, like: SSAValue) -> SSAValue:
        """The declaration of storage, made behind that of the storage it is like."""
        if name not in self.weights:
            old = cast("WeightOp", like.owner)
            new = self.weights[name] = WeightOp.of(self.storage.by_name[name], old.location)
            new.result.name_hint = old.result.name_hint
            block = self.function.block
            block.insert_op_after(new, old)
        return self.weights[name].result

    # ---- instructions ------------------------------------------------------------------------------------------

    def _covers(self, sequence: OperationSequence, run: Repetition) -> bool:
        """
        Whether a part has all storage in which layers differ, its results are used up in the next one, and what is in
        front of the parts or behind them is of the first and the last layers.
        """
        if any(sequence.last_use(position) >= run.part(1).stop for position in run.part(0)):
            return False
        wanted = {id(weights.table) for array in self._arrays.values() for weights in leaves(array)}
        first: dict[object, list[int]] = {}
        """Row of storage → the layers whose storage the first part has."""
        for position in run.part(0):
            for row, layer in self._rows_of(sequence.ops[position]):
                first.setdefault(row, []).append(layer)
        if not wanted or first.keys() != wanted | set(self.layers.placeholders):
            return False
        # Other instructions of all layers would not be copied.
        before = [pair for op in sequence.ops[: run.begin] for pair in self._rows_of(op)]
        behind = [pair for op in sequence.ops[run.end :] for pair in self._rows_of(op)]
        return all(layer < max(first[row]) for row, layer in before) and all(
            layer >= min(first[row]) + run.count for row, layer in behind
        )

    def _rows_of(self, op: Operation) -> Iterator[tuple[object, int]]:
        """The rows of storage in which layers differ of which an instruction uses some, and the layers."""
        for inner in op.walk():
            for value in inner.operands:
                name = value.owner.storage_name if isinstance(value.owner, WeightOp) else ""
                if name in self._arrays:
                    yield from ((id(weights.table), weights.layer) for weights in leaves(self._arrays[name]))
                elif name in self._columns:
                    yield self._columns[name]

    def _insert(self, sequence: OperationSequence, run: Repetition) -> None:
        """Insert copies of the second part behind it, and give all instructions the storage of their layers."""
        extended = [sequence.ops[position] for number in (0, 1) for position in run.part(number)]
        begin, end, period, count = run.begin, run.part(1).stop, run.period, self.layers.omitted
        last, block = extended[-1], self.function.block
        statistics.count("layers copied", count)
        for number in range(1, count + 1):
            nodes = self._nodes(number)
            for position in run.part(1):
                op = sequence.ops[position]
                values = dict(self._operands(sequence, position, run, extended, number))
                copy = cloned_operation(op, values)
                nodes.rename(copy)
                block.insert_op_after(copy, last)
                extended.append(copy)
                last = copy
        nodes = self._nodes(count)
        for op in sequence.ops[end:]:
            for inner in op.walk():
                self._move_on(inner, sequence, extended, begin, end, count * period, count)
            nodes.rename(op)
        for op in sequence.ops[:end]:
            for inner in op.walk():
                for number, value in enumerate(inner.operands):
                    if isinstance(value.owner, WeightOp):
                        inner.operands[number] = self._of_layer(value, 0)

    def _operands(
        self, sequence: OperationSequence, position: int, run: Repetition, extended: Sequence[Operation], number: int
    ) -> Iterator[tuple[SSAValue, SSAValue]]:
        """The operands of an operation → those of its copy number `number`."""
        earlier = sequence.ops[position - run.period]
        for value, before in zip(sequence.ops[position].operands, earlier.operands, strict=True):
            at = sequence.position_of(value)
            if isinstance(value.owner, WeightOp):
                yield value, value if value is before else self._of_layer(value, number)
            elif at is None or value is before:
                yield value, value
            elif at < run.begin:
                raise LayersDifferError("an instruction reads results of a layer far before it")
            else:
                yield value, extended[at - run.begin + number * run.period].results[_index(value)]

    def _move_on(
        self,
        op: Operation,
        sequence: OperationSequence,
        extended: Sequence[Operation],
        begin: int,
        end: int,
        distance: int,
        count: int,
    ) -> None:
        """Let an operation behind the copies read the last ones."""
        for number, value in enumerate(op.operands):
            at = sequence.position_of(value)
            if isinstance(value.owner, WeightOp):
                op.operands[number] = self._of_layer(value, count)
            elif at is not None and begin <= at < end:
                op.operands[number] = extended[at - begin + distance].results[_index(value)]

    def _nodes(self, count: int) -> _Nodes:
        """The nodes `count` layers later than those of the kept layers."""
        rows = self.layers.nodes
        return _Nodes({name: row[layer + count] for row in rows for layer, name in enumerate(row[: len(row) - count])})


def _index(value: SSAValue) -> int:
    """The number of a result."""
    assert isinstance(value, OpResult)
    return value.index


@dataclass
class _Nodes:
    """The names of nodes of another layer, and the locations that have them; many operations share a location."""

    names: Mapping[str, str]
    """Name of a node of a kept layer → that of the other layer."""
    renamed: dict[LocationAttr, LocationAttr] = field(default_factory=dict["LocationAttr", "LocationAttr"])

    def rename(self, op: Operation) -> None:
        """Give an operation, and those in its regions, the location in the other layer."""
        for inner in op.walk() if op.regions else (op,):
            location = inner.location
            found = self.renamed.get(location)
            if found is None:
                found = self.renamed[location] = self._of(location)
            inner.location = found

    def _of(self, location: LocationAttr) -> LocationAttr:
        """A location in the other layer."""
        if isinstance(location, NameLoc):
            name = self.names.get(location.desc.data)
            return location if name is None else NameLoc(StringAttr(name), location.location)
        if isinstance(location, FusedLoc):
            parts = cast("ArrayAttr[LocationAttr]", location.locations)
            return FusedLoc(ArrayAttr(self._of(part) for part in parts.data), location.metadata)
        return location
