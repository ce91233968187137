"""The output of `glow-train`: a line after each epoch, a progress line, and a page with curves."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from glow_mlir.pictures.charts import Curve, curves, document, paragraph, table
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.reports.progress import Progress, bar
from glow_mlir.tools.reports.training_metrics import Metrics, Record

COLUMNS = ("epoch", "step", "loss", "evaluation loss", "accuracy in %", "samples/s")

PAUSE = 0.1
"""Seconds between two changes of the line on stderr."""


def epoch_line(record: Record, epochs: int) -> str:
    """An epoch in words."""
    parts = [f"loss {record['loss']:.6g}"]
    if record["evaluation_loss"] is not None:
        parts.append(f"evaluation loss {record['evaluation_loss']:.6g}")
    if record["accuracy"] is not None:
        parts.append(f"accuracy {100 * record['accuracy']:.4g} %")
    parts.append(f"{record['samples_per_second']:,.0f} samples/s")
    return f"epoch {record['epoch']}/{epochs}: {', '.join(parts)}"


class StepLine:
    """The progress line: the epoch, the share of all steps, loss, speed and the time left."""

    def __init__(self, progress: Progress, epochs: int, steps: int, size: int) -> None:
        self._progress, self._epochs, self._steps, self._size = progress, epochs, steps, size
        self._shown, self._seconds, self._done = 0.0, 0.0, 0

    def show(self, record: Record) -> None:
        """Show a step."""
        self._seconds, self._done = self._seconds + record["seconds"], self._done + 1
        if (now := monotonic()) - self._shown < PAUSE:
            return
        self._shown, step = now, record["step"]
        mean = self._seconds / self._done
        left, rate = (self._steps - step) * mean, self._size / mean if mean else 0.0
        speed = f"{rate:,.0f} samples/s, {_clock(left)} left"
        line = f"epoch {record['epoch']}/{self._epochs} {bar(step / self._steps)} loss {record['loss']:.4g}, {speed}"
        self._progress.say(line)


def _clock(seconds: float) -> str:
    """A time as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@dataclass(frozen=True)
class TrainingPage:
    """A page about a run: its settings in words, and its metrics."""

    model: str
    settings: str
    metrics: Metrics

    def html(self) -> str:
        """The curves of loss and accuracy, and a table of the epochs, in a self-contained page."""
        epochs, steps = self.metrics.epochs, list(zip(self.metrics.steps, self.metrics.losses, strict=True))
        lines = [
            Curve("loss of steps", steps),
            Curve("loss of epochs", _points(epochs, "loss")),
            Curve("evaluation loss", _points(epochs, "evaluation_loss")),
        ]
        parts = [paragraph(self.settings), curves(lines, "step", "loss")]
        if accuracies := _points(epochs, "accuracy"):
            percent = [(step, 100 * share) for step, share in accuracies]
            parts.append(curves([Curve("accuracy", percent)], "step", "accuracy in %"))
        return document(f"{self.model}: training", [*parts, table(COLUMNS, [_cells(record) for record in epochs])])


def _points(records: Sequence[Record], name: str) -> list[tuple[float, float]]:
    """A field of records against their steps, where it is known."""
    return [(record["step"], record[name]) for record in records if record[name] is not None]


def _cells(record: Record) -> list[str]:
    accuracy = "" if record["accuracy"] is None else f"{100 * record['accuracy']:.4g}"
    held_out = "" if record["evaluation_loss"] is None else f"{record['evaluation_loss']:.6g}"
    speed = f"{record['samples_per_second']:,.0f}"
    return [str(record["epoch"]), str(record["step"]), f"{record['loss']:.6g}", held_out, accuracy, speed]
