"""`collapse-layers`: keep a few of many equal layers, so that the passes that follow meet each form of layer once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from glow_mlir.constants.layer_weights import LayerTable, LayerWeights
from glow_mlir.constants.storage import Storage, deferred_constant
from glow_mlir.constants.weights import add_weights
from glow_mlir.dialects.collapsed_layers import CollapsedLayers, collapsed_layers, keep_collapsed
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.storage import ConstantOp, FuncOp, GetOp, PlaceholderOp, SaveOp, StorageOp
from glow_mlir.dialects.shapes import size_of
from glow_mlir.ir import statistics
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.rewriting import functions, high_functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.rewriting.affine import AffineOp
from glow_mlir.rewriting.linear_operators import linear_operator
from glow_mlir.rewriting.repetition import OperationSequence, Repetition, form_of
from glow_mlir.support.dataclass import dataclass

Columns = list[tuple[str, ...]]
"""The names in one place of each layer, for each place."""


@dataclass(frozen=True)
class CollapseLayersPass(ModulePass):
    """
    Erase all but the first `kept` of at least `least` equal layers in a row.

    Layers are equal if they differ only in the constants, inputs and outputs that they alone use. The constants of the
    kept ones become `LayerWeights`, whose elements no pass can read, and the module attribute `glow.layers` says what
    was erased. `expand-layers` adds the instructions of the other layers after kernels are selected.

    Unless `arithmetic` is set, constants in which layers differ are no operands of sums, products and batch
    normalizations, biases excepted: `fold-into-weights` reads them.
    """

    name = "collapse-layers"

    kept: int = 4
    least: int = 6
    arithmetic: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if len(functions(op)) > 1:
            return  # Others may use the same constants.
        storage = Storage(op)
        found = list(collapsed_layers(op))
        for function in high_functions(op):
            while (layers := _Layers.longest_of(function, storage, self.least, self.arithmetic)) is not None:
                found.append(layers.collapse(self.kept))
        if found:
            keep_collapsed(op, found)


@dataclass
class _Layers:
    """The longest repetition of layers in a function."""

    storage: Storage
    sequence: OperationSequence
    run: Repetition
    reads: dict[str, list[GetOp]]
    """Name of storage → its reads."""
    constants: Columns = field(default_factory=Columns)
    placeholders: Columns = field(default_factory=Columns)

    @classmethod
    def longest_of(cls, function: FuncOp, storage: Storage, least: int, arithmetic: bool) -> _Layers | None:
        """The longest repetition that can be collapsed, with at least that many layers; `None` if there is none."""
        ops = list(own_operations(function))
        reads: dict[str, list[GetOp]] = {}
        for op in ops:
            if isinstance(op, GetOp):
                reads.setdefault(op.storage_name, []).append(op)
        sequence = OperationSequence(
            [op for op in ops if not isinstance(op, GetOp | SaveOp)],
            _form,
            lambda one, other: _may_differ(one, other, storage),
        )
        layers: _Layers | None = None

        def accepts(run: Repetition) -> bool:
            nonlocal layers
            layers = cls(storage, sequence, run, reads)
            return layers.is_closed() and layers.has_columns() and (arithmetic or not layers.has_arithmetic())

        found = sequence.longest(least, accepts)
        return layers if found is not None else None

    def is_closed(self) -> bool:
        """Whether what is behind the layers reads the results of as few of the last ones as there may be kept."""
        for position in range(self.run.begin, self.run.end):
            layer = (position - self.run.begin) // self.run.period
            for result in self.sequence.ops[position].results:
                for use in result.uses:
                    user = self.sequence.positions.get(use.operation)
                    if user is not None and user >= self.run.end and layer < self.run.count - 1:
                        return False
        return True

    def has_columns(self) -> bool:
        """Collect the storage in which layers differ; false if a name is in two places, or used elsewhere."""
        for ops in self._counterparts():
            for operands in zip(*(op.operands for op in ops), strict=True):
                if isinstance(operands[0].owner, GetOp):
                    self._add(tuple(value.owner.storage_name for value in operands if isinstance(value.owner, GetOp)))
            for results in zip(*(op.results for op in ops), strict=True):
                for saves in zip(*map(_saves_of, results), strict=True):
                    self._add(tuple(save.storage_name for save in saves))
        columns = [*self.constants, *self.placeholders]
        names = [name for column in columns for name in column]
        return bool(self.constants) and len(set(names)) == len(names) and all(map(self._is_own, columns))

    def has_arithmetic(self) -> bool:
        """Whether arithmetic other than with a bias has an operand in which layers differ."""
        differing = {name for column in self.constants for name in column}
        for position in self.run.part(0):
            op = self.sequence.ops[position]
            if isinstance(op, AffineOp) and not (isinstance(op, AddOp) and _adds_bias(op)):
                reads = [value.owner for value in op.operands if isinstance(value.owner, GetOp)]
                if any(read.storage_name in differing for read in reads):
                    return True
        return False

    def _add(self, names: tuple[str, ...]) -> None:
        """Add the names in one place, unless it is the same storage in all layers, or known."""
        columns = self.constants if isinstance(self.storage.by_name[names[0]], ConstantOp) else self.placeholders
        if len(set(names)) > 1 and names not in columns:
            columns.append(names)

    def _is_own(self, column: tuple[str, ...]) -> bool:
        """Whether each layer alone uses the storage that it has in a place."""
        for layer, name in enumerate(column):
            positions = self.run.part(layer)
            users = [use.operation for read in self.reads.get(name, []) for use in read.result.uses]
            if any(self.sequence.positions.get(user, -1) not in positions for user in users):
                return False
        return True

    @property
    def _name(self) -> str:
        """The name of the run."""
        return self.constants[0][0]

    def _counterparts(self) -> Iterator[tuple[Operation, ...]]:
        """The operators at one position of each layer, for each position."""
        layers = (map(self.sequence.ops.__getitem__, self.run.part(layer)) for layer in range(self.run.count))
        return zip(*layers, strict=True)

    def collapse(self, kept: int) -> CollapsedLayers:
        """Erase the layers behind the first `kept` ones."""
        omitted = self.run.count - kept
        statistics.count("layers erased", omitted)
        for column in self.constants:
            self._abstract(column, kept)
        nodes = self._nodes()
        for last, end in zip(self.run.part(self.run.count - 1), self.run.part(kept - 1), strict=True):
            for result, replacement in zip(
                self.sequence.ops[last].results, self.sequence.ops[end].results, strict=True
            ):
                self._redirect(result, replacement)
        for position in reversed(range(self.run.part(kept).start, self.run.end)):
            self._erase(self.sequence.ops[position])
        for column in (*self.constants, *self.placeholders):
            for name in column[kept:]:
                self._drop(name)
        return CollapsedLayers(self._name, omitted, self.placeholders, nodes)

    def _abstract(self, column: tuple[str, ...], kept: int) -> None:
        """Replace the contents of the constants of the kept layers, which then stand for those of all layers."""
        constants = [op for name in column if isinstance(op := self.storage.by_name[name], ConstantOp)]
        table = LayerTable(self._name, tuple(map(deferred_constant, constants)), column)
        for layer, constant in enumerate(constants[:kept]):
            constant.properties.pop("value", None)
            constant.give_content(add_weights(LayerWeights(table, layer)))

    def _nodes(self) -> Columns:
        """The names of the nodes in each place of the layers."""
        found: dict[tuple[str, ...], None] = {}
        for ops in self._counterparts():
            names = [location_names(op.location) for op in ops]
            if len({len(group) for group in names}) == 1:
                found |= dict.fromkeys(zip(*names, strict=True))
        return list(found)

    def _redirect(self, result: OpResult, replacement: SSAValue) -> None:
        """Let what is behind the layers read the last kept one."""
        for use in list(result.uses):
            position = self.sequence.positions.get(use.operation)
            if position is not None and position >= self.run.end:
                use.operation.operands[use.index] = replacement

    def _erase(self, op: Operation) -> None:
        """Erase an operator of an omitted layer, with the saves of its results."""
        for result in op.results:
            for save in _saves_of(result):
                Rewriter.erase_op(save)
        Rewriter.erase_op(op)

    def _drop(self, name: str) -> None:
        """Erase the reads of storage of an omitted layer, and a constant."""
        for read in self.reads.get(name, []):
            Rewriter.erase_op(read)
        storage = self.storage.by_name[name]
        if isinstance(storage, ConstantOp):
            del self.storage.by_name[name]
            Rewriter.erase_op(storage)


def _form(op: Operation) -> Hashable:
    """The key of operators that may be in the same place of equal layers; `None` for one that may not."""
    users = (use.operation for result in op.results for use in result.uses)
    if any(user.parent is not op.parent for user in users):
        return None
    key = form_of(op)
    return None if key is None else (key, tuple(len(_saves_of(result)) for result in op.results))


def _adds_bias(op: AddOp) -> bool:
    """Whether one operand is the result of a linear operator."""
    return any(isinstance(value.owner, Operation) and linear_operator(value.owner) is not None for value in op.operands)


def _saves_of(result: SSAValue) -> Sequence[SaveOp]:
    """The saves of a value, in a fixed order."""
    return [use.operation for use in result.uses if isinstance(use.operation, SaveOp)]


def _may_differ(one: SSAValue, other: SSAValue, storage: Storage) -> bool:
    """Whether two reads of storage may be in the same place of equal layers."""
    left, right = one.owner, other.owner
    if not isinstance(left, GetOp) or not isinstance(right, GetOp) or one.type != other.type:
        return False
    if left.storage_name == right.storage_name:
        return True
    first, second = storage.by_name[left.storage_name], storage.by_name[right.storage_name]
    if isinstance(first, ConstantOp) and isinstance(second, ConstantOp):
        return _may_be_of_layer(first) and _may_be_of_layer(second)
    return _is_of_layer(first) and _is_of_layer(second)


def _is_of_layer(op: StorageOp) -> bool:
    """Whether storage may be an input of a layer, or state that each layer has of its own, such as a cache."""
    return isinstance(op, PlaceholderOp) and (op.input is not None or (op.state is not None and not op.has_content))


def _may_be_of_layer(op: ConstantOp) -> bool:
    """Whether a constant may differ between layers: few integers fix shapes, and single numbers are part of code."""
    is_known = op.value is not None and not isinstance(op.tensor_type.element_type, AnyFloat)
    return size_of(op.type) > 1 and not is_known and not deferred_constant(op).is_per_layer
