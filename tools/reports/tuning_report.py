"""The results of `glow-tune`: the Pareto front of speed and loss as a table, as JSON and as a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from glow_mlir.pictures.charts import Dot, document, paragraph, scatter, table
from glow_mlir.quantization.noise import decibels
from glow_mlir.quantization.search import Loss, Point, PrecisionSearch
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.reports.tables import Alignment, print_table

COLUMNS: dict[str, Alignment] = {
    "nodes": "left",
    "calibration": "left",
    "loss %": "right",
    "SNR in dB": "right",
    "ms": "right",
    "times as fast": "right",
}

MARK = "*"
"""The mark after the choice that is written."""


@dataclass(frozen=True)
class TuningReport:
    """A completed search, the best choice, and the measure of its loss: `accuracy`, `amplitude` or `elements`."""

    search: PrecisionSearch
    best: Point
    model: str
    measure: str

    def show(self) -> None:
        """Print the Pareto front."""
        rows = [self._cells(point) for point in self.search.front()]
        print_table(
            f"Pareto front of speed and loss of {self.measure}, {len(self.search.losses)} trials", COLUMNS, rows
        )

    def summary(self) -> str:
        """The best choice in words."""
        loss = f"{100 * self.best.loss.loss:.3g} % of {self.measure}"
        return f"{self._counts(self.best)}; {self.best.speed.speedup:.2f} times as fast as f32, loss {loss}"

    def data(self) -> dict[str, Any]:
        """The front, the best choice and all trials as JSON data."""
        trials = [asdict(choice) | _finite(loss) for choice, loss in self.search.losses.items()]
        return {
            "model": self.model,
            "measure": self.measure,
            "max_loss": self.search.max_loss,
            "nodes": [unit.name for unit in self.search.units],
            "best": _point_data(self.best),
            "front": [_point_data(point) for point in self.search.front()],
            "trials": trials,
        }

    def html(self) -> str:
        """The front as a picture and a table, and the nodes of the best choice, in a self-contained page."""
        front = self.search.front()
        dots, line = self._dots(self.search.points()), self._dots(front)[::-1]
        picture = scatter(dots, "times as fast as f32", f"loss in % of {self.measure}", line)
        rows = [self._cells(point) for point in front]
        nodes = list(zip((unit.name for unit in self.search.units), self.best.choice.precisions, strict=True))
        own = [[value, calibration] for value, calibration in self.best.choice.calibrations]
        parts = [
            paragraph(self.summary()),
            picture,
            table(list(COLUMNS), rows, [front.index(self.best)] if self.best in front else []),
            table(["node", "precision"], nodes),
            *([table(["value", "calibration"], own)] if own else []),
        ]
        return document(f"{self.model}: precisions", parts)

    def _cells(self, point: Point) -> list[str]:
        mark = f" {MARK}" if point == self.best else ""
        own = f" and {len(point.choice.calibrations)} others" if point.choice.calibrations else ""
        return [
            f"{self._counts(point)}{mark}",
            f"{point.choice.calibration}{own}" if "int8" in point.choice.precisions else "",
            f"{100 * point.loss.loss:.3g}",
            f"{decibels(point.loss.noise):.1f}",
            f"{point.speed.seconds * 1e3:.3g}",
            f"{point.speed.speedup:.2f}",
        ]

    def _counts(self, point: Point) -> str:
        found = Counter(point.choice.precisions)
        return ", ".join(f"{found[name]} {name}" for name in self.search.precisions if found[name])

    def _dots(self, points: Sequence[Point]) -> list[Dot]:
        """The points that can be drawn: an infinite loss has no place."""
        return [
            Dot(point.speed.speedup, 100 * point.loss.loss, " · ".join(self._cells(point)), point == self.best)
            for point in points
            if math.isfinite(point.loss.loss)
        ]


def _point_data(point: Point) -> dict[str, Any]:
    return asdict(point.choice) | _finite(point.loss) | asdict(point.speed)


def _finite(loss: Loss) -> dict[str, float | None]:
    """A loss as JSON data, with `None` for infinities."""
    return {name: value if math.isfinite(value) else None for name, value in vars(loss).items()}
