"""The backend: what it executes, how modules are compiled for it, and what runs them."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from glow_mlir.backends.interface import AllocateConstants, Backend, Compiling
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.target import Target
from glow_mlir.driver.pipelines import LOWERED, OPTIMIZE, Pipeline, Stage
from glow_mlir.errors import OptionError
from glow_mlir.ir.entries import bindings_of, initial_state
from glow_mlir.ir.registry import backend
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.options.policy import Policy
from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.executable import Executable
from tosa_backend.device import TosaDevice, TosaFunction, TosaProgram
from tosa_backend.ports import Port, borders_of
from tosa_backend.rules import executes

TOSA = Stage.of("tosa", "convert-to-tosa")
"""Functions of TOSA."""

NOT_WANTED = ("lower-quantization", "merge-reductions", "fold-transposes-into-pools")
"""Passes for other machines: TOSA has products of codes less their zero points, and pools with channels last alone."""


@backend("tosa")
class TosaBackend(Backend):
    """TOSA 1.0, of integers and of f32; codes change their scale by integers alone, as NPUs do it."""

    name = "tosa"
    MAX_THREADS = 1

    def supports(self, op: Operation) -> bool:
        return executes(op)

    def host(self) -> Target:
        return Target(self.name, policy=Policy(requantization="integer"))

    def check_target(self, target: Target) -> None:
        super().check_target(target)
        if target.policy.requantization != "integer":
            raise OptionError("TOSA changes the scale of codes by integers alone", hint="requantization=integer")

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        """Down to operators that TOSA has, and these in TOSA."""
        return OPTIMIZE.named(self.name).then(LOWERED, TOSA).for_target(target, self.name).without(*NOT_WANTED)

    def compile(self, compilation: Compiling, allocate: AllocateConstants | None = None) -> TosaProgram:
        """
        The functions of TOSA, with what the host needs to know of them.

        Raises `OptionError` for a pipeline that does not lead there.
        """
        if compilation.ladder.stage_names[-2:] != (LOWERED.name, TOSA.name):
            reason = f"pipeline '{compilation.ladder.name}' does not end with the stages 'lowered' and 'tosa'"
            raise OptionError(reason, hint="Backend.pipeline() gives one that does")
        module = compilation.run(LOWERED.name)
        state, described = tuple(initial_state(module)), list(map(_described, high_functions(module)))
        programs = [op for op in compilation.run().body.block.ops if isinstance(op, FuncOp)]
        parts = zip(described, programs, strict=True)
        return TosaProgram(tuple(TosaFunction(*known, program) for known, program in parts), state)

    def load(self, artifact: TosaProgram, threads: int) -> Executable:
        return TosaDevice(artifact)


def _described(function: FunctionOp) -> tuple[str, Mapping[str, Binding], tuple[Port, ...], tuple[Port, ...]]:
    """What is known of a function before it is a program: its name, bindings by storage, and ports on both sides."""
    borders = borders_of(function)
    bindings = dict(zip(function.binding_names, bindings_of(function), strict=True))
    inputs, outputs = (tuple(border.port for border in side) for side in (borders.inputs, borders.outputs))
    return function.sym_name.data, bindings, inputs, outputs
