"""The interpreter as a backend: it executes every operator as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from glow_mlir.backends.interface import AllocateConstants, Backend, Compiling
from glow_mlir.dialects.target import Target
from glow_mlir.driver.pipelines import OPTIMIZE, Pipeline
from glow_mlir.ir.registry import backend

if TYPE_CHECKING:
    from glow_mlir.backends.interpreter.executable import InterpretedModule


@backend("interpreter")
class InterpreterBackend(Backend):
    """Executes every operator with semantics, without lowering; it defines the meaning of code for any target."""

    name = "interpreter"

    def compile(self, compilation: Compiling, allocate: AllocateConstants | None = None) -> ModuleOp:
        """The optimized graph; a module given as IR is unchanged, except that gradients are replaced."""
        if not compilation.as_given:
            return compilation.run()
        from glow_mlir.differentiation.differentiate import DifferentiatePass

        compilation.check_given()
        DifferentiatePass().apply(compilation.context, compilation.module)
        return compilation.module

    def load(self, artifact: ModuleOp, threads: int) -> InterpretedModule:
        # Imported here, because all backends are imported when one is needed, and this is the whole interpreter.
        from glow_mlir.backends.interpreter.executable import InterpretedModule

        return InterpretedModule(artifact)

    def supports(self, op: Operation) -> bool:
        return True

    def accepts(self, target: Target) -> bool:
        return True

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        """Optimization only: the interpreter runs the graph."""
        return OPTIMIZE.named(self.name).for_target(target, self.name)
