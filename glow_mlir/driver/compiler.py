"""Drives a module up the ladder, stage by stage, and tells observers what happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from glow_mlir.backends.interface import check_accuracy, get_backend
from glow_mlir.driver.given import check_given
from glow_mlir.driver.pipelines import PassObserver, Pipeline, Stage
from glow_mlir.driver.reproducer import write_reproducer
from glow_mlir.errors import CompilerBugError, GlowError, OptionError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.out_of_memory import out_of_memory
from glow_mlir.ir.text import one_line
from glow_mlir.support.collector import without_collector

Observer = Callable[[Stage, ModuleOp, float], None]
"""Called after each stage with the module and the seconds that the stage took."""


STAGE = "glow.stage"
"""The attribute of a module that names the last stage it went through."""


LAST = "llvm"
"""The stage that is LLVM's own dialect, whose modules carry nothing of ours."""


def stage_of(module: ModuleOp) -> str:
    """The stage that a module is at; empty where it does not say."""
    attribute = module.attributes.get(STAGE)
    return attribute.data if isinstance(attribute, StringAttr) else ""


def bug(module: ModuleOp, passes: Sequence[ModulePass], context: Context, failure: Exception) -> CompilerBugError:
    """
    The error for an unexpected failure of `passes` on `module`, which is changed.

    Runs them again to find the first that fails, and writes a reproducer of it to the current directory.
    """
    before = module
    for item in passes:
        before = module.clone()
        try:
            item.apply(context, module)
            module.verify()
        except Exception as error:
            path = write_reproducer(before, [item], error)
            return CompilerBugError(
                f"{type(error).__name__} in pass '{item.name}': {one_line(error)}",
                hint=f"the reproducer is {path}; run it with 'glow-opt {path} --run-reproducer'",
            )
    return CompilerBugError(f"{type(failure).__name__}: {one_line(failure)}")


@dataclass
class Compilation:
    """
    One compilation of a module.

    It goes through the pipeline of a backend, or through `pipeline`, which then decides alone; `disable` names passes
    to leave out of either, and an `accuracy` other than the default is set in either (docs/floating-point.md),
    and so are several `threads` and `tune` (docs/tuning.md).
    """

    module: ModuleOp
    backend: str = "cpu"
    target: str = "host"
    profile: bool = False
    verify: bool = False
    context: Context = field(default_factory=new_context)
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    pipeline: Pipeline | None = None
    disable: Sequence[str] = ()
    pass_observers: Sequence[PassObserver] = ()
    accuracy: str = "default"
    threads: int = 1
    tune: bool = False
    _is_checked: bool = field(default=False, init=False)

    @cached_property
    def _whole(self) -> Pipeline:
        """The pipeline before anything is set or left out."""
        return self.pipeline or get_backend(self.backend).pipeline(self.target, self.profile)

    @cached_property
    def ladder(self) -> Pipeline:
        """
        The pipeline of this compilation.

        Raises `OptionError` for a pass that cannot be left out, and for an unknown accuracy.
        """
        check_accuracy(self.accuracy)
        whole = self._whole
        if self.accuracy != "default":
            for name in {item.name for item in whole.passes() if hasattr(item, "accuracy")}:
                whole = whole.with_options(name, accuracy=self.accuracy)
        if self.threads > 1:
            whole = whole.with_options("select", threads=self.threads)
        if self.tune:
            whole = whole.with_options("select", tune=True)
        return whole.without(*self.disable)

    @without_collector()
    def run(self, until: str | None = None, observers: Sequence[Observer] = ()) -> ModuleOp:
        """Run the stages behind the one that the module is at, up to and including `until`, by default all."""
        names = self.ladder.stage_names
        wanted = self.ladder if until is None else self.ladder.until(until)
        reached = names.index(stage_of(self.module)) if stage_of(self.module) in names else -1
        if reached >= len(wanted.stages):
            raise OptionError(f"the module is at stage '{names[reached]}', behind '{until}'")
        ahead = wanted.stages[reached + 1 :]
        self.check_given()
        # A crash is told by its reproducer, which needs the module as it was.
        origin = self.module.clone()
        try:
            for stage in ahead:
                self.run_stage(stage, observers)
        except GlowError:
            raise
        except MemoryError as error:
            raise out_of_memory(origin, error) from error
        except Exception as error:
            raise bug(origin, [item for stage in ahead for item in stage.passes()], self.context, error) from error
        return self.module

    def check_given(self) -> None:
        """
        Check what the stage of the module promises, once: behind that, whatever is wrong with it is a bug.

        Raises `GlowError` where it does not hold, whatever passes this compilation leaves out.
        """
        if not self._is_checked:
            check_given(self.module, self.context, self._whole, stage_of(self.module))
            self._is_checked = True

    def run_stage(self, stage: Stage, observers: Sequence[Observer] = ()) -> None:
        """Run one stage."""
        start = time.perf_counter()
        for item in stage.passes():
            for observer in self.pass_observers:
                observer.before(item, self.module)
            item.apply(self.context, self.module)
            if self.verify:
                self.module.verify()
            for observer in self.pass_observers:
                observer.after(item, self.module)
        if stage.name != LAST:
            self.module.attributes[STAGE] = StringAttr(stage.name)
        seconds = time.perf_counter() - start
        self.seconds[stage.name] = seconds
        for observer in observers:
            observer(stage, self.module, seconds)
