"""`verify-low`: verify that functions consist of instructions, reads follow writes, and lifetimes end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property, reduce
from itertools import combinations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.analysis.accesses import may_be_same_buffer
from glow_mlir.analysis.regions import may_overlap, region_of
from glow_mlir.analysis.written import WrittenElements
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.collapsed_layers import names_in_layers
from glow_mlir.dialects.glow_high.storage import PlaceholderOp, StorageOp
from glow_mlir.dialects.glow_low.base import Instruction, Qualifier
from glow_mlir.dialects.glow_low.control_flow import RegionOp
from glow_mlir.dialects.glow_low.loop import LoopOp, WindowOp, motion_of
from glow_mlir.dialects.glow_low.memory import (
    AllocOp,
    DeallocOp,
    FuncOp,
    ViewOp,
    WeightOp,
    has_default_layout,
    is_laid_out_wider,
    root_of,
    strides_of,
)
from glow_mlir.dialects.shapes import element_of, is_empty, sizes_of
from glow_mlir.ir.checks import CheckFailed, require_at
from glow_mlir.ir.rewriting import high_functions, low_functions
from glow_mlir.ir.traversal import operations, own_operations
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class VerifyLowPass(ModulePass):
    """
    Verify a module of instructions: no function of `glow_high` except partitions, every weight declared once with the
    type of its storage, no read of an element of an allocation or output before it is written, every element of every
    output written at the end, no use after `dealloc`, one `dealloc` per allocation, no write to constants and inputs,
    no @out that overlaps another operand unless the instruction allows it, no loop whose windows do not move. Packed
    state is an output of the function that packs it, and an input of all others. Outputs of layers that
    `collapse-layers` erased are written once `expand-layers` has added these layers.
    """

    name = "verify-low"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for left in high_functions(op):
            require_at(left, left.device is not None, f"@{left.sym_name.data} is still a function of glow_high")
        storage = Storage(op)
        for function in low_functions(op):
            FunctionCheck(function, storage).run()


Writes = list[tuple[SSAValue, SSAValue]]
"""Windows that an instruction of a loop wrote, each after its root."""


@dataclass
class FunctionCheck:
    """The verification of one function: buffers declared, written and deallocated so far."""

    function: FuncOp
    storage: Storage
    written: WrittenElements = field(default_factory=WrittenElements)
    dead: set[SSAValue] = field(default_factory=set[SSAValue])
    declared: dict[str, WeightOp] = field(default_factory=dict[str, WeightOp])

    def run(self) -> None:
        """Raise `CheckFailed` at the first violation."""
        for op in own_operations(self.function):
            self._check(op, [])
        for op in operations(self.function):
            if isinstance(op, AllocOp):
                require_at(op, op.result in self.dead, "the allocation is never deallocated")
        later = names_in_layers(self.storage.module)
        for name in self.function.binding_names:
            if name not in later or name in self.declared:
                self._check_output(name)

    def _check(self, op: Operation, moved: Writes) -> None:
        if type(op) in (AllocOp, ViewOp):  # The majority of the other ops.
            return
        if isinstance(op, WeightOp):
            self._check_weight(op)
        elif isinstance(op, Instruction):
            self._check_instruction(op, moved)
        elif isinstance(op, RegionOp):
            for use in op.named_uses():
                self._check_use(op, use, root_of(use[2]), moved)
            if isinstance(op, LoopOp):
                self._check_loop(op, moved)
            else:
                self._check_branches(op, moved)

    def _check_loop(self, op: LoopOp, moved: Writes) -> None:
        _check_trips(op)
        before, here = (self.written if op.runs else self.written.copy()), Writes()
        for inner in own_operations(op.block):  # As in the first trip, when the least has been written.
            self._check(inner, here)
        if not op.runs:  # The loop may have no trip.
            self.written = before
            here = [(root, window) for root, window in here if _steps_along_all(op, root, window)]
        for root, window in here:
            self.written.add(root, region_of(window))
        moved += here

    def _check_branches(self, op: RegionOp, moved: Writes) -> None:
        """Check alternative regions: an element counts as written only if all regions write it."""
        before, ends = self.written, list[WrittenElements]()
        for region in op.regions:
            self.written, here = before.copy(), list(moved)
            for inner in own_operations(region.block):
                self._check(inner, here)
            ends.append(self.written)
        self.written = reduce(WrittenElements.meet, ends)

    def _check_weight(self, op: WeightOp) -> None:
        # Two declarations would be undetectable aliases of one buffer.
        name = op.storage_name
        require_at(op, name not in self.declared, f"@{name} is declared twice")
        self.declared[name] = op
        storage = self.storage.by_name.get(name)
        if storage is None:
            require_at(op, False, f"there is no storage @{name}")
            return
        same = sizes_of(storage.tensor_type) == sizes_of(op.result)
        same &= element_of(storage.tensor_type) == element_of(op.result)
        is_input = isinstance(storage, PlaceholderOp) and storage.role == "input"
        same &= has_default_layout(op.result) or (is_input and is_laid_out_wider(op.result))
        if not same:
            raise CheckFailed(op, f"@{name} is {storage.type}, the weight {op.result.type}")
        if isinstance(storage, PlaceholderOp):
            require_at(op, name in self._bound, f"@{name} is no binding of @{self.function.sym_name.data}")
        is_mutable = isinstance(storage, PlaceholderOp) and (storage.is_mutable or self._is_output(storage))
        require_at(op, is_mutable or op.mutable is None, f"@{name} cannot be mutable")
        if not self._is_output(storage):
            self.written.add(op.result, region_of(op.result))

    def _is_output(self, storage: StorageOp) -> bool:
        """Whether the function must write all of some storage."""
        if not isinstance(storage, PlaceholderOp):
            return False
        return storage.role == "output" or storage.packing_function == self.function.sym_name.data

    def _check_target(self, op: Instruction, root: SSAValue) -> None:
        """Check that a packing function does not write the state it reads: the packed form would be stale at once."""
        storage = self.storage.by_name.get(root.owner.storage_name) if isinstance(root.owner, WeightOp) else None
        if self._is_packing and isinstance(storage, PlaceholderOp):
            require_at(op, self._is_output(storage), f"a function that packs @{storage.sym_name.data} writes it")

    @cached_property
    def _bound(self) -> frozenset[str]:
        """The names of the placeholders that the function is bound to."""
        return frozenset(self.function.binding_names)

    @cached_property
    def _is_packing(self) -> bool:
        """Whether the function packs state."""
        bound = (self.storage.by_name.get(name) for name in self.function.binding_names)
        name = self.function.sym_name.data
        return any(isinstance(op, PlaceholderOp) and op.packing_function == name for op in bound)

    def _check_output(self, name: str) -> None:
        """Check that an output is written completely."""
        storage, weight = self.storage.by_name[name], self.declared.get(name)
        if not self._is_output(storage) or is_empty(storage.tensor_type):
            return
        if weight is None:
            raise CheckFailed(self.function, f"output @{name} is never written")
        require_at(weight, self.written.has_any(weight.result), f"output @{name} is never written")
        whole = self.written.has(weight.result, region_of(weight.result))
        require_at(weight, whole, f"some elements of output @{name} are never written")

    def _check_instruction(self, op: Instruction, moved: Writes) -> None:
        uses = op.named_uses()
        roots = [root_of(value) for _, _, value in uses]
        for use, root in zip(uses, roots, strict=True):
            self._check_use(op, use, root, moved)
        if len(set(roots)) < len(roots):
            _check_overlaps(op, uses, roots)
        if isinstance(op, DeallocOp):
            self.dead.add(op.buffer)
            return
        for (_, qualifier, value), root in zip(uses, roots, strict=True):
            # Leftovers in scratch are meaningless.
            if qualifier in (Qualifier.OUT, Qualifier.INOUT):
                self._check_target(op, root)
                self.written.add(root, region_of(value.type))
                if isinstance(value.owner, WindowOp):
                    moved.append((root, value))

    def _check_use(self, op: Operation, use: _Operand, root: SSAValue, moved: Writes) -> None:
        name, qualifier, value = use
        owner, fault = root.owner, ""
        if root in self.dead:
            fault = "uses {} after its dealloc"
        elif qualifier.writes and isinstance(owner, WeightOp) and owner.mutable is None:
            fault = "writes {}, which is constant"
        elif qualifier.reads and not (self.written.has(root, region_of(value)) or _is_behind(value, root, moved)):
            is_begun = self.written.has_any(root)
            fault = (
                "reads elements of {} that nothing has written" if is_begun else "reads {} before anything writes it"
            )
        if fault:
            raise CheckFailed(op, f"{op.name} {fault.format(f'@{qualifier.value} {name}')}")


def _steps_along_all(op: LoopOp, root: SSAValue, window: SSAValue) -> bool:
    """Whether the trips of a loop cover every element of an axis along which a window moves."""
    size, step = op.size_of_trips, motion_of(window).get(op.index)
    axes = zip(sizes_of(root), strides_of(root), strict=True)
    return op.condition is None and any(size == length and step == stride for length, stride in axes)


def _is_behind(value: SSAValue, root: SSAValue, moved: Writes) -> bool:
    """Whether windows with the same motion, written in the same trip, cover a window."""
    if not isinstance(value.owner, WindowOp):
        return False
    motion, written = motion_of(value), WrittenElements()
    for written_root, window in moved:
        if written_root is root and isinstance(window.owner, WindowOp) and motion_of(window) == motion:
            written.add(root, region_of(window.type))
    return written.has(root, region_of(value.type))


def _check_trips(op: LoopOp) -> None:
    """
    Check that at least one window which uses the loop index moves, so that trips do not exceed elements.

    Empty windows need not move.
    """
    named = [inner for inner in operations(op.block) if isinstance(inner, WindowOp) and op.index in inner.indices]
    windows = [inner for inner in named if not is_empty(inner.result)]
    moves = op.max_trips in (0, 1) or not windows or any(motion_of(window.result).get(op.index) for window in windows)
    require_at(op, moves, f"the {op.size_of_trips} trips of the loop are all the same: its windows do not move")


_Operand = tuple[str, Qualifier, SSAValue]
"""Operand name, qualifier and buffer."""

_Use = tuple[int, _Operand]
"""Operand number and operand."""


def _check_overlaps(op: Instruction, operands: Sequence[_Operand], roots: Sequence[SSAValue]) -> None:
    """Check that the results of `op` are disjoint from its other operands, or the same buffer if that is allowed."""
    by_root: dict[SSAValue, list[_Use]] = {}
    for index, (use, root) in enumerate(zip(operands, roots, strict=True)):
        by_root.setdefault(root, []).append((index, use))
    for uses in by_root.values():
        if any(qualifier.writes for _, (_, qualifier, _) in uses):
            for one, other in combinations(uses, 2):
                _check_pair(op, one, other)


def _check_pair(op: Instruction, one: _Use, other: _Use) -> None:
    (index, (name, qualifier, value)), (other_index, (other_name, other_qualifier, other_value)) = one, other
    if (qualifier.writes or other_qualifier.writes) and may_overlap(value, other_value):
        operands = f"@{qualifier.value} {name} and @{other_qualifier.value} {other_name}"
        require_at(op, may_be_same_buffer(op, index, other_index), f"{op.name}: {operands} overlap")
