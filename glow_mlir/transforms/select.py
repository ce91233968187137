"""`select`: let the backend choose kernel, tiles and operand packing of each instruction."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64

from glow_mlir.backends.interface import Setting, get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import DeallocOp
from glow_mlir.errors import OptionError
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import operations
from glow_mlir.support.activity import say
from glow_mlir.transforms.checked_options import BackendPass


@dataclass(frozen=True)
class SelectPass(BackendPass):
    """
    Write on every instruction which kernel executes it, with its parameters, packed constants and scratch operands.

    Nothing behind this pass decides anything. An instruction that has its kernel keeps it. With the accuracy `strict`,
    kernels whose error has another bound than that of plain sums are not used (docs/floating-point.md). For several
    `threads`, instructions with enough work are cut into parts, and the function says how many threads it is for. With
    `tune` the fastest of all choices is taken, as this machine runs them, instead of a guess (docs/tuning.md).
    """

    name = "select"

    backend: str = "cpu"
    target: str = "host"
    accuracy: str = "default"
    threads: int = 1
    tune: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chooser = get_backend(self.backend)
        if not 1 <= self.threads <= chooser.MOST_THREADS:
            raise OptionError(f"threads={self.threads} is no number of threads", hint=f"1 to {chooser.MOST_THREADS}")
        setting = Setting(Storage(op), self.target, self.accuracy)
        for function in low_functions(op):
            waiting = [
                instruction
                for instruction in operations(function)
                if isinstance(instruction, Instruction)
                and not isinstance(instruction, DeallocOp)
                and "kernel" not in instruction.properties
            ]
            for number, instruction in enumerate(waiting, 1):
                if self.tune:
                    say(f"tuning instruction {number} of {len(waiting)}")
                chooser.select(instruction, setting, self.threads, self.tune)
                statistics.count("kernels selected", int("kernel" in instruction.properties))
                statistics.count("cut into parts", int("partitions" in instruction.properties))
            if any("partitions" in instruction.properties for instruction in operations(function)):
                function.attributes["threads"] = IntegerAttr(self.threads, i64)
