"""`rematerialize`: recompute values instead of keeping them live, to reduce memory."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.analysis.activations import program_of
from glow_mlir.analysis.cost import operator_work
from glow_mlir.analysis.least_memory import least_memory_order
from glow_mlir.analysis.program import Program, peak
from glow_mlir.analysis.rematerialization import Chain, Copy, early_order, rematerialized
from glow_mlir.backends.interface import costs_of
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp
from glow_mlir.errors import OptionError
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import own_operations, subtree
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.memory.schedule import schedule_block


@dataclass(frozen=True)
class RematerializePass(ModulePass):
    """
    Recompute activations in the backward pass of a differentiated function, with the least additional work.

    Activations may take `percent` of the peak that the largest function has without this pass. Run it before
    `schedule`.
    """

    name = "rematerialize"

    percent: int = 50

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not 0 < self.percent <= 100:
            raise OptionError(f"percent={self.percent} is no percentage", hint="1 to 100")
        storage = Storage(op)
        found = [(function, _peak(program_of(function.body.block))) for function in high_functions(op)]
        memory = max((needed for _, needed in found), default=0) * self.percent // 100
        for function, needed in found:
            if needed > memory:
                _rematerialize(function, storage, memory, needed)


def _peak(program: Program) -> int:
    """The peak of activations in the order that `schedule` finds."""
    return peak(program, least_memory_order(program))


def _is_given(op: Operation, storage: Storage) -> bool:
    """Whether an operator reads an input, which is available when a call begins."""
    return isinstance(op, GetOp) and op.mutable is None and isinstance(storage.by_name[op.storage_name], PlaceholderOp)


def _rematerialize(function: FuncOp, storage: Storage, memory: int, needed: int) -> None:
    """Reduce the activations of a function to at most `memory` bytes, or as few as possible."""
    block, costs = function.body.block, costs_of(function.target)
    before = list(own_operations(block))
    given = [_is_given(op, storage) for op in before]
    schedule_block(block, lambda program: early_order(program, given))
    ops, program = list(own_operations(block)), program_of(block)
    chain = Chain(program, [operator_work(op, costs) for op in ops], [isinstance(op, HighOp) for op in ops])
    copies, found = rematerialized(chain, memory)
    if found < needed:
        _run(block, ops, copies)
        return
    for op in before:
        op.detach()
    block.add_ops(before)


def _run(block: Block, ops: list[Operation], copies: list[Copy]) -> None:
    """Build a block of copies of operators, in their order; the first run of an operator is the original."""
    numbers = {op: number for number, op in enumerate(ops)}
    found: list[Operation] = []
    for op in ops:
        op.detach()
    for copy in copies:
        op = ops[copy.step]
        values: dict[SSAValue, SSAValue] = {}
        for number, position in copy.reads.items():
            values.update(zip(ops[number].results, found[position].results, strict=True))
        if copy.run:
            op = op.clone(values)
            statistics.count("operators computed again")
        else:
            _read(op, values, numbers)
        block.add_op(op)
        found.append(op)


def _read(op: Operation, values: dict[SSAValue, SSAValue], numbers: dict[Operation, int]) -> None:
    """Redirect operands of an operator, nested regions included, to other values."""
    for inner in subtree(op):
        for index, operand in enumerate(inner.operands):
            if operand.owner in numbers and values[operand] is not operand:
                inner.operands[index] = values[operand]
