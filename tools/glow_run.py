"""`glow-run`: compile a model, run it, and report outputs, times and correctness."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from glow_mlir.dialects.packages import DEFAULT_BACKEND, SEVERAL_BACKENDS
from glow_mlir.errors import OptionError
from glow_mlir.support.activity import watching
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Dimension
from glow_mlir.tools.arguments.quantization_arguments import WITHOUT_FILE, chosen_quantization
from glow_mlir.tools.arguments.run_arguments import (
    COMPILED,
    HOST,
    PROGRAM,
    code_options,
    is_measured,
    is_silent,
    model_options,
    parse_arguments,
)
from glow_mlir.tools.command_line import EXIT_ERROR, EXIT_OK, run_tool
from glow_mlir.tools.inputs.text_files import STDIN
from glow_mlir.tools.reports.log_output import wanted_log, write_log
from glow_mlir.tools.reports.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import ModuleOp

    from glow_mlir.api.model_session import ModelSession
    from glow_mlir.driver.compile_times import CompileTimes
    from glow_mlir.driver.pipelines import PassObserver, Pipeline, Stage
    from glow_mlir.runtime.queue_trace import QueueTrace
    from glow_mlir.tools.inputs.run_inputs import Inputs
    from glow_mlir.tools.reports.compilation_comparison import Seen, Side
    from glow_mlir.tools.reports.latency import Budget
    from glow_mlir.tools.reports.phase_dump import PhaseDump
    from glow_mlir.tools.reports.picture_output import Pictures
    from glow_mlir.tools.reports.placement_summary import PlacementSummary


DEFAULT_ITERATIONS = 10
DEFAULT_WARMUP = 200.0


class Section(Protocol):
    """A section of the report: printed text, and JSON data under a key."""

    @property
    def key(self) -> str:
        """The key of the section in JSON."""
        ...

    def show(self) -> None:
        """Print the section on stdout."""

    def data(self) -> object:
        """The section as JSON data."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the exit code."""
    return run_tool(PROGRAM, lambda arguments: ModelRun(parse_arguments(arguments)).execute(), argv)


@dataclass
class ModelRun:
    """One run of the tool: options, progress and report."""

    args: Namespace
    progress: Progress = field(default_factory=Progress)
    report: dict[str, object] = field(default_factory=dict[str, object])
    sizes: Mapping[str, Dimension] = field(default_factory=dict[str, Dimension])
    """Free dimension → its size in the inputs of the run."""
    pictures: Pictures | None = None
    placement: PlacementSummary | None = None
    seen: Seen | None = None
    """The observations of the compilation for a comparison."""
    model: Any = None
    """The model in the form that a session accepts, once prepared."""
    other: ModelRun | None = None
    """The second run of a comparison."""
    is_other: bool = False
    """Whether this is the second run of a comparison, which writes no files."""
    times: CompileTimes = field(init=False)

    def execute(self) -> int:
        """Execute the options; return the exit code."""
        try:
            return self._execute()
        finally:
            self.progress.clear()

    def _execute(self) -> int:
        from glow_mlir.tools.inputs.run_inputs import read_inputs
        from glow_mlir.tools.reports.run_report import CompileSummary, OutputSummary, write_arrays, write_json

        args = self.args
        self._prepare()
        given = read_inputs(args)
        session = self._compiled(given)
        inputs = self._inputs_of(session, given)
        self.progress.say("running")
        with watching(self.progress.say), self.times.measuring_run():
            found = session.run(inputs)
        outputs = self._without_values(found)
        values: Mapping[str, np.ndarray] = {}
        if session.specializations:
            self.sizes, values = session.specializations[-1].sizes, session.specializations[-1].values
        self.report |= {"model": args.model, "backend": args.backend, "target": args.target or HOST}
        self._add(CompileSummary(self.times), is_shown=is_measured(args))
        if self.placement is not None:
            self._add(self.placement)
            self._draw_devices(None)
        labels: Sequence[str] = getattr(session.model, "labels", tuple)()
        self._add(OutputSummary(outputs, labels))
        if args.outputs is not None:
            write_arrays(outputs, Path(args.outputs))
        if args.stats is not None:
            write_json(statistics(session), args.stats)
        if args.quantization_report is not None:
            self._add_quantization(inputs)
        if is_measured(args):
            self._measure(session, inputs)
        if self.other is not None:
            self._compare(self.other, given, self._side(session, inputs, outputs))
        is_right = args.check is None or self._check_layers(inputs, values, outputs)
        if args.json is not None:
            write_json(self.report, args.json)
        return EXIT_OK if is_right else EXIT_ERROR

    def _prepare(self) -> None:
        """Load the model, and find errors before a long compilation; also for the second run."""
        from glow_mlir.api.model_identity import model_backend
        from glow_mlir.api.models import accepted_model

        self.model = self._model() if self.model is None else self.model
        self.args.backend = self.args.backend or model_backend(accepted_model(self.model), self.args.devices or "")
        needed = [name for name in COMPILED if getattr(self.args, name)]
        if self.args.backend == SEVERAL_BACKENDS:  # Measured by queues, not instructions.
            needed = [name for name in needed if name not in ("profile", "trace")]
        if needed:
            check_machine_code(self.args.backend, needed[0])
        if self.args.target is not None and not self.args.devices:  # Devices have their own targets.
            check_runnable(self.args.backend, self.args.target)
        if self.args.compare is not None:
            from glow_mlir.tools.reports.compilation_comparison import other_arguments

            other = other_arguments(self.args.arguments, self.args.compare)
            # Standard input can be read only once.
            known = self.model if other.model == self.args.model else None
            self.other = ModelRun(other, self.progress, model=known, is_other=True)
            self.other._prepare()
        if self.args.check is not None:
            from glow_mlir.tools.reports.layer_check import check_reference

            check_reference(self.args.check, "stdin.mlir" if self.args.model == STDIN else self.args.model)

    def _add(self, section: Section, is_shown: bool = True) -> None:
        """Add a section to the report, and print it."""
        self.progress.clear()
        self.report[section.key] = section.data()
        if is_shown and not is_silent(self.args):
            section.show()

    def _model(self) -> Any:
        """The model in the form that a session accepts; a module for stdin."""
        if self.args.model != STDIN:
            return self.args.model
        from glow_mlir.ir.context import new_context
        from glow_mlir.ir.text import parse_module
        from glow_mlir.tools.mlir_text.source_lines import STDIN as STDIN_NAME
        from glow_mlir.tools.mlir_text.source_lines import read_stdin

        return parse_module(read_stdin(), new_context(), STDIN_NAME)

    @property
    def _options(self) -> dict[str, Any]:
        """The session options."""
        args = self.args
        return {
            "backend": args.backend,
            **model_options(args),
            "dimensions": {**dict(args.bind), **self.sizes},
            **code_options(args),
            "entry": args.entry,
            "quantize": chosen_quantization(args),
            "configuration": args.load_configuration,
        }

    @property
    def _compile_options(self) -> dict[str, Any]:
        """The session options for the run; the compilation may have to keep values."""
        if self.args.dump_values is None:
            return self._options
        from glow_mlir.tools.reports.value_dump import value_pipeline

        kept = {name: value for name, value in self._options.items() if name not in ("target", "disable")}
        return {**kept, "pipeline": value_pipeline(self.args)}

    def _without_values(self, outputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs of the model itself; writes the values kept for `--dump-values` into their folder."""
        if self.args.dump_values is None:
            return outputs
        from glow_mlir.tools.reports.value_dump import split_values, write_values

        own, values = split_values(outputs)
        write_values(values, Path(self.args.dump_values), self.args.values_of or "*")
        return own

    def _compiled(self, given: Inputs) -> ModelSession:
        """The compiled model, with the observers that the options request."""
        from glow_mlir.driver.compile_times import CompileTimes

        args = self.args
        dump, log = self._phase_dump(), wanted_log(args)
        self.placement = self._placement()
        pictures = self.pictures = self._pictures()
        if args.compare is not None or self.is_other:
            from glow_mlir.tools.reports.compilation_comparison import Seen

            self.seen = Seen()
        observers = [item for item in (dump, pictures, self.seen, self.placement) if item is not None]
        self.times = CompileTimes([self._tell, *observers])
        # All readers share one log, because tracking a pass costs about as much as many passes.
        readers = [reader for reader in (pictures, self.seen) if reader is not None]
        logs = [kept for kept in (log, *(reader.log for reader in readers)) if kept is not None][:1]
        for reader in readers:
            (reader.log,) = logs
        # Counts come first, so that time spent on the log is not counted as pass time.
        readings = [*([pictures.counts] if pictures is not None else []), *logs]
        # Observers need a real compilation: the cache would skip it, along with its warnings.
        is_seen = bool(observers or logs) or args.stats is not None or args.dump_values is not None
        cache = args.cache and not is_seen
        self.progress.say("compiling")
        try:
            with watching(self.progress.say), self.times.measuring():
                session = self._opened(cache, readings)
                if is_seen and (sizes := self._missing_sizes(session, given)):
                    self.sizes = sizes
                    session = self._opened(cache, readings)
        finally:
            if dump is not None:
                dump.finish()
        self.progress.clear()
        if observers or logs or args.dump_values is not None:
            session.require_sizes()
        if log is not None:
            write_log(log, args)
        if pictures is not None and not args.profile and args.compare is None and not self.is_other:
            pictures.write(Path(args.model).name)
        return session

    def _opened(self, cache: bool, pass_observers: Sequence[PassObserver]) -> ModelSession:
        """A session with the model, which is not compiled yet if it has free sizes."""
        from glow_mlir.api.model_session import ModelSession

        return ModelSession.of(
            self.model,
            **self._compile_options,
            profile=bool(self.args.profile or self.args.trace) and self.placement is None,
            cache=cache,
            observers=[self.times],
            pass_observers=pass_observers,
        )

    def _inputs_of(self, session: ModelSession, given: Inputs) -> dict[str, np.ndarray]:
        """The inputs of a run; missing inputs are drawn at the largest bound of their free dimensions."""
        from glow_mlir.tools.inputs.run_inputs import largest

        return given.complete(largest(session.first.inputs, dict(self.args.bind)), session.shape_inputs)

    def _missing_sizes(self, session: ModelSession, given: Inputs) -> dict[str, Dimension]:
        """
        Free dimension → its size in the inputs: compile for these sizes now, so that the compilation can be observed.
        """
        from glow_mlir.tools.inputs.run_inputs import largest

        arguments = largest(session.first.inputs, dict(self.args.bind))
        if all(argument.is_static for argument in arguments):
            return {}
        inputs = self._inputs_of(session, given)
        fitting = (
            item for item in arguments if item.accepts(inputs[item.name].shape)
        )  # The call reports other shapes.
        return {label: size for item in fitting for label, size in item.sizes(inputs[item.name].shape)}

    def _side(self, session: ModelSession, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> Side:
        """This run as one side of a comparison."""
        from glow_mlir.tools.reports.compilation_comparison import Side

        assert self.seen is not None
        return Side(session, self.seen, inputs, outputs)

    def side(self, given: Inputs) -> Side:
        """Compile and run the model as the second side of a comparison."""
        session = self._compiled(given)
        inputs = self._inputs_of(session, given)
        return self._side(session, inputs, session.run(inputs))

    def _compare(self, run: ModelRun, given: Inputs, one: Side) -> None:
        """Compile and run the second model, and report both side by side."""
        from glow_mlir.ir.text import write_text
        from glow_mlir.pictures.page import Page
        from glow_mlir.tools.reports.compilation_comparison import CompilationComparison, measured_in_turns

        other = run.side(given)
        self.progress.say("measuring")
        times = measured_in_turns([one.run, other.run], self._budget)
        found = CompilationComparison(one, other, (times[0], times[1]))
        self._add(found)
        if self.pictures is not None and run.pictures is not None and self.args.dump_html is not None:
            shown = [self.pictures.shown("one"), run.pictures.shown("other")]
            title = f"{Path(self.args.model).name} and {self.args.compare}"
            write_text(Page(title, shown, found.rows).html(), Path(self.args.dump_html))

    def _placement(self) -> PlacementSummary | None:
        """The observer of the placement on devices, if there are several."""
        if self.args.backend != SEVERAL_BACKENDS:
            return None
        from glow_mlir.tools.reports.placement_summary import PlacementSummary

        return PlacementSummary()

    def _pictures(self) -> Pictures | None:
        """The observer that draws pictures, if one is requested."""
        page = self.args.dump_html if self.placement is None else None  # Several devices have a page of their own.
        if self.args.dump_dot is None and page is None:
            return None
        from glow_mlir.tools.reports.picture_output import Pictures

        return Pictures(self.args, self._pipeline)

    @property
    def _pipeline(self) -> Pipeline:
        """The pipeline that compiles the model."""
        from glow_mlir.backends.interface import get_backend

        return self._compile_options.get("pipeline") or get_backend(self.args.backend).pipeline(self.args.target)

    def _tell(self, stage: Stage, module: ModuleOp, seconds: float) -> None:
        """Show the stage that the compilation has reached."""
        self.progress.say(f"compiling: {stage.name}")

    def _phase_dump(self) -> PhaseDump | None:
        """The observer that writes all stages, if requested."""
        if self.args.dump_phases is None:
            return None
        from glow_mlir.tools.reports.phase_dump import PhaseDump

        return PhaseDump(Path(self.args.dump_phases), self._pipeline.stage_names)

    def _add_quantization(self, inputs: dict[str, np.ndarray]) -> None:
        """Report the precision of each value, and its distance from f32."""
        from glow_mlir.tools.reports.quantization_report import quantization_report

        self.progress.say("comparing with f32")
        report = quantization_report(self.model, Path(self.args.model).name, self._options, inputs)
        self._add(report)
        if self.args.quantization_report != WITHOUT_FILE:
            report.write(Path(self.args.quantization_report))

    def _measure(self, session: ModelSession, inputs: dict[str, np.ndarray]) -> None:
        """Run as often as the options request; report latency and profile."""
        from glow_mlir.tools.reports.latency import measure

        args = self.args
        self.progress.say("measuring")
        budget = self._budget
        if self.placement is not None and (args.profile or args.trace):
            self._trace_queues(session, inputs, budget)
        elif not (args.profile or args.trace):
            self._add(measure(lambda: session.run(inputs), budget))
        else:
            self._profile(session, inputs, budget)

    def _trace_queues(self, session: ModelSession, inputs: dict[str, np.ndarray], budget: Budget) -> None:
        """Measure, and report the timeline of the device queues."""
        from glow_mlir.ir.text import write_text
        from glow_mlir.runtime.queue_trace import QueueTrace, tracing
        from glow_mlir.runtime.trace import chrome_trace
        from glow_mlir.tools.reports.latency import measure
        from glow_mlir.tools.reports.queue_times import QueueTimes

        trace = QueueTrace()
        session.run(inputs)
        with tracing(trace):
            measurement = measure(lambda: session.run(inputs), budget)
        self._add(measurement)
        self._add(QueueTimes(trace))
        self._draw_devices(trace)
        if self.args.trace is not None:
            text = chrome_trace(trace.events(), f"{PROGRAM} {self.args.model}", trace.queues)
            write_text(text, Path(self.args.trace))

    def _draw_devices(self, trace: QueueTrace | None) -> None:
        """Write the page about devices, if requested; if queues are measured, after the measurement."""
        args, placement = self.args, self.placement
        if placement is None or args.dump_html is None or (trace is None) == bool(args.profile or args.trace):
            return
        from glow_mlir.ir.text import write_text
        from glow_mlir.pictures.device_page import device_page

        page = device_page(Path(args.model).name, placement.shares, placement.plan, trace)
        write_text(page, Path(args.dump_html))

    @property
    def _budget(self) -> Budget:
        """The number and duration of runs in the options."""
        from glow_mlir.tools.reports.latency import Budget

        args = self.args
        warmup = DEFAULT_WARMUP if args.warmup is None else args.warmup
        return Budget(args.iterations or DEFAULT_ITERATIONS, args.duration or 0.0, warmup)

    def _profile(self, session: ModelSession, inputs: dict[str, np.ndarray], budget: Budget) -> None:
        """Measure, and report the time of each instruction."""
        from glow_mlir.ir.text import write_text
        from glow_mlir.runtime.trace import chrome_trace
        from glow_mlir.tools.reports.layer_profile import profiled_runs

        profile = profiled_runs(lambda: session.run(inputs), session.machine_entry, budget)
        self._add(profile.measurement)
        if self.args.profile:
            self._add(profile)
        if self.args.profile and self.pictures is not None:
            self.pictures.times += profile.step_times()
            self.pictures.write(Path(self.args.model).name)
        if self.args.trace is not None:
            write_text(
                chrome_trace(profile.events(), f"{PROGRAM} {self.args.model}", profile.tracks), Path(self.args.trace)
            )

    def _check_layers(
        self, inputs: dict[str, np.ndarray], values: Mapping[str, np.ndarray], outputs: dict[str, np.ndarray]
    ) -> bool:
        """Compare all layers with the reference; return whether they agree."""
        from glow_mlir.tools.reports.layer_check import Comparison, Tolerance

        args = self.args
        self.progress.say("checking")
        tolerance = Tolerance(args.rtol, args.atol)
        found = Comparison(self.model, self._options, inputs, args.check, tolerance, values).run(outputs)
        self._add(found)
        return found.is_right


def check_machine_code(backend: str, option: str) -> None:
    """Raise `OptionError` for an option that needs machine code if the backend generates none."""
    from glow_mlir.backends.interface import get_backend

    if not get_backend(backend).MACHINE_CODE:
        raise OptionError(f"--{option} needs machine code", hint=f"--backend {DEFAULT_BACKEND}")


def check_runnable(backend: str, target: str) -> None:
    """Raise `OptionError` where this machine cannot run code for a target of the backend."""
    from glow_mlir.backends.interface import get_backend

    chosen = get_backend(backend)
    if missing := chosen.lacks(chosen.target(target)):
        reason = f"this machine cannot run code for '{target}': it lacks {missing}"
        raise OptionError(reason, hint="--target host")


def statistics(session: ModelSession) -> dict[str, object]:
    """Sizes in bytes, instructions by kind, and seconds by stage of a compiled model, plus the bounds on efficiency."""
    from glow_mlir.runtime.code_sizes import code_sizes

    entry = session.machine_entry.entry
    return {
        **code_sizes(session.machine_code, session.machine_entry),
        "arena_lower_bound": entry.activations_bound,
        "arena_efficiency": entry.activations_bound / entry.activations if entry.activations else 1.0,
        "instructions": dict(sorted(Counter(step.kind for step in entry.steps).items())),
        "compile_seconds": session.compile_seconds,
        "specializations": [item.data() for item in session.specializations],
    }


if __name__ == "__main__":
    sys.exit(main())
