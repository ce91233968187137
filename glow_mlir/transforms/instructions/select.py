"""`select`: let the backend choose kernel, tiles and operand packing of each instruction."""

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
from glow_mlir.transforms.memory.allocate import alignment_of, room_of


@dataclass(frozen=True)
class SelectPass(ModulePass):
    """
    Write on every instruction which kernel executes it, with its parameters, packed constants and scratch operands.
    Functions are added that pack state which an instruction reads and its function leaves as it is, and instructions
    that pack what is the same in all trips of a loop in front of that.

    Nothing behind this pass decides anything. An instruction that has its kernel keeps it. For targets of the accuracy
    `strict`, kernels whose error has another bound than that of plain sums are not used (docs/floating-point.md). For
    those of several threads, instructions with enough work are cut into parts. With `tune` the fastest of all choices
    is taken, as this machine runs them, instead of a guess (docs/tuning.md). Where memory is limited, scratch has to
    fit beside the buffers that live where it is used.
    """

    name = "select"

    tune: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage, given = Storage(op), low_functions(op)
        for function in given:
            self._select(function, storage)
        for function in low_functions(op)[len(given) :]:  # Those that pack state.
            self._select(function, storage)

    def _select(self, function: FuncOp, storage: Storage) -> None:
        waiting = _waiting(function)
        self._select_for(waiting, function, storage)
        known = set(waiting)
        self._select_for([op for op in _waiting(function) if op not in known], function, storage)

    def _select_for(self, waiting: Sequence[Instruction], function: FuncOp, storage: Storage) -> None:
        backend = get_backend(function.target.backend)
        rooms: dict[Operation, int] = {}
        if function.target.limits.ram_bytes:
            room, lives = room_of(function), live_bytes(function, waiting, alignment_of(function))
            rooms = {instruction: max(0, room - live) for instruction, live in lives.items()}
        for number, instruction in enumerate(waiting, 1):
            if self.tune:
                say(f"tuning instruction {number} of {len(waiting)}")
            backend.select(instruction, storage, function.target, self.tune, rooms.get(instruction))
            statistics.count("kernels selected", int("kernel" in instruction.properties))
            statistics.count("cut into parts", int("partitions" in instruction.properties))


def _waiting(function: FuncOp) -> list[Instruction]:
    """The instructions that wait for a kernel."""
    found = (op for op in operations(function) if isinstance(op, Instruction) and op.NEEDS_KERNEL)
    return [op for op in found if "kernel" not in op.properties]
