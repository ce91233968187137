"""Compilation of a module through the stages of a pipeline, with notification of observers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from glow_mlir.backends.interface import (
    AllocateConstants,
    Backend,
    backend_of,
    get_backend,
    module_backend,
    runnable_targets,
)
from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.dialects.target import Target
from glow_mlir.driver.model_checks import check_given
from glow_mlir.driver.pass_runner import PassRun, PassRunner
from glow_mlir.driver.pipelines import ASSIGN, COLLAPSING, LLVM, OPTIMIZED, SELECT, STAGE, Pipeline, Stage, collapsing
from glow_mlir.errors import CompilerBugError, ExtensionError, GlowError, LayersDifferError, OptionError
from glow_mlir.ir.out_of_memory import out_of_memory
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.text import one_line
from glow_mlir.support.activity import say
from glow_mlir.support.blame import foreign_location
from glow_mlir.support.collector import without_collector
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.devices.assign_target import AssignTargetPass

Made = TypeVar("Made")

Observer = Callable[[Stage, ModuleOp, float], None]
"""Called after each stage with the module and the seconds it took."""


def stage_of(module: ModuleOp) -> str:
    """The stage of a module; empty if it has none."""
    attribute = module.attributes.get(STAGE)
    return attribute.data if isinstance(attribute, StringAttr) else ""


@dataclass(frozen=True)
class _ReachPass(ModulePass):
    """Notify a compilation that its module has reached a stage."""

    stage: Stage
    reached: Callable[[Stage], None]

    name = "reach"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.reached(self.stage)


@dataclass
class Compilation:
    """
    One compilation of a module.

    It runs the pipeline of a backend, by default that of the functions, or `pipeline` as given; `disable` names passes
    to omit from either. `target` is for functions without one of their own, and `fields` override its fields; they must
    not contradict what functions declare. `tune` measures kernels (docs/tuning.md).
    """

    module: ModuleOp
    backend: str | None = None
    target: str | None = None
    profile: bool = False
    runner: PassRunner = field(default_factory=PassRunner)
    """The pass runner."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    pipeline: Pipeline | None = None
    disable: Sequence[str] = ()
    fields: Mapping[str, str | int] = field(default_factory=dict[str, str | int])
    tune: bool = False
    observers: Sequence[Observer] = ()
    again: Callable[[], ModuleOp] | None = None
    """Recreates the module before its first pass, after a failure; without it, a copy is kept."""
    as_given: bool = False
    """Whether the module was given as IR, to be run unchanged if the backend can."""
    _is_checked: bool = field(default=False, init=False)
    _collapses: bool = field(default=False, init=False)
    """Whether equal layers are compiled once."""

    def artifact(self, allocate: AllocateConstants | None = None) -> Any:
        """
        Compile to the backend's artifact, with constants stored by `allocate`.

        Equal layers are compiled once, unless their code depends on the elements of their weights.

        Raises `GlowError`, including `OutOfMemoryError`.
        """
        is_whole = not COLLAPSING.isdisjoint(self.disable)
        self._collapses = (
            self.again is not None and self.pipeline is None and stage_of(self.module) == "" and not is_whole
        )
        try:
            return self._compiler.compile(self, allocate)
        except LayersDifferError:
            if not self._collapses or self.again is None:
                raise
            return replace(self, module=self.again(), again=None).artifact(allocate)
        except MemoryError as error:
            raise out_of_memory(self.module, error) from error

    def finish(self, make: Callable[[Sequence[ModulePass]], Made]) -> Made:
        """Let `make` run the remaining stages on the module, and return its result."""
        ahead = self.ladder.stages[self.ladder.position(stage_of(self.module)) + 1 :]
        marks = [time.perf_counter()]

        def reached(stage: Stage) -> None:
            marks.append(time.perf_counter())
            self._reached(stage, marks[-1] - marks[-2])

        passes = [item for stage in ahead for item in (*stage.passes(), _ReachPass(stage, reached))]
        say(f"compiling: {ahead[-1].name}")
        try:
            made = make(passes[:-1])
        except (GlowError, MemoryError):
            raise
        except Exception as error:
            name = ahead[len(marks) - 1].name
            what = f"{type(error).__name__}: {one_line(error)}"
            if location := foreign_location(error):
                raise ExtensionError(f"stage '{name}' failed: {what}", file=location) from error
            reason = f"stage '{name}' failed, a bug of ours: {what}"
            hint = "please report it with what 'glow-opt --stop-after allocated' writes of the module"
            raise CompilerBugError(reason, hint=hint) from error
        self.seconds["code"] = time.perf_counter() - marks[-1]
        for observer in self.observers:
            observer(ahead[-1], self.module, self.seconds["code"])
        return made

    def _reached(self, stage: Stage, seconds: float) -> None:
        """Record that the module has reached a stage, and notify the observers."""
        if stage.name != LLVM:
            self.module.attributes[STAGE] = StringAttr(stage.name)
        self.seconds[stage.name] = seconds
        for observer in self.observers:
            observer(stage, self.module, seconds)

    def with_module(self, module: ModuleOp, backend: str) -> Any:
        """The artifact of another backend for an optimized module, compiled under the same observers."""
        module.attributes[STAGE] = StringAttr(OPTIMIZED.name)
        other = Compilation(
            module,
            backend,
            runner=self.runner,
            disable=self._known_to(backend),
            tune=self.tune,
            observers=self.observers,
        )
        made = other.artifact()
        for stage, seconds in other.seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        return made

    def _known_to(self, backend: str) -> list[str]:
        """The passes to omit that are in the pipeline of a backend."""
        specs = {spec.name for spec in get_backend(backend).pipeline().specs}
        return [name for name in self.disable if name in specs]

    @property
    def context(self) -> Context:
        """The context in which its dialects are registered."""
        return self.runner.context

    @cached_property
    def _compiler(self) -> Backend:
        """The backend."""
        return get_backend(self.backend or module_backend(self.module))

    @cached_property
    def _whole(self) -> Pipeline:
        """The pipeline before passes are omitted."""
        whole = self.pipeline or self._compiler.pipeline(self.target, self.profile)
        return whole.with_options(ASSIGN, **self.fields)

    @property
    def ladder(self) -> Pipeline:
        """
        The pipeline of this compilation.

        Raises `OptionError` for a pass that cannot be omitted, and for tuning a backend without kernels.
        """
        return self._ladder

    @cached_property
    def _ladder(self) -> Pipeline:
        whole = collapsing(self._whole) if self._collapses else self._whole
        if self.tune:
            if not any(spec.name == SELECT for spec in whole.specs):
                raise OptionError(
                    f"pipeline '{whole.name}' makes no machine code to tune", hint=f"backend='{DEFAULT_BACKEND}'"
                )
            whole = whole.with_options(SELECT, tune=True)
        present = {spec.name for spec in whole.specs}
        return whole.without(*(name for name in self.disable if name in present or name not in COLLAPSING))

    @without_collector()
    def run(self, until: str | None = None) -> ModuleOp:
        """Run the remaining stages, up to and including `until`, by default all."""
        names = self.ladder.stage_names
        wanted = self.ladder if until is None else self.ladder.until(until)
        reached = names.index(stage_of(self.module)) if stage_of(self.module) in names else -1
        if reached >= len(wanted.stages):
            raise OptionError(f"the module is at stage '{names[reached]}', behind '{until}'")
        ahead = wanted.stages[reached + 1 :]
        self.check_given()
        run = self.runner.begin(self.module, is_checked=True, again=None if reached >= 0 else self.again)
        for stage in ahead:
            self._climb(stage, run)
        return self.module

    def check_given(self) -> None:
        """
        Verify the invariants of the module's stage, once: any later violation is a compiler bug.

        After `assign-target`, functions without a target get one, and the options must not contradict the others.
        Raises `GlowError` for a violation, whatever passes this compilation omits.
        """
        if not self._is_checked:
            for item in self._passes_behind():
                if item.name == ASSIGN:
                    item.apply(self.context, self.module)
            check_given(self.module, self.context, self._whole, stage_of(self.module))
            self._is_checked = True

    def targets(self) -> dict[str, Target]:
        """Function → its own target or the one from the pipeline; raises `OptionError` as `assign-target` does."""
        assigning = [item for item in self._whole.passes() if isinstance(item, AssignTargetPass)]
        found: dict[str, Target] = {}
        for function in functions(self.module):
            if function.assigned is not None:
                backend_of(function)
            for item in assigning or [None]:
                found[function.sym_name.data] = item.target_of(function) if item else function.target
        return found

    def check_runnable(self) -> None:
        """Raise `OptionError` if this machine cannot run any of the functions, before a long compilation."""
        missing = {function: self._compiler.lacks(target) for function, target in self.targets().items()}
        if missing and all(missing.values()):
            function, reason = next(iter(missing.items()))
            raise OptionError(
                f"this machine cannot run code for the target of @{function}: it lacks {reason}",
                hint=f"it runs {', '.join(runnable_targets(self._compiler))}",
            )

    def _passes_behind(self) -> tuple[ModulePass, ...]:
        """The passes up to the module's stage."""
        stage, whole = stage_of(self.module), self._whole
        return whole.until(stage).passes() if stage in whole.stage_names else ()

    def _climb(self, stage: Stage, run: PassRun) -> None:
        """Run the passes of one stage, and notify the observers."""
        say(f"compiling: {stage.name}")
        start = time.perf_counter()
        for item in stage.passes():
            run.apply(item)
        self._reached(stage, time.perf_counter() - start)
