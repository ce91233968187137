"""`schedule`: order operators so that little memory is live at once."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult
from xdsl.passes import ModulePass

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.storage import GetOp, SaveOp
from glow_mlir.dialects.shapes import element_of, size_of
from glow_mlir.transforms.rewriting import high_functions


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    """
    Order each function depth-first from its saves; of several operands, compute the one first whose computation needs
    most memory beyond its result (Glow's ChildMemSizeBased scheduler, after Sethi and Ullman).

    Reads and writes of one state keep their order.
    """

    name = "schedule"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in high_functions(op):
            schedule_block(function.block)


def schedule_block(block: Block) -> None:
    """Reorder the ops of one block."""
    ops = list(block.ops)
    needs = memory_needs(ops)
    order = depth_first(ops, needs)
    for op in order:
        op.detach()
    block.add_ops(order)


def result_bytes(op: Operation) -> int:
    """Bytes of activations that the results of `op` take; storage takes none."""
    if isinstance(op, GetOp):
        return 0
    return sum(size_of(result.type) * byte_width(element_of(result.type)) for result in op.results)


def memory_needs(ops: list[Operation]) -> dict[Operation, int]:
    """For each op, how much more memory its computation needs at its peak than its results keep."""
    surplus: dict[Operation, int] = {}
    for op in ops:
        own = result_bytes(op)
        peak, kept = 0, 0
        for child in sorted(set(operand_ops(op)), key=lambda child: -surplus[child]):
            peak = max(peak, kept + surplus[child] + result_bytes(child))
            kept += result_bytes(child)
        surplus[op] = max(peak, kept + own) - own
    return surplus


def operand_ops(op: Operation) -> list[Operation]:
    """The ops of the same block whose results `op` reads, also inside its regions, in the order of operands."""
    block = op.parent_block()
    owners = (value.owner for inner in op.walk() for value in inner.operands if isinstance(value, OpResult))
    return [owner for owner in owners if owner.parent_block() is block]


def state_order(ops: list[Operation]) -> dict[Operation, list[Operation]]:
    """For each access to mutable storage, the accesses to the same storage that must come before it."""
    before: dict[Operation, list[Operation]] = {}
    saves: dict[str, SaveOp] = {}
    reads: dict[str, list[Operation]] = {}
    for op in ops:
        if not isinstance(op, GetOp | SaveOp) or (isinstance(op, GetOp) and op.mutable is None):
            continue
        name = op.storage_name
        before[op] = [saves[name]] if name in saves else []
        if isinstance(op, GetOp):
            reads.setdefault(name, []).append(op)
        else:
            before[op] += reads.pop(name, [])
            saves[name] = op
    return before


def roots_of(ops: list[Operation]) -> list[Operation]:
    """
    The ops that nothing depends on, in order, but saves of state at the end.

    The others can then read the old state where it lies.
    """
    state = {op.storage_name for op in ops if isinstance(op, GetOp) and op.mutable is not None}
    roots = [op for op in ops if isinstance(op, SaveOp) or not any(result.uses for result in op.results)]
    return sorted(roots, key=lambda op: isinstance(op, SaveOp) and op.storage_name in state)


def depth_first(ops: list[Operation], needs: dict[Operation, int]) -> list[Operation]:
    """A topological order that finishes one operand's computation before it begins the next."""
    order: list[Operation] = []
    done: set[Operation] = set()
    before = state_order(ops)
    for root in roots_of(ops):
        stack: list[tuple[Operation, bool]] = [(root, False)]
        while stack:
            op, ready = stack.pop()
            if op in done:
                continue
            if ready:
                done.add(op)
                order.append(op)
                continue
            stack.append((op, True))
            waiting = [child for child in dict.fromkeys([*operand_ops(op), *before.get(op, ())]) if child not in done]
            stack += [(child, False) for child in sorted(waiting, key=lambda child: needs[child])]
    return order
