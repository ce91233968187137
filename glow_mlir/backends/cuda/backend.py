"""The CUDA backend: executes operators with its own kernels or those of CPUs; each thread runs a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.ir import Operation

from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.backends.cuda import loader
from glow_mlir.backends.cuda.device import ALIGNMENT
from glow_mlir.backends.cuda.devices import EMULATION_HINT, generation, memory_bytes
from glow_mlir.backends.cuda.executable import CudaExecutable
from glow_mlir.backends.cuda.loader import EMULATED_TRIPLE, NAME
from glow_mlir.backends.cuda.measured import assumed
from glow_mlir.backends.cuda.targets import (
    EMULATED,
    GENERATIONS,
    PRESETS,
    THREADS,
    TRIPLE,
)
from glow_mlir.backends.interface import AllocateConstants, Compiling
from glow_mlir.codegen.block_kernels import tables
from glow_mlir.codegen.build import zeroed
from glow_mlir.codegen.build_for_device import build_device_artifact
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.check_races import CheckRacesPass
from glow_mlir.codegen.costs import KernelCosts
from glow_mlir.codegen.device_functions import emit_device_functions
from glow_mlir.codegen.kernel_backend import KernelBackend
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import assembly_text, compile_text
from glow_mlir.codegen.matrix_instructions import generation_of
from glow_mlir.codegen.nvptx import by_emulated_grid, by_grid
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_high.loop import LoopOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import FuncOp
from glow_mlir.dialects.shapes import has_static_shape
from glow_mlir.dialects.target import Target, with_fields
from glow_mlir.errors import OptionError
from glow_mlir.ir.registry import backend
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.devices import DeviceMemory
from glow_mlir.runtime.launches import LaunchProgram

UNSUITED = ("attention", "conv-winograd", "conv-strassen", "matmul-strassen", "grouped-matmul")
"""
Prefixes of CPU kernels that do not suit a device: they save little compared with their low number of tasks, or each
task reads all rows.
"""


def grid_target(target: Target) -> Target:
    """A target with the thread count of a launch, whatever the given one."""
    return with_fields(target, {"threads": THREADS})


def is_emulated(target: Target) -> bool:
    """Whether the CPU emulates the device."""
    return target.triple == EMULATED_TRIPLE


@backend(NAME)
class CudaBackend(KernelBackend):
    """
    Compile device functions to PTX, with launch programs.

    Block kernels are preferred to those of the CPU, which run one task per thread.
    """

    name = NAME
    PART_SCRATCH: ClassVar[int] = 64 << 20
    TABLES = (tables.TABLES, *KernelBackend.TABLES)

    def compile(self, compilation: Compiling, allocate: AllocateConstants | None = None) -> Artifact:
        """PTX, or machine code if the device is emulated, with constants, and a manifest with launch programs."""
        module = compilation.run()
        return build_device_artifact(module, emit, translate, allocate or zeroed)

    @cached_property
    def kernels(self) -> dict[str, Any]:
        """The kernels of the tables that suit a device."""
        return {name: made for name, made in super().kernels.items() if not name.startswith(UNSUITED)}

    def load(self, artifact: Artifact, threads: int) -> CudaExecutable:
        return loader.load(artifact, threads)

    def load_on(self, artifact: Artifact, number: int, threads: int) -> CudaExecutable:
        return loader.load_on(artifact, number, threads)

    def memory(self, target: Target) -> DeviceMemory:
        return DeviceMemory(0 if is_emulated(target) else memory_bytes(), ALIGNMENT)

    def targets(self) -> Mapping[str, Target]:
        return PRESETS

    def about_targets(self) -> Mapping[str, str]:
        plain = {name: generation.about for name, generation in GENERATIONS.items()}
        return {**plain, **{f"{EMULATED}{name}": f"{about}, emulated on the CPU" for name, about in plain.items()}}

    def host(self) -> Target:
        """The first device of the driver; raises `OptionError` if there is none."""
        known = [name for name in GENERATIONS if generation_of(PRESETS[name]) <= generation()]
        if not known:
            raise OptionError("there is no CUDA device here", hint=EMULATION_HINT)
        return PRESETS[known[-1]]

    def measured(self, target: Target) -> KernelCosts:
        return assumed(target)

    def check_target(self, target: Target) -> None:
        super().check_target(target)
        if target.triple not in (TRIPLE, EMULATED_TRIPLE) or target.cpu.rstrip("af") not in GENERATIONS:
            raise OptionError(f"'{self.name}' compiles for no such device", hint=f"there are {', '.join(PRESETS)}")

    def lacks(self, target: Target) -> str:
        wanted = generation_of(target)
        return "" if is_emulated(target) or wanted <= generation() else f"a CUDA device of generation {wanted}"

    def supports(self, op: Operation) -> bool:
        """The operators that kernels accept, if sizes and trip counts are known, as launch programs require."""
        if not all(has_static_shape(value) for value in (*op.operands, *op.results)):
            return False
        if isinstance(op, ControlFlowOp):
            return isinstance(op, LoopOp) and op.condition is None and isinstance(op.size_of_trips, int)
        return super().supports(op)

    def can_fuse(self, op: Operation, storage: Storage, target: Target) -> bool:
        # Block products read their operands in memory order.
        has_prologue = isinstance(op, DerivedInstruction) and op.prologue is not None
        return not has_prologue and super().can_fuse(op, storage, target)

    def select(
        self, op: Operation, storage: Storage, target: Target, tune: bool = False, capacity: int | None = None
    ) -> None:
        super().select(op, storage, grid_target(target), tune, capacity)

    def check_selected(self, op: Operation, target: Target) -> None:
        super().check_selected(op, grid_target(target))


def emit(functions: Sequence[FuncOp], target: Target) -> tuple[str, list[LaunchProgram]]:
    """LLVM IR of the device functions for a target, and their launch programs."""
    emulated = is_emulated(target)
    module = ModuleBuilder(grid_target(target), host_target() if emulated else None)
    programs = emit_device_functions(functions, module, by_emulated_grid if emulated else by_grid)
    if emulated:
        CheckRacesPass().apply(Context(), module.module)
    return emit_module(flattened(module.module)), programs


def translate(text: str, target: Target) -> bytes:
    """Translate LLVM IR to the form that the driver loads."""
    if is_emulated(target):
        return compile_text(text, host_target())
    return assembly_text(text, target).encode()
