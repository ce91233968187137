"""`schedule`: order operators to minimize peak memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from glow_mlir.analysis.activations import program_of
from glow_mlir.analysis.least_memory import least_memory_order
from glow_mlir.analysis.program import Order, Program, child_size_order, topological_order
from glow_mlir.errors import OptionError
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import blocks, own_operations
from glow_mlir.support.dataclass import dataclass

ORDERS: Mapping[str, Callable[[Program], Order]] = {
    "least-memory": least_memory_order,
    "child-size": child_size_order,
    "topological": topological_order,
}
"""Name of an order → function that computes it."""


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    """
    Order each function to minimize peak memory.

    `order` is `least-memory`; `child-size`, which computes the operand first whose computation needs most memory beyond
    its result (Glow's ChildMemSizeBased scheduler, after Sethi and Ullman); or `topological` (Glow's TopologicalSort
    scheduler). Reads and writes of one state keep their order.
    """

    name = "schedule"

    order: str = "least-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.order not in ORDERS:
            raise OptionError(f"there is no order '{self.order}'", hint=f"orders are {', '.join(ORDERS)}")
        for function in high_functions(op):
            for block in blocks(function):
                schedule_block(block, ORDERS[self.order])


def schedule_block(block: Block, find_order: Callable[[Program], Order]) -> None:
    """Reorder the ops of one block."""
    ops = list(own_operations(block))
    order = find_order(program_of(block))
    for op in ops:
        op.detach()
    block.add_ops([ops[number] for number in order])
    statistics.count("operators moved", sum(number != position for position, number in enumerate(order)))
