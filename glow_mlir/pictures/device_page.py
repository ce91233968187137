"""An HTML page about a model on several devices: their parts, queue timelines and refused operators."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from glow_mlir.partitioning.report import DeviceShare, PlannedStep
from glow_mlir.pictures.charts import Bar, document, lanes, paragraph, table
from glow_mlir.runtime.queue_trace import QueueTrace, Span


def device_page(
    title: str, shares: Sequence[DeviceShare], plan: Sequence[PlannedStep], trace: QueueTrace | None
) -> str:
    """
    The page as a self-contained file. With a `trace` of inferences, the chart shows the last of them in microseconds,
    otherwise the order in which work is queued.
    """
    parts = [f"<h2>devices</h2>{_devices(shares)}", f"<h2>queues</h2>{_queues(plan, trace)}"]
    if trace is not None:
        parts.append(f"<h2>times</h2>{_times(trace)}")
    refused = [[share.device, *item] for share in shares for item in share.refused.items()]
    if refused:
        parts.append(f"<h2>refused</h2>{table(('device', 'operator', 'reason'), refused)}")
    return document(f"{title} on {len(shares)} devices", parts)


def _devices(shares: Sequence[DeviceShare]) -> str:
    whole = sum(share.multiply_adds for share in shares) or 1
    columns = ("device", "operators", "multiply-adds", "share", "constants", "calls", "transfers", "bytes")
    rows = [
        (
            share.device,
            f"{share.operators}",
            f"{share.multiply_adds:,}",
            f"{share.multiply_adds / whole:.1%}",
            f"{share.constant_bytes:,}",
            f"{share.partitions}",
            f"{share.transfers}",
            f"{share.transferred:,}",
        )
        for share in shares
    ]
    return table(columns, rows)


def _queues(plan: Sequence[PlannedStep], trace: QueueTrace | None) -> str:
    if trace is None:
        bars = [
            Bar(step.queue, number, number + 1, _described(step), is_marked=not step.partition)
            for number, step in enumerate(plan)
        ]
        return lanes(bars, "order in which queues are given their work")
    last = _last_run(trace.spans, len(plan))
    origin = min((span.begin for span in last), default=0)
    bars = [
        Bar(
            span.queue,
            (span.begin - origin) / 1e3,
            (span.end - origin) / 1e3,
            f"{span.what}: {(span.end - span.begin) / 1e3:.1f} µs",
            is_marked=span.what == "transfer",
        )
        for span in sorted(last, key=lambda span: span.queue)
    ]
    caption = "One inference, from the first thing that a queue does; transfers are marked."
    return paragraph(caption) + lanes(bars, "µs")


def _last_run(spans: Sequence[Span], steps: int) -> list[Span]:
    """The queue operations of the last of several inferences with `steps` operations each."""
    return sorted(spans, key=lambda span: span.begin)[-steps:] if steps else []


def _described(step: PlannedStep) -> str:
    return step.partition or f"transfer of {step.nbytes:,} bytes"


def _times(trace: QueueTrace) -> str:
    rows = [
        (*names, f"{len(times)}", f"{median(times):.1f}", f"{min(times):.1f}") for names, times in trace.times().items()
    ]
    return table(("queue", "what", "times", "median µs", "least µs"), rows)
