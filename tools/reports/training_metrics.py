"""Metrics of a training run: a JSON object per line for each step and epoch; a resumed run continues the file."""

from __future__ import annotations

import json
import math
import sys
from array import array
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.files import is_node, replaced
from glow_mlir.tools.command_line import STDOUT
from glow_mlir.training.loop import EpochDone, StepDone

Record = dict[str, Any]

STEP, EPOCH = "step", "epoch"
"""The kinds of records, in their field `kind`."""


def record_of(event: StepDone | EpochDone, samples: int) -> Record:
    """
    The record of a step or an epoch: kind, epoch and step (from 1), loss, seconds, samples per second.

    An epoch also has `evaluation_loss` and `accuracy`, `None` if unknown or not finite. `samples` is the number of
    samples processed in its seconds.
    """
    rate = samples / event.seconds if event.seconds else 0.0
    kind = STEP if isinstance(event, StepDone) else EPOCH
    common = {"kind": kind, "epoch": event.epoch, "step": event.step, "loss": event.loss}
    speed = {"seconds": event.seconds, "samples_per_second": rate}
    if isinstance(event, StepDone):
        return {**common, **speed}
    found = event.evaluation
    loss = found.loss if found is not None and math.isfinite(found.loss) else None
    return {**common, "evaluation_loss": loss, "accuracy": None if found is None else found.accuracy, **speed}


@dataclass
class Metrics:
    """The metrics of a run, including those before an interruption; each record is written immediately."""

    epochs: list[Record] = field(default_factory=list[Record])
    """The records of epochs."""
    steps: array[int] = field(default_factory=lambda: array("q"))
    """The numbers of steps; there may be millions."""
    losses: array[float] = field(default_factory=lambda: array("d"))
    """The losses of the steps."""
    stream: IO[str] | None = None
    destination: str = STDOUT
    """The name of the stream in errors."""

    def add(self, record: Record) -> None:
        """Write and remember a record; raises `OptionError` where it cannot be written."""
        self.remember(record)
        if self.stream is None:
            return
        try:
            print(json.dumps(record), file=self.stream, flush=True)
        except BrokenPipeError:  # The reader closed the pipe; all tools handle this alike.
            raise
        except OSError as error:
            raise OptionError(f"cannot be written: {error.strerror or error}", file=self.destination) from error

    def remember(self, record: Record) -> None:
        """Remember a record that is already written."""
        if record["kind"] == EPOCH:
            self.epochs.append(record)
        else:
            self.steps.append(record["step"])
            self.losses.append(record["loss"])

    def losses_of_epoch(self, step: int, per_epoch: int) -> list[float]:
        """The losses of the steps up to `step` in its epoch; empty if one is unknown."""
        begin = step - step % per_epoch
        found = [loss for number, loss in zip(self.steps, self.losses, strict=True) if begin < number <= step]
        return found if len(found) == step - begin else []


@contextmanager
def metrics_in(path: str | None, step: int) -> Generator[Metrics]:
    """
    Metrics written to a file (`-` for stdout), if one is given, starting after step `step`.

    The file keeps the records up to that step; later records, from a killed run, are overwritten. Raises `OptionError`
    if the file cannot be read or written.
    """
    if path is None or path == "-":
        yield Metrics(stream=None if path is None else sys.stdout)
        return
    file, metrics = Path(path), Metrics(destination=path)
    try:
        is_kept = step > 0 and file.exists() and not is_node(file)
        kept = _remembered(metrics, file, step) if is_kept else []
    except OSError as error:
        raise OptionError(f"cannot be read: {error.strerror or error}", file=path) from error
    if not is_node(file):
        with replaced(file) as written:
            written.write("".join(kept).encode())
    with _appended(file) as metrics.stream:
        yield metrics


def _appended(file: Path) -> IO[str]:
    """Open a file for appending; raises `OptionError` if that fails."""
    try:
        # Unbuffered, so that closing writes nothing.
        return TextIOWrapper(file.open("ab", buffering=0), encoding="utf-8", write_through=True)
    except OSError as error:
        raise OptionError(f"cannot be written: {error.strerror or error}", file=str(file)) from error


def _remembered(metrics: Metrics, file: Path, step: int) -> list[str]:
    """Add the lines of a file up to a step to the metrics, and return them; raises `OptionError` for other contents."""
    found: list[str] = []
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            record: Record = json.loads(line)
            if record["step"] <= step:
                metrics.remember(record)
                found.append(line)
        except (ValueError, TypeError, KeyError) as error:
            if number == len(lines) and not line.endswith("\n"):  # The process was killed while writing it.
                break
            hint = "name the file of the resumed run, or another one"
            raise OptionError(f"line {number} is not a metrics record", file=str(file), hint=hint) from error
    return found
