"""
Pipelines as values: the stages of a compilation, and the passes of each.

A backend defines its pipeline (`Backend.pipeline`), usually from those here. docs/pipelines.md explains how to inspect,
change and extend them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from difflib import get_close_matches
from functools import cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec, ParameterListType, ParameterType
from xdsl.utils.arg_spec import parse_pipeline as parse_specs
from xdsl.utils.exceptions import ArgSpecParseError

from glow_mlir.driver.nested_pipelines import flattened
from glow_mlir.errors import GlowError, OptionError
from glow_mlir.ir.universe import OWN_PASSES
from glow_mlir.support.dataclass import dataclass

ASSIGN = "assign-target"
"""The pass that assigns targets to functions."""

SELECT = "select"
"""The pass that selects kernels."""

SIMPLIFY = "simplify-convolutions"
"""
Graphs are profiled and quantized in front of this pass: constants are folded into weights, and nothing depends on
the machine yet.
"""

STAGE = "glow.stage"
"""The module attribute that names the last completed stage."""

ESSENTIAL = frozenset(
    {
        ASSIGN,
        "lower",
        "glow-high-to-glow-low",
        "decompose-data-movement",
        "stack",
        SELECT,
        "allocate",
        "glow-low-to-scf",
        "scf-to-llvm",
        "assign-devices",
        "place-operators",
        "partition",
        "insert-transfers",
        "insert-events",
    }
)
"""Passes that later stages depend on: kernels execute elementwise operators in stacks, and data movement as copies."""


def configured(name: str, **options: ParameterType) -> ArgSpec:
    """A pass with options, as `name{key=value}` in a pipeline."""
    return ArgSpec(name, {key: (value,) for key, value in options.items()})


@dataclass(frozen=True)
class Stage:
    """One stage of the ladder: its name, and the passes that lead to it from the previous one."""

    name: str
    specs: tuple[ArgSpec, ...] = ()

    @classmethod
    def of(cls, name: str, *passes: str | ArgSpec) -> Stage:
        """Build a stage from passes, each a string such as `a` or `b{x=1}`, or a value."""
        return cls(name, pass_specs(passes))

    def passes(self) -> tuple[ModulePass, ...]:
        """The pass objects; raises `OptionError` for an unknown pass."""
        return passes_of(self.specs)


@dataclass(frozen=True)
class Pipeline:
    """A named list of stages. Methods return modified pipelines; the text is accepted by `--pass-pipeline`."""

    name: str
    stages: tuple[Stage, ...]

    def __str__(self) -> str:
        return f"builtin.module({','.join(map(str, self.specs))})"

    @property
    def specs(self) -> tuple[ArgSpec, ...]:
        """All passes, in order."""
        return tuple(spec for stage in self.stages for spec in stage.specs)

    @property
    def stage_names(self) -> tuple[str, ...]:
        """The names of the stages, in order."""
        return tuple(stage.name for stage in self.stages)

    def passes(self) -> tuple[ModulePass, ...]:
        """The pass objects; raises `OptionError` for an unknown pass."""
        return passes_of(self.specs)

    def option(self, name: str, option: str, default: ParameterType) -> ParameterType:
        """The value of an option at the first occurrence of a pass; `default` if it is not given."""
        found = next(
            (spec.parameters[option] for spec in self.specs if spec.name == name if option in spec.parameters), ()
        )
        return found[0] if found else default

    def with_options(self, name: str, **options: ParameterType) -> Pipeline:
        """The pipeline with options set for each occurrence of a pass."""

        def edited(spec: ArgSpec) -> ArgSpec:
            if spec.name != name:
                return spec
            return ArgSpec(name, {**spec.parameters, **configured(name, **options).parameters})

        return replace(self, stages=tuple(replace(s, specs=tuple(map(edited, s.specs))) for s in self.stages))

    def for_target(self, target: str | None, backend: str | None = None) -> Pipeline:
        """The pipeline with another target for functions without one; `None` keeps the target as it is."""
        options = {"backend": backend, "target": target}
        return self.with_options(ASSIGN, **{name: value for name, value in options.items() if value is not None})

    def named(self, name: str) -> Pipeline:
        """The pipeline under another name."""
        return replace(self, name=name)

    def until(self, stage: str) -> Pipeline:
        """The stages up to and including `stage`; raises `OptionError` if there is no such stage."""
        return replace(self, stages=self.stages[: self.position(stage) + 1])

    def then(self, *stages: Stage) -> Pipeline:
        """The pipeline, followed by `stages`."""
        return replace(self, stages=(*self.stages, *stages))

    def position(self, stage: str) -> int:
        """The index of a stage, from 0; raises `OptionError` if there is no such stage."""
        if stage not in self.stage_names:
            raise OptionError(f"no stage '{stage}'", hint=f"stages are {', '.join(self.stage_names)}")
        return self.stage_names.index(stage)

    def without(self, *names: str) -> Pipeline:
        """
        Omit all occurrences of passes, to measure the effect of each.

        Raises `OptionError` for a pass that is not in the pipeline, and for one that later stages depend on.
        """
        for name in names:
            if name in ESSENTIAL:
                raise OptionError(f"the pass '{name}' cannot be left out", hint="the stages behind it need it")
        return self._edited(names, None, lambda number, count, spec: ())

    def before(self, name: str, *passes: str | ArgSpec, stage: str | None = None) -> Pipeline:
        """
        Insert `passes` before the first `name`, in the whole pipeline or in one stage.

        Raises `OptionError` if there is no such pass.
        """
        added = pass_specs(passes)
        return self._edited((name,), stage, lambda number, count, spec: (*added, spec) if number == 0 else (spec,))

    def after(self, name: str, *passes: str | ArgSpec, stage: str | None = None) -> Pipeline:
        """
        Insert `passes` after the last `name`, in the whole pipeline or in one stage.

        Raises `OptionError` if there is no such pass.
        """
        added = pass_specs(passes)
        return self._edited(
            (name,), stage, lambda number, count, spec: (spec, *added) if number == count - 1 else (spec,)
        )

    def replace(self, name: str, *passes: str | ArgSpec, stage: str | None = None) -> Pipeline:
        """Replace every `name` by `passes`; raises `OptionError` if there is no such pass."""
        added = pass_specs(passes)
        return self._edited((name,), stage, lambda number, count, spec: added)

    def _edited(
        self,
        names: Sequence[str],
        stage: str | None,
        edit: Callable[[int, int, ArgSpec], tuple[ArgSpec, ...]],
    ) -> Pipeline:
        """
        Replace each occurrence of those passes, in one stage or in all, by the result of `edit`.

        `edit` receives the index of the occurrence, and their number.
        """
        chosen = self.stages if stage is None else (self.stages[self.position(stage)],)
        present = [spec.name for part in chosen for spec in part.specs]
        for name in names:
            if name not in present:
                location = f"pipeline '{self.name}'" if stage is None else f"stage '{stage}' of pipeline '{self.name}'"
                raise OptionError(
                    f"there is no pass '{name}' in {location}", hint=f"it has {', '.join(dict.fromkeys(present))}"
                )
        seen = dict.fromkeys(names, -1)
        stages: list[Stage] = []
        for part in self.stages:
            specs: list[ArgSpec] = []
            for spec in part.specs:
                if spec.name not in seen or part not in chosen:
                    specs.append(spec)
                    continue
                seen[spec.name] += 1
                specs += edit(seen[spec.name], present.count(spec.name), spec)
            stages.append(replace(part, specs=tuple(specs)))
        return replace(self, stages=tuple(stages))


class PassObserver:
    """An observer of passes; by default, it does nothing."""

    def before(self, item: ModulePass, module: ModuleOp) -> None:
        """Called before a pass runs."""

    def after(self, item: ModulePass, module: ModuleOp) -> None:
        """Called after a pass has run, and its result is valid."""

    def failed(self, item: ModulePass, module: ModuleOp) -> None:
        """Called when a pass fails, with the module in its present state."""

    def finish(self) -> None:
        """Called when all passes have run, or one has failed."""


# ---- passes by name --------------------------------------------------------------------------------------------


PLUGINS: dict[str, Callable[[], type[ModulePass]]] = {}
"""Passes registered in this process only, by name."""


def available_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """All passes by name: xDSL's, ours, those of other packages with an entry point `xdsl.universe`, and plugins."""
    return {**Universe.get_multiverse().all_passes, **OWN_PASSES, **PLUGINS}


def pass_specs(passes: Iterable[str | ArgSpec]) -> tuple[ArgSpec, ...]:
    """
    Parse pass specifications from strings such as `a,b{x=1}` or `builtin.module(a,func.func(b{x=1}))`; values are kept.

    Raises `OptionError` for a syntax error.
    """
    found: list[ArgSpec] = []
    for item in passes:
        found += _parsed(item) if isinstance(item, str) else (item,)
    return tuple(found)


def _parsed(spec: str) -> tuple[ArgSpec, ...]:
    try:
        return tuple(parse_specs(flattened(spec.strip())))
    except ArgSpecParseError as error:
        *_, mark, message = [line for line in str(error).splitlines() if line.strip()]
        raise OptionError(f"pass pipeline '{spec}': {message.strip()} (column {mark.index('^') + 1})") from error


def passes_of(specs: Sequence[ArgSpec], text: str = "") -> tuple[ModulePass, ...]:
    """
    Build the passes of specifications; raises `OptionError` for an unknown pass or option.

    `text` is quoted in the error; by default the first pass at fault.
    """
    known = {**get_all_passes(), **OWN_PASSES}
    found: list[ModulePass] = []
    for spec in specs:
        if spec.name not in known:  # Other packages are queried last, since that is slow.
            known = available_passes()
        try:
            if spec.name not in known:
                near = get_close_matches(spec.name, known, n=1)
                raise ValueError("; ".join([f"there is no pass '{spec.name}'", *(f"is it '{name}'?" for name in near)]))
            kind = known[spec.name]()
            _check_options(spec, kind, text)
            found.append(kind.from_spec(spec) if spec.parameters or not _has_defaults(kind) else kind())
        except GlowError:  # Some of these are errors of option values, with a message of their own.
            raise
        except (ValueError, TypeError) as error:
            reason = f"pass pipeline '{text or spec}': {error}"
            raise OptionError(reason, hint="glow-opt --list-passes lists them") from error
    return tuple(found)


def _check_options(spec: ArgSpec, kind: type[ModulePass], text: str) -> None:
    """Raise `OptionError` for an unknown option of a pass, with the nearest known one."""
    spelled_as: Mapping[str, str] = getattr(kind, "SPELLED", {})
    names = (part.name for part in fields(kind) if part.init and (part.name != "name" or part.name in spelled_as))
    options = [spelled_as.get(name, name).replace("_", "-") for name in names]
    for name in spec.parameters:
        if (spelled := name.replace("_", "-")) not in options:
            near = get_close_matches(spelled, options, n=1) or options
            hint = ", ".join(near) or f"{spec.name} has no options"
            raise OptionError(f"pass pipeline '{text or spec}': {spec.name}: no option '{name}'", hint=hint)


@cache
def _has_defaults(kind: type[ModulePass]) -> bool:
    """Whether all options of a pass have defaults, so that it can be built without its annotations."""
    return all(part.default is not MISSING or part.default_factory is not MISSING for part in fields(kind) if part.init)


def parse_pipeline(spec: str) -> PassPipeline:
    """
    Parse the passes of `-p` or `--pass-pipeline`; raises `OptionError` for an unknown pass or option.

    Accepts `a,b{x=1}` and `builtin.module(a,func.func(b{x=1}))`.
    """
    return PassPipeline(passes_of(pass_specs([spec]), spec))


# ---- the stages ------------------------------------------------------------------------------------------------


IMPORTED = Stage.of("imported")
"""The graph as imported by the frontend."""

DIFFERENTIATED = Stage.of(
    "differentiated",
    "differentiate",  # Before optimization: inference folds and lowers values that training needs.
)
"""The graph with gradients as ordinary operators."""

OPTIMIZED = Stage.of(
    "optimized",
    ASSIGN,  # All other passes query the target.
    "fold-into-trees",  # First: if it applies, little of the graph is left.
    "canonicalize",  # Identities and merged pairs of single operators, so that the rest sees plain forms.
    "raise-gathers",  # Before operators on whole tables are folded.
    "fold-constants",  # Computations on constants alone.
    "count-trips",  # Conditions of loops that count, while their bounds are constants.
    "simplify-control-flow",  # Conditions and trip counts that constants decide are known now.
    "fold-quantization",  # Before other operators separate quantized operands from their users.
    "gather-to-slice",  # Indices that are known now.
    "shrink-splats",  # Uniform operands need no shape.
    "fold-dilated-convolutions",  # Before transposes and reshapes move away from the convolution.
    "sink-transposes",  # The transposes of NCHW models meet, and cancel.
    "sink-reshapes",  # So do reshapes.
    "fold-constants",  # Transposes that met a constant.
    "cse",  # Formulas are matched after equal parts are merged.
    "recognize-activations",
    "recognize-softmax",
    "recognize-normalization",
    "fold-transposes-into-matmul",  # Transposes that are left before matrix products.
    "merge-pads",  # Into the following convolutions and pools; before arithmetic on cropped results is folded.
    "fold-into-weights",  # After transposes no longer stand between a convolution and its normalization.
    "merge-arithmetic",  # Chains that were not folded into weights.
    "recognize-attention",  # After scales of queries are folded into weights.
    "simplify-convolutions",
    "flatten-convolutions",  # After taps that only meet padding are gone.
    "merge-matmuls",
    "recognize-grouped-products",  # For operators that are not quantized yet.
    "remove-identity-clips",  # By the range of their operands.
    "raise-clips",  # To the producers of values, whose epilogues they become.
    "sink-conversions",
    "fold-quantization",  # Quantizations that transposes have left.
    "canonicalize",  # Operators that folding made trivial.
    "deduplicate",  # Equal constants, so that their users are equal.
    "cse",  # Last, when equal operators look equal.
    "remove-unused-storage",  # Constants that folding replaced.
)
"""The graph after the optimization that every backend shares."""


PLACED = Stage.of(
    "placed",
    "assign-devices",
    "place-operators",  # On the optimized graph: support and cost depend on the lowered operators.
)
"""The graph with a device for each operator."""

PARTITIONED = Stage.of(
    "partitioned",
    "partition",
    "verify-partitioned",
)
"""Functions for one device each, and functions that call them; each is compiled separately from here."""

HOST_PROGRAM = Stage.of(
    "host-program",
    "glow-high-to-glow-low",  # For the calling functions only.
    "insert-transfers",
    "shorten-lifetimes",
    "insert-events",
    "verify-low",
    "verify-host-program",
)
"""Host instructions for the queues of the devices."""

LOWERED = Stage.of(
    "lowered",
    "bin-trees",  # By whether the target has vectors.
    "lower-quantization",  # Quantized products become products of integers, which backends execute.
    "lower",  # Operators that the backend does not execute, in simpler ones.
    "merge-reductions",  # After those of products with zero points are known.
    "expand-powers",  # Cheaper than the functions of kernels.
    "sink-clips",  # If they are not fused into products for free.
    "sink-transposes",  # Transposes of lowerings that need another layout.
    "fold-transposes-into-pools",  # Transposes that are left around single pools.
    "split-windows",  # In the layout that pools have now.
    "canonicalize",  # Lowerings emit general forms.
    "hoist-from-loops",  # Products have the backend's form, and their rows are computed at once.
    "sink-from-loops",  # So are products of rows that loops stack.
    "unroll-loops",  # Short loops, whose indices become constants.
    "simplify-control-flow",  # Layouts of carried values: transposes have moved to the ends of trips.
    configured("fold-constants", quantized=True),  # Weights of lowerings, and quantized constants without kernels.
    "fold-into-weights",  # Scales and shifts that lowerings left after convolutions.
    "cse",  # Equal parts of lowered operators.
    "lower",  # Operators that folding created.
    "remove-unused-storage",  # Constants that folding replaced.
    "verify-lowered",
)
"""The graph in operators that the backend executes."""


SCHEDULED = Stage.of(
    "scheduled",
    "schedule",  # An order that needs little memory.
)
"""The graph whose order of operators is the schedule."""

INSTRUCTIONS = Stage.of(
    "instructions",
    "glow-high-to-glow-low",  # Instructions on buffers instead of operators on tensors.
    "verify-low",
)
"""Instructions on buffers, one or more for each operator."""


STACKED = Stage.of(
    "stacked",
    "decompose-data-movement",  # Concatenations, slices, pads and transposes become copies between views.
    "eliminate-copies",  # Stacks then read and write where copies did.
    "stack",  # Elementwise instructions in one loop.
    "fuse-epilogues",  # Stacks after the instructions that feed them.
    "fuse-prologues",  # Other stacks before the instructions that read them.
    configured("eliminate-copies", inside=True),  # Stacks work in place on carried values.
    "tile-lines",  # Large results that are left, so that they stay in the cache.
    "share-buffers",  # After fusion, which determines what works in place.
    "eliminate-dead-stores",  # Stores that sharing and fusion left without readers.
    "shorten-lifetimes",  # Loops free buffers earlier than their parts did.
    "verify-low",
)
"""Instructions after the optimization of memory traffic."""

SELECTED = Stage.of(
    "selected",
    SELECT,  # Kernel, tiles, packed constants, scratch.
    "parameterize-scalars",  # Layers that differ in numbers share machine code.
    "remove-unused-storage",  # Constants that are packed now.
    "verify-selected",
)
"""Instructions that name their kernels."""


ALLOCATED = Stage.of(
    "allocated",
    "shorten-lifetimes",  # Scratch of kernels lives as short as they run.
    "allocate",  # Region and offset of every buffer.
    "verify-allocated",
)
"""Instructions whose buffers have offsets."""


STRUCTURED = "structured"
"""The stage of functions of the `llvm` dialect whose loops and branches are regions."""

LLVM = "llvm"
"""The stage of LLVM's own dialect, without operations of ours."""

MACHINE_CODE = (ALLOCATED.name, STRUCTURED, LLVM)
"""The last stages of a pipeline that ends with machine code."""


def machine_code_stages(profile: bool) -> tuple[Stage, Stage]:
    """The stages after *allocated*; `profile` records the time of each instruction."""
    instrument = {"profile": True} if profile else {}
    emission = configured("glow-low-to-scf", **instrument)
    return Stage.of(STRUCTURED, emission, "verify-structured"), Stage.of(LLVM, "scf-to-llvm")


# ---- the pipelines ---------------------------------------------------------------------------------------------


OPTIMIZE = Pipeline("optimize", (IMPORTED, DIFFERENTIATED, OPTIMIZED))
"""Backend-independent optimization of a graph."""


def partitioned_pipeline(backend: str, target: str | None = None) -> Pipeline:
    """From a graph to functions for several devices."""
    return OPTIMIZE.named(backend).then(PLACED, PARTITIONED, HOST_PROGRAM).for_target(target, backend)


def profiling(pipeline: Pipeline, equalize: bool = False) -> Pipeline:
    """
    A pipeline that also saves the values that the pass `quantize` looks up in a profile, after channel equalization if
    requested.
    """
    passes = ("equalize-channels",) * equalize
    return pipeline.before(SIMPLIFY, *passes, "instrument-profile", stage=OPTIMIZED.name)


def quantizing(pipeline: Pipeline, options: Mapping[str, ParameterType | tuple[str, ...]]) -> Pipeline:
    """A pipeline that quantizes with those options of the pass `quantize`."""
    parameters: dict[str, ParameterListType] = {
        name: value if isinstance(value, tuple) else (value,) for name, value in options.items()
    }
    return pipeline.before(SIMPLIFY, ArgSpec("quantize", parameters), "fold-quantization", stage=OPTIMIZED.name)


def converting(pipeline: Pipeline, precision: str, keep: tuple[str, ...] = ()) -> Pipeline:
    """A pipeline that computes in that precision, except the nodes or kinds in `keep`."""
    spec = ArgSpec("convert-precision", {"to": (precision,), **({"keep": keep} if keep else {})})
    return pipeline.before("deduplicate", spec, "canonicalize", "fold-constants", stage=OPTIMIZED.name)


def quantizing_weights(pipeline: Pipeline, to: str, keep: tuple[str, ...] = ()) -> Pipeline:
    """A pipeline that quantizes weights, except those of the nodes or kinds in `keep`."""
    spec = ArgSpec("quantize-weights", {"to": (to,), **({"keep": keep} if keep else {})})
    return pipeline.after("merge-matmuls", spec, stage=OPTIMIZED.name)


def sharing(pipeline: Pipeline, passes: Sequence[str], assignments: str = "") -> Pipeline:
    """
    A pipeline for several devices that split operators among them by those passes, except operators that a file assigns
    to one.
    """
    whole = pipeline.after("assign-devices", *passes, "fold-constants", "remove-unused-storage", stage=PLACED.name)
    for name in passes if assignments else ():
        whole = whole.with_options(name, assignments=assignments)
    return whole


def exchanging(pipeline: Pipeline, stage: str) -> Pipeline:
    """
    A pipeline that places inputs and outputs among the activations, for a module at a stage.

    Raises `OptionError` if its buffers have offsets already.
    """
    if stage in MACHINE_CODE:
        reason = f"a module at stage '{stage}' has places for inputs and outputs already"
        raise OptionError(reason, hint="give it at an earlier stage")
    return pipeline.replace("allocate", configured("allocate", exchanged=True), stage=ALLOCATED.name)


COLLAPSING = frozenset({"collapse-layers", "expand-layers"})
"""The passes that `collapsing` adds: leaving out any leaves out all, and pipelines without them lack nothing."""


def collapsing(pipeline: Pipeline) -> Pipeline:
    """A pipeline that compiles equal layers once, if it leads from a graph to instructions with kernels."""
    named = {stage.name: {spec.name for spec in stage.specs} for stage in pipeline.stages}
    anchors = {OPTIMIZED.name: {"simplify-control-flow", "merge-arithmetic"}, SELECTED.name: {SELECT}}
    if not all(names <= named.get(stage, set()) for stage, names in anchors.items()):
        return pipeline
    early = configured("collapse-layers", arithmetic=False)
    whole = pipeline.before("simplify-control-flow", early, stage=OPTIMIZED.name)
    whole = whole.after("merge-arithmetic", "collapse-layers", stage=OPTIMIZED.name)
    return whole.after(SELECT, "expand-layers", stage=SELECTED.name)


def rematerializing(pipeline: Pipeline, percent: int) -> Pipeline:
    """A pipeline that recomputes values to reduce the memory of activations to that percentage."""
    return pipeline.before("schedule", configured("rematerialize", percent=percent), stage=SCHEDULED.name)


def memory_pipeline(backend: str, target: str | None = None) -> Pipeline:
    """From a graph to instructions with kernels and offsets, shared by all compiling backends."""
    stages = (LOWERED, SCHEDULED, INSTRUCTIONS, STACKED, SELECTED, ALLOCATED)
    return OPTIMIZE.named(backend).then(*stages).for_target(target, backend)
