"""`select`: select the kernel, tiles and operand packing of each instruction."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from glow_mlir.analysis.liveness import live_bytes
from glow_mlir.backends.interface import get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import FuncOp
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import operations
from glow_mlir.support.activity import say
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.memory.allocate import alignment_of, capacity_of


@dataclass(frozen=True)
class SelectPass(ModulePass):
    """
    Annotate every instruction with the kernel that executes it, its parameters, packed constants and scratch operands.
    Functions are added that pack state which an instruction reads and its function does not modify, and loop-invariant
    operands are packed in front of the loop.

    No later pass makes decisions. Instructions that have a kernel keep it. Targets of the accuracy `strict` use no
    kernels with other error bounds than plain sums (docs/floating-point.md). For several threads, instructions with
    enough work are partitioned into tasks. With `tune`, all choices are measured on this machine and the fastest is
    taken (docs/tuning.md). If memory is limited, scratch must fit beside the live buffers.
    """

    name = "select"

    tune: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage, given = Storage(op), low_functions(op)
        for function in given:
            self._select(function, storage)
        for function in low_functions(op)[len(given) :]:  # The functions that pack state.
            self._select(function, storage)

    def _select(self, function: FuncOp, storage: Storage) -> None:
        waiting = _waiting(function)
        self._select_for(waiting, function, storage)
        known = set(waiting)
        self._select_for([op for op in _waiting(function) if op not in known], function, storage)

    def _select_for(self, waiting: Sequence[Instruction], function: FuncOp, storage: Storage) -> None:
        backend = get_backend(function.target.backend)
        capacities: dict[Operation, int] = {}
        if function.target.limits.ram_bytes:
            capacity, lives = capacity_of(function), live_bytes(function, waiting, alignment_of(function))
            capacities = {instruction: max(0, capacity - live) for instruction, live in lives.items()}
        for number, instruction in enumerate(waiting, 1):
            if self.tune:
                say(f"tuning instruction {number} of {len(waiting)}")
            backend.select(instruction, storage, function.target, self.tune, capacities.get(instruction))
            statistics.count("kernels selected", int("kernel" in instruction.properties))
            statistics.count("cut into parts", int("partitions" in instruction.properties))


def _waiting(function: FuncOp) -> list[Instruction]:
    """The instructions without a kernel."""
    found = (op for op in operations(function) if isinstance(op, Instruction) and op.NEEDS_KERNEL)
    return [op for op in found if "kernel" not in op.properties]
