"""`verify-low`: from here on there are only addresses, every read is of something written, every buffer ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.analysis.accesses import may_be_same_buffer
from glow_mlir.analysis.regions import may_overlap
from glow_mlir.dialects.glow_high.storage import PlaceholderOp
from glow_mlir.dialects.glow_low.base import Instruction, Qualifier
from glow_mlir.dialects.glow_low.loop import LoopOp
from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, FuncOp, WeightOp, is_contiguous, offset_of, root_of
from glow_mlir.dialects.shapes import element_of, shape_of, size_of
from glow_mlir.storage import Storage
from glow_mlir.transforms.checks import CheckFailed, require_at
from glow_mlir.transforms.rewriting import high_functions, low_functions


@dataclass(frozen=True)
class VerifyLowPass(ModulePass):
    """
    Check a module of instructions: no function of `glow_high`, no tensor value, every weight declared once and as
    its storage is, no read of an allocation with elements before a write, no use after `dealloc`, one `dealloc` an
    allocation, no write to constants and inputs, no @out that overlaps another operand unless the instruction allows
    it.
    """

    name = "verify-low"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for left in high_functions(op):
            require_at(left, False, f"@{left.sym_name.data} is still a function of glow_high")
        storage = Storage(op)
        for function in low_functions(op):
            FunctionCheck(function, storage).run()


@dataclass
class FunctionCheck:
    """The check of one function: what has been declared, written and deallocated, so far."""

    function: FuncOp
    storage: Storage
    written: set[SSAValue] = field(default_factory=set[SSAValue])
    dead: set[SSAValue] = field(default_factory=set[SSAValue])
    declared: set[str] = field(default_factory=set[str])

    def run(self) -> None:
        """Raise `CheckFailed` at the first fault."""
        for op in self.function.block.ops:
            self._check(op)
        for op in self.function.block.ops:
            if isinstance(op, AllocOp):
                require_at(op, op.result in self.dead, "the allocation is never deallocated")

    def _check(self, op: Operation) -> None:
        for value in (*op.operands, *op.results):
            require_at(op, not isinstance(value.type, TensorType), f"{op.name} still has a tensor")
        if isinstance(op, WeightOp):
            self._check_weight(op)
        elif isinstance(op, Instruction):
            self._check_instruction(op)
        elif isinstance(op, LoopOp):
            for inner in op.block.ops:  # As in the first trip, in which least has been written.
                self._check(inner)

    def _check_weight(self, op: WeightOp) -> None:
        # Two declarations would be two names of one buffer, which no analysis could tell.
        require_at(op, op.storage_name not in self.declared, f"@{op.storage_name} is declared twice")
        self.declared.add(op.storage_name)
        storage = self.storage.by_name.get(op.storage_name)
        if storage is None:
            require_at(op, False, f"there is no storage @{op.storage_name}")
            return
        same = shape_of(storage.tensor_type) == shape_of(op.result)
        same &= element_of(storage.tensor_type) == element_of(op.result)
        same &= is_contiguous(op.result) and not offset_of(op.result)
        if not same:
            raise CheckFailed(op, f"@{op.storage_name} is {storage.type}, the weight {op.result.type}")
        if isinstance(storage, PlaceholderOp):
            bound = op.storage_name in self.function.binding_names
            require_at(op, bound, f"@{op.storage_name} is no binding of @{self.function.sym_name.data}")
        is_mutable = isinstance(storage, PlaceholderOp) and storage.is_mutable
        require_at(op, is_mutable or op.mutable is None, f"@{op.storage_name} cannot be mutable")

    def _check_instruction(self, op: Instruction) -> None:
        for name, qualifier, value in op.named_uses():
            self._check_use(op, f"@{qualifier.value} {name}", qualifier, root_of(value))
        _check_overlaps(op)
        self.written.update(root_of(value) for qualifier, value in op.uses() if qualifier.writes)
        if isinstance(op, DeallocOp):
            self.dead.add(op.buffer)

    def _check_use(self, op: Operation, operand: str, qualifier: Qualifier, root: SSAValue) -> None:
        owner = root.owner
        require_at(op, root not in self.dead, f"{op.name} uses {operand} after its dealloc")
        if isinstance(owner, AllocOp) and qualifier.reads and size_of(root.type):
            require_at(op, root in self.written, f"{op.name} reads {operand} before anything writes it")
        if isinstance(owner, WeightOp) and qualifier.writes:
            require_at(op, owner.mutable is not None, f"{op.name} writes {operand}, which is constant")


_Use = tuple[int, tuple[str, Qualifier, SSAValue]]
"""The number of an operand, its name, its qualifier and its buffer."""


def _check_overlaps(op: Instruction) -> None:
    """Check that what `op` writes is apart from its other operands, or the same buffer where that is allowed."""
    by_root: dict[SSAValue, list[_Use]] = {}
    for index, use in enumerate(op.named_uses()):
        by_root.setdefault(root_of(use[2]), []).append((index, use))
    for uses in by_root.values():
        if any(qualifier.writes for _, (_, qualifier, _) in uses):
            for one, other in combinations(uses, 2):
                _check_pair(op, one, other)


def _check_pair(op: Instruction, one: _Use, other: _Use) -> None:
    (index, (name, qualifier, value)), (other_index, (other_name, other_qualifier, other_value)) = one, other
    if (qualifier.writes or other_qualifier.writes) and may_overlap(value, other_value):
        operands = f"@{qualifier.value} {name} and @{other_qualifier.value} {other_name}"
        require_at(op, may_be_same_buffer(op, index, other_index), f"{op.name}: {operands} overlap")
