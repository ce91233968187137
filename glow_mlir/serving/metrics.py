"""Metrics for Prometheus: requests, queues and durations of each network, in its text format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from glow_mlir.host.host import Host

Sample = tuple[str, dict[str, str], float]

FAMILIES = (
    ("glow_requests_total", "counter", "Requests by outcome."),
    ("glow_calls_total", "counter", "Calls of the model."),
    ("glow_samples_total", "counter", "Samples computed."),
    ("glow_queue_length", "gauge", "Requests in the queue."),
    ("glow_memory_bytes", "gauge", "Bytes of code, constants and activations."),
    ("glow_queue_seconds", "summary", "Seconds that requests waited in the queue."),
    ("glow_compute_seconds", "summary", "Seconds that calls took."),
    ("glow_request_seconds", "summary", "Seconds from arrival to answer."),
)

QUANTILES = {"p50": "0.5", "p90": "0.9", "p99": "0.99", "p99.9": "0.999"}


def metrics(host: Host) -> str:
    """The text for all networks that are loaded."""
    samples = [sample for network in host.networks for sample in _samples(network.data(), network.memory_bytes)]
    lines: list[str] = []
    for family, kind, what in FAMILIES:
        lines += [f"# HELP {family} {what}", f"# TYPE {family} {kind}"]
        lines += [
            f"{name}{{{_labels(labels)}}} {value!r}"
            for name, labels, value in samples
            if name == family or (kind == "summary" and name in (f"{family}_sum", f"{family}_count"))
        ]
    return "\n".join(lines) + "\n"


def _samples(data: dict[str, Any], memory_bytes: int) -> Iterator[Sample]:
    """The numbers of a network."""
    model = {"model": str(data["name"]), "version": str(data["version"])}
    for outcome in ("succeeded", "failed", "cancelled", "expired", "refused"):
        yield "glow_requests_total", {**model, "outcome": outcome}, data[outcome]
    yield "glow_calls_total", model, data["calls"]
    yield "glow_samples_total", model, data["samples"]
    yield "glow_queue_length", model, data["waiting"]
    yield "glow_memory_bytes", model, memory_bytes
    for word in ("queue_seconds", "compute_seconds", "request_seconds"):
        durations = data[word]
        for name, quantile in QUANTILES.items():
            yield f"glow_{word}", {**model, "quantile": quantile}, durations[name]
        yield f"glow_{word}_sum", model, durations["mean"] * data["succeeded"]
        yield f"glow_{word}_count", model, data["succeeded"]


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
