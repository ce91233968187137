"""Instructions with several ways to execute them."""

from __future__ import annotations

from collections.abc import Iterator

from execute import Case, module_of
from machines import target_named
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.backends.cpu.backend import CpuBackend
from glow_mlir.codegen.selection.candidate import Candidate
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import DeallocOp
from glow_mlir.dialects.target import with_fields
from glow_mlir.driver.compiler import Compilation
from glow_mlir.ir.rewriting import low_functions


def stacked(*cases: Case, target: str = "host") -> ModuleOp:
    """A module that applies operators, before kernels are selected."""
    module, _ = module_of(*cases)
    Compilation(module, target=target).run(until="stacked")
    return module


def instructions_of(module: ModuleOp) -> Iterator[Instruction]:
    """The instructions that need a kernel."""
    for function in low_functions(module):
        for op in function.block.ops:
            if isinstance(op, Instruction) and not isinstance(op, DeallocOp):
                yield op


def candidates_of(op: Instruction, module: ModuleOp, target: str = "host", threads: int = 1) -> list[Candidate]:
    """All ways to execute an instruction."""
    machine = with_fields(target_named(target), {"threads": threads})
    return list(CpuBackend().candidates(op, Storage(module), machine))
