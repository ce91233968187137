"""`--stop-after`: the ladder of a compilation, climbed pass by pass under the eyes of observers."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import StringAttr

from glow_mlir.driver.compiler import STAGE, Compilation
from glow_mlir.driver.pipelines import LLVM, Stage
from glow_mlir.tools.pass_runner import PassRunner


@dataclass
class Climb(Compilation):
    """A compilation whose passes a `PassRunner` runs."""

    runner: PassRunner = field(default_factory=lambda: PassRunner(Context()))

    def run_stage(self, stage: Stage) -> None:
        self.runner.run(stage.passes(), self.module, is_stage=True)
        if stage.name != LLVM:
            self.module.attributes[STAGE] = StringAttr(stage.name)
