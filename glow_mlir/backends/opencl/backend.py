"""The OpenCL backend: the device functions of the kernels as OpenCL C, on the devices that drivers offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import f64
from xdsl.ir import Operation

from glow_mlir.backends.interface import AllocateConstants, Compiling
from glow_mlir.backends.opencl import loader
from glow_mlir.backends.opencl.device import device
from glow_mlir.backends.opencl.executable import OpenCLExecutable
from glow_mlir.backends.opencl.library import NAME, device_at, device_name
from glow_mlir.backends.opencl.targets import about_targets, target_of, targets
from glow_mlir.codegen.build import zeroed
from glow_mlir.codegen.build_for_device import build_device_artifact
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.device_functions import emit_device_functions
from glow_mlir.codegen.kernel_backend import KernelBackend
from glow_mlir.codegen.opencl_c.printer import print_program
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.costs import Costs
from glow_mlir.dialects.glow_high.loop import LoopOp
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.glow_low.memory import FuncOp
from glow_mlir.dialects.shapes import element_of, has_static_shape
from glow_mlir.dialects.target import Target
from glow_mlir.errors import OptionError
from glow_mlir.ir.registry import backend
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.devices import DeviceMemory
from glow_mlir.runtime.launches import LaunchProgram

ALIGNMENT = 128
"""The buffer alignment for any device: that of the longest vector, of 16 64-bit floats."""


@backend(NAME)
class OpenCLBackend(KernelBackend):
    """Executes the operators that kernels accept, if all sizes and trip counts are known."""

    name = NAME
    PART_SCRATCH = 64 << 20

    def compile(self, compilation: Compiling, allocate: AllocateConstants | None = None) -> Artifact:
        """OpenCL C, constants, and a manifest with launch programs."""
        return build_device_artifact(compilation.run(), emit, lambda text, _: text.encode(), allocate or zeroed)

    def load(self, artifact: Artifact, threads: int) -> OpenCLExecutable:
        return loader.load(artifact, threads)

    def load_on(self, artifact: Artifact, number: int, threads: int) -> OpenCLExecutable:
        return loader.load_on(artifact, number, threads)

    def memory(self, target: Target) -> DeviceMemory:
        """The memory of a device of this machine, or of a generic device."""
        return device(target.cpu).memory if target.cpu in targets() else DeviceMemory(alignment=ALIGNMENT)

    def measured(self, target: Target) -> Costs:
        """The costs measured for the default backend; division is left to the device's compiler."""
        return replace(super().measured(target), **{"quotient_vectors": 1})

    def targets(self) -> Mapping[str, Target]:
        return targets()

    def about_targets(self) -> Mapping[str, str]:
        return about_targets()

    def host(self) -> Target:
        return target_of(device_name(0))

    def check_target(self, target: Target) -> None:
        super().check_target(target)
        if target.family != "spir":
            hint = "such as spir64-unknown-unknown"
            raise OptionError(f"the triple '{target.triple}' is no device of OpenCL", hint=hint)

    def lacks(self, target: Target) -> str:
        try:
            device_at(target.cpu or device_name(0))
        except OptionError as error:
            return error.reason
        return ""

    def supports(self, op: Operation) -> bool:
        types = [value.type for value in (*op.operands, *op.results)]
        if not all(map(has_static_shape, types)):
            return False
        if any(element_of(type_) == f64 for type_ in types) and not _has_doubles(op):
            return False
        if isinstance(op, ControlFlowOp):
            return isinstance(op, LoopOp) and op.condition is None and isinstance(op.size_of_trips, int)
        return super().supports(op)


def _has_doubles(op: Operation) -> bool:
    """Whether the device of an operator supports 64-bit floats; true for one outside a function."""
    around = op.parent_op()
    while around is not None and not isinstance(around, FunctionOp):
        around = around.parent_op()
    return around is None or around.target.doubles


def emit(functions: Sequence[FuncOp], target: Target) -> tuple[str, list[LaunchProgram]]:
    """OpenCL C of the device functions for a device, and their launch programs."""
    module = ModuleBuilder(target)
    programs = emit_device_functions(functions, module)
    launched = dict.fromkeys(name for program in programs for name in program.functions())
    return print_program(module.module, list(launched)), programs
