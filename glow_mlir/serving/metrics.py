"""Metrics for Prometheus, in its text format: requests, queues and durations of networks, tokens of generators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    ("glow_generator_requests", "gauge", "Requests for text that are computed, and that wait."),
    ("glow_generator_steps_total", "counter", "Calls of the decoder."),
    ("glow_generator_tokens_total", "counter", "Tokens of prompts, computed or known before, and of texts."),
)

QUANTILES = {"p50": "0.5", "p90": "0.9", "p99": "0.99", "p99.9": "0.999"}


def metrics(host: Host, generators: Iterable[Mapping[str, Any]] = ()) -> str:
    """The text for all networks that are loaded, and for generators by `Generators.data`."""
    samples = [sample for network in host.networks for sample in _samples(network.data(), network.memory_bytes)]
    samples += [sample for generator in generators for sample in _generator_samples(generator)]
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


def _generator_samples(data: Mapping[str, Any]) -> Iterator[Sample]:
    """The numbers of a generator."""
    model = {"model": str(data["name"])}
    for state in ("running", "waiting"):
        yield "glow_generator_requests", {**model, "state": state}, data[state]
    yield "glow_generator_steps_total", model, data["steps"]
    for kind in ("prompt", "reused", "chosen", "drafted", "accepted"):
        yield "glow_generator_tokens_total", {**model, "kind": kind}, data[f"{kind}_tokens"]


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
