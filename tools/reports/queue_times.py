"""The times of the work in device queues, printed by glow-run."""

from __future__ import annotations

from statistics import median

from glow_mlir.runtime.queue_trace import QueueTrace
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.reports.tables import Alignment, print_table

COLUMNS: dict[str, Alignment] = {
    "queue": "left",
    "what": "left",
    "times": "right",
    "median µs": "right",
    "sum ms": "right",
}


@dataclass(frozen=True)
class QueueTimes:
    """The work of queues in all measured runs."""

    trace: QueueTrace
    key: str = "queues"

    def rows(self) -> list[tuple[str, str, int, float, float]]:
        """Queue, kind of work, count, the median in microseconds and the sum in milliseconds."""
        return [(*names, len(times), median(times), sum(times) / 1e3) for names, times in self.trace.times().items()]

    def show(self) -> None:
        """Print a row for each partition and for the transfers of each queue."""
        rows = [[*names, str(count), f"{middle:.1f}", f"{whole:.3f}"] for *names, count, middle, whole in self.rows()]
        print_table("queues of devices", COLUMNS, rows)

    def data(self) -> list[dict[str, object]]:
        """The rows as JSON data."""
        names = ("queue", "what", "count", "median_us", "sum_ms")
        return [dict(zip(names, row, strict=True)) for row in self.rows()]
