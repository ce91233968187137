"""`glow-train`: train the parameters of an ONNX model on samples in files, with checkpoints, metrics and a page."""

from __future__ import annotations

import signal
import sys
from argparse import Namespace
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from glow_mlir.errors import ExecutionError, InputError, OptionError
from glow_mlir.support.activity import warn
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.arguments.run_arguments import model_options
from glow_mlir.tools.arguments.training_arguments import (
    DEFAULT_BATCH,
    PROGRAM,
    SETTINGS,
    STDOUT_OPTIONS,
    optimizer_of,
    parse_arguments,
    quantization_of,
)
from glow_mlir.tools.command_line import EXIT_INTERRUPTED, EXIT_OK, run_tool, takes_stdout
from glow_mlir.tools.reports.progress import Progress

if TYPE_CHECKING:
    from types import FrameType

    from glow_mlir.api.training_session import TrainingSession
    from glow_mlir.support.symbols import Dimension
    from glow_mlir.tools.inputs.training_data import ArrayFiles, ImageFolder
    from glow_mlir.tools.reports.training_metrics import Metrics, Record
    from glow_mlir.training.batches import Batches, Samples
    from glow_mlir.training.loop import EpochDone, StepDone

PAGE_PAUSE = 2.0
"""The least seconds between two writes of the page, for short epochs."""


class Interruption:
    """Whether SIGINT or SIGTERM asked to stop; a second signal stops at once."""

    def __init__(self) -> None:
        self.is_wanted = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.is_wanted:
            raise KeyboardInterrupt
        self.is_wanted = True

    @contextmanager
    def noted(self) -> Generator[Interruption]:
        """Handle the signals inside the `with` statement."""
        before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass
class Run:
    """A training run: session, data, progress and files."""

    args: Namespace
    session: TrainingSession
    batches: Batches
    held_out: Samples | None
    metrics: Metrics
    progress: Progress
    interruption: Interruption
    drawn: float = 0.0
    """When the page was last written."""

    def train(self) -> bool:
        """Train; return whether training ran to completion."""
        from glow_mlir.tools.reports.training_report import StepLine
        from glow_mlir.training.loop import EpochDone, fit

        begin, per_epoch = self.session.steps, self.batches.per_epoch
        line = StepLine(self.progress, self.args.epochs, self.args.epochs * per_epoch, self.batches.size)
        losses = self.metrics.losses_of_epoch(begin, per_epoch)
        for event in fit(self.session, self.batches, self.args.epochs, self.held_out, losses):
            if isinstance(event, EpochDone):
                self._end_epoch(event, begin)
            else:
                line.show(self._record_of(event, 1))
            if self._is_kept(event):
                self._keep()
            # The event of an epoch follows that of its last step.
            if self.interruption.is_wanted and (isinstance(event, EpochDone) or not event.is_last):
                self._keep()
                return event.step == self.args.epochs * per_epoch
        return True

    def _record_of(self, event: StepDone | EpochDone, batches: int) -> Record:
        """The record of a step or an epoch; it is written to the metrics."""
        from glow_mlir.tools.reports.training_metrics import record_of

        record = record_of(event, batches * self.batches.size)
        self.metrics.add(record)
        return record

    def _end_epoch(self, event: EpochDone, begin: int) -> None:
        """Report an epoch; steps up to `begin` belong to an earlier run."""
        from glow_mlir.tools.reports.training_report import epoch_line

        record = self._record_of(event, min(self.batches.per_epoch, event.step - begin))
        if not takes_stdout(self.args, STDOUT_OPTIONS):
            self.progress.clear()
            print(epoch_line(record, self.args.epochs), flush=True)
        if monotonic() - self.drawn > PAGE_PAUSE:
            self.draw()

    def _is_kept(self, event: StepDone | EpochDone) -> bool:
        """Whether to write a checkpoint after a step or an epoch."""
        from glow_mlir.training.loop import EpochDone

        if isinstance(event, EpochDone):
            return True
        every = self.args.checkpoint_every
        return bool(every) and event.step % every == 0 and not event.is_last

    def _keep(self) -> None:
        if self.args.checkpoint is not None:
            self.session.save(self.args.checkpoint, decided(self.args, self.batches))

    def draw(self) -> None:
        """Write the page, if requested."""
        from glow_mlir.ir.text import write_text
        from glow_mlir.tools.reports.training_report import TrainingPage

        if self.args.html is not None:
            page = TrainingPage(Path(self.args.model).name, described(self.args, self.batches), self.metrics)
            write_text(page.html(), Path(self.args.html))
            self.drawn = monotonic()

    def how_to_go_on(self) -> str:
        """A line that tells how to continue after an interruption."""
        done = f"{PROGRAM}: stopped after step {self.session.steps} of {self.args.epochs * self.batches.per_epoch}"
        if self.args.checkpoint is None:
            return f"{done}; nothing is saved (hint: --checkpoint FILE saves it)"
        return f"{done}, saved in {self.args.checkpoint} (hint: the same command with --resume continues)"


def described(args: Namespace, batches: Batches) -> str:
    """The settings of a run in words."""
    given = {name: getattr(args, name) for name in ("loss", "optimizer", *SETTINGS, "schedule", "warm_up", "seed")}
    listed = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in given.items() if value is not None)
    return f"{len(batches.samples)} samples, {batches.per_epoch} batches of {batches.size} an epoch; {listed}"


def run(arguments: list[str]) -> int:
    """Run the tool on its arguments."""
    args = parse_arguments(arguments)
    progress = Progress()
    try:
        return trained(args, progress)
    finally:
        progress.clear()


def trained(args: Namespace, progress: Progress) -> int:
    """Train, and write the files that the options request; return the exit code."""
    from glow_mlir.tools.reports.training_metrics import metrics_in

    progress.say("compiling")
    session, batches, held_out = prepared(args)
    with closing(session):
        resume(args, session, batches)
        with metrics_in(args.metrics, session.steps) as metrics, Interruption().noted() as interruption:
            run_ = Run(args, session, batches, held_out, metrics, progress, interruption)
            is_done = run_.train()
            run_.draw()
    progress.clear()
    if not is_done:
        print(run_.how_to_go_on(), file=sys.stderr)
        return EXIT_INTERRUPTED
    if not session.is_finite():
        raise ExecutionError("parameters are not finite", hint="a smaller --learning-rate, or --clip-norm 1")
    session.export(args.output_file, args.output_profile)
    if not takes_stdout(args, STDOUT_OPTIONS):
        print(f"{args.output_file}: trained in {session.steps} steps")
        if args.output_profile is not None:
            print(f"{args.output_profile}: its profile, to quantize it by with --disable-bias-correction")
    return EXIT_OK


def prepared(args: Namespace) -> tuple[TrainingSession, Batches, Samples | None]:
    """The session, the batches and the evaluation samples; raises `GlowError` where these do not fit together."""
    from glow_mlir.api.training_session import TrainingSession
    from glow_mlir.tools.inputs.run_inputs import normalization_of
    from glow_mlir.tools.inputs.training_data import ArrayFiles, ImageFolder, read_samples
    from glow_mlir.training.batches import Batches

    normalization, files = normalization_of(args), dict[str, ArrayFiles | ImageFolder]()
    for name, labels in (("dataset", args.labels), ("evaluation", args.evaluation_labels)):
        if (path := getattr(args, name)) is not None:
            first = files.get("dataset")
            names = first.names if isinstance(first, ImageFolder) else None
            files[name] = read_samples(Path(path), labels and Path(labels), normalization, names)
    size, dimensions = batch_of(args)
    if size > (count := len(files["dataset"])):
        hint = "--batch-size takes fewer, if the first axis of the model is free"
        raise InputError(f"there are {count} samples, and a batch has {size}", file=args.dataset, hint=hint)
    steps = args.epochs * (count // size)
    options: dict[str, Any] = {
        **model_options(args),
        "dimensions": dimensions,
        "backend": args.backend,
        "threads": args.threads,
        "activation_percent": args.activation_percent,
    }
    session = TrainingSession(
        args.model,
        loss=args.loss,
        optimizer=optimizer_of(args, steps),
        trainable=args.trainable,
        seed=args.seed,
        accumulate=args.accumulate,
        processes=args.processes,
        quantization=quantization_of(args),
        **options,
    )
    samples = {name: fitting(session, item) for name, item in files.items()}
    return session, Batches(samples["dataset"], size, args.seed), samples.get("evaluation")


def batch_of(args: Namespace) -> tuple[int, dict[str, Dimension]]:
    """
    The number of samples in a batch, and the sizes of free dimensions, which are those of one part of a batch.

    Raises `OptionError` for a batch that cannot be split into equal parts, and for parts that the model does not
    accept.
    """
    from glow_mlir.training.training_module import batch_dimensions

    given: dict[str, Dimension] = dict(args.bind)
    free, fixed = batch_dimensions(args.model, given)
    parts = args.accumulate * args.processes
    size: int = args.batch_size or (fixed or max(DEFAULT_BATCH // parts, 1)) * parts
    if size % parts:
        reason = f"a batch of {size} samples cannot be split into {parts} equal parts (--accumulate × --processes)"
        raise OptionError(reason, hint=f"--batch-size {-(-size // parts) * parts}")
    part = size // parts
    if fixed not in (None, part):
        hint = f"--batch-size {fixed * parts}, or a model whose first axis is free"
        raise OptionError(f"the model takes {fixed} samples at a time, not {part}", file=args.model, hint=hint)
    sizes: dict[str, Dimension] = {name: part for name in free}
    return size, {**given, **sizes}


def fitting(session: TrainingSession, files: ArrayFiles | ImageFolder) -> Samples:
    """The samples in files, with targets that fit the loss; raises `InputError` where they do not fit."""
    from glow_mlir.tools.inputs.training_data import ImageSamples
    from glow_mlir.training.batches import TARGETS
    from glow_mlir.training.loop import check_targets

    samples = files.samples(session.inputs)
    targets = samples.classes if isinstance(samples, ImageSamples) else samples.arrays.get(TARGETS)
    if targets is not None:
        try:
            check_targets(session, targets)
        except InputError as error:
            error.file = files.file_of(TARGETS)
            raise
    return samples


def decided(args: Namespace, batches: Batches) -> dict[str, str]:
    """The settings that every step depends on; a resumed run must have the same."""
    return {
        "loss": args.loss,
        "optimizer": args.optimizer,
        "schedule": args.schedule,
        "seed": str(args.seed),
        "batch size": str(batches.size),
        "number of samples": str(len(batches.samples)),
    }


def resume(args: Namespace, session: TrainingSession, batches: Batches) -> None:
    """Continue from the checkpoint, if requested; raises `InputError` for a checkpoint of another run."""
    from glow_mlir.training.checkpoint import read_notes

    if not args.resume:
        return
    if not Path(args.checkpoint).exists():
        warn(InputError("does not exist yet: training starts from the beginning", file=args.checkpoint))
        return
    session.load(args.checkpoint)
    notes = read_notes(Path(args.checkpoint))
    for name, value in decided(args, batches).items():
        if notes.get(name, value) != value:
            reason, hint = f"was written with the {name} {notes[name]}, not {value}", "use the same setting to continue"
            raise InputError(reason, file=args.checkpoint, hint=hint)
    if args.learning_rate is not None:
        session.learning_rate = args.learning_rate


def main(argv: Sequence[str] | None = None) -> int:
    """Run `glow-train`; the exit code: 0 success, 1 wrong input or options, 2 a bug in the compiler, 130 stopped."""
    return run_tool(PROGRAM, run, argv)


if __name__ == "__main__":
    sys.exit(main())
