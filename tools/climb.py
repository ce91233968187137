"""`--stop-after`: the ladder of a compilation, climbed pass by pass under the eyes of observers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import StringAttr

from glow_mlir.driver.compiler import LAST, STAGE, Compilation, Observer
from glow_mlir.driver.pipelines import Stage
from glow_mlir.tools.pass_runner import PassRunner


@dataclass
class Climb(Compilation):
    """A compilation whose passes a `PassRunner` runs."""

    runner: PassRunner = field(default_factory=lambda: PassRunner(Context()))

    def run_stage(self, stage: Stage, observers: Sequence[Observer] = ()) -> None:
        self.runner.run(stage.passes(), self.module, is_stage=True)
        if stage.name != LAST:
            self.module.attributes[STAGE] = StringAttr(stage.name)
