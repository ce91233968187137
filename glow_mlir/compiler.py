"""Drives a module up the ladder, stage by stage, and tells observers what happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.context import new_context
from glow_mlir.pipelines import Stage, stages

Observer = Callable[[Stage, ModuleOp, float], None]
"""Called after each stage with the module and the seconds that the stage took."""


@dataclass
class Compilation:
    """One compilation of a module for a backend."""

    module: ModuleOp
    backend: str = "cpu"
    target: str = "host"
    profile: bool = False
    verify: bool = False
    context: Context = field(default_factory=new_context)
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def ladder(self) -> tuple[Stage, ...]:
        """The stages of this compilation."""
        return stages(self.backend, self.target, self.profile)

    def run(self, until: str | None = None, observers: Sequence[Observer] = ()) -> ModuleOp:
        """Run the stages up to and including `until`, by default all."""
        for stage in self.ladder:
            self.run_stage(stage, observers)
            if stage.name == until:
                break
        return self.module

    def run_stage(self, stage: Stage, observers: Sequence[Observer] = ()) -> None:
        """Run one stage."""
        start = time.perf_counter()
        for item in stage.passes():
            item.apply(self.context, self.module)
            if self.verify:
                self.module.verify()
        seconds = time.perf_counter() - start
        self.seconds[stage.name] = seconds
        for observer in observers:
            observer(stage, self.module, seconds)
