"""`--quantization-report`: the precision of each value, its error against f32, and its time."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from glow_mlir.api.model_session import ModelSession
from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.glow_high.storage import GetOp
from glow_mlir.dialects.quant import UniformQuantizedType, parameters_of
from glow_mlir.driver.pipelines import PassObserver, Pipeline, profiling
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.text import write_text
from glow_mlir.options.compilation import FULL_PRECISION
from glow_mlir.pictures.charts import Html, document, histogram, paragraph, table
from glow_mlir.quantization.configuration import read_configuration
from glow_mlir.quantization.histogram import Histogram
from glow_mlir.quantization.noise import signal_to_noise
from glow_mlir.quantization.observed import observed_values
from glow_mlir.quantization.profile import read_profile
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.reports.latency import Budget
from glow_mlir.tools.reports.layer_profile import profiled_runs
from glow_mlir.tools.reports.tables import Alignment, print_table
from glow_mlir.transforms.instructions.instrument_profile import (
    PREFIX,
    Floats,
    InstrumentProfilePass,
    saved_floats,
    saved_types,
)
from glow_mlir.transforms.quantization.convert_precision import ConvertPrecisionPass
from glow_mlir.transforms.quantization.quantize import QuantizePass

NARROWING = ("quantize", "precision", "keep_precision", "weights", "configuration")
"""The session options that select precisions."""

COLUMNS: dict[str, Alignment] = {
    "value": "left",
    "computed in": "left",
    "type": "left",
    "min": "right",
    "max": "right",
    "quantized from": "right",
    "to": "right",
    "SNR in dB": "right",
    "µs": "right",
}

BUDGET = Budget(iterations=20, duration=0.0, warmup=50.0)
"""The number of timed runs of the model."""

BINS = 256
"""Bins of the histograms."""


@dataclass(frozen=True)
class ValueReport:
    """
    A value: its name; its compute type and storage type; its range in f32 and in quantized values; its signal-to-noise
    ratio in dB; and the microseconds of its nodes' instructions, which are charged to the last value of each
    instruction.
    """

    name: str
    precision: str
    type: str
    low: float
    high: float
    quantized_range: tuple[float, float] | None
    ratio: float
    microseconds: float | None
    histogram: Histogram = field(repr=False)

    def cells(self) -> list[str]:
        """The value as a row of the table."""
        ends = ["", ""] if self.quantized_range is None else [f"{end:.4g}" for end in self.quantized_range]
        took = "" if self.microseconds is None else f"{self.microseconds:.1f}"
        head = [self.name, self.precision, self.type, f"{self.low:.4g}", f"{self.high:.4g}"]
        return [*head, *ends, f"{self.ratio:.1f}", took]

    def data(self) -> dict[str, Any]:
        """The value as JSON data without its histogram; `None` for infinities."""
        found = asdict(replace(self, histogram=Histogram(BINS)))
        del found["histogram"]
        numbers = {name: found[name] for name in ("low", "high", "ratio")}
        return found | {name: number if math.isfinite(number) else None for name, number in numbers.items()}


@dataclass(frozen=True)
class QuantizationReport:
    """The values of a graph that are in the profile, followed by the outputs of the model."""

    model: str
    values: Sequence[ValueReport]
    rest: float | None
    """Microseconds of instructions that belong to no value."""
    key: str = "quantization"

    def show(self) -> None:
        """Print the table."""
        print_table("quantization", COLUMNS, [value.cells() for value in self.values])
        if self.rest is not None:
            print(f"instructions of other nodes take {self.rest:.1f} µs")

    def data(self) -> list[dict[str, Any]]:
        """The table as JSON data."""
        return [value.data() for value in self.values]

    def write(self, path: Path) -> None:
        """Write the report with histograms: an `.html` file as a page, others as JSON."""
        write_text(self.html() if path.suffix == ".html" else f"{json.dumps(self._whole(), indent=1)}\n", path)

    def html(self) -> str:
        """The table with a histogram of each value, in a self-contained page."""
        rows = [[*value.cells(), _picture(value)] for value in self.values]
        text = "Values in f32, on a logarithmic scale of counts; lines are the ends of the range of quantized values."
        return document(f"{self.model}: quantization", [paragraph(text), table([*COLUMNS, "numbers"], rows)])

    def _whole(self) -> dict[str, Any]:
        values = [
            value.data() | {"histogram": value.histogram.to_json() if value.histogram.total else None}
            for value in self.values
        ]
        return {"model": self.model, "values": values, "rest_microseconds": self.rest}


def _picture(value: ValueReport) -> Html | str:
    found = value.histogram
    return Html(histogram(found.centers(), found.counts, value.quantized_range or ())) if found.total else ""


@dataclass
class _Chosen(PassObserver):
    """Record the nodes, compute types and storage types of the saved values."""

    types: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    precisions: dict[str, str] = field(default_factory=dict[str, str])
    floats: dict[str, Floats] = field(default_factory=dict[str, Floats])
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def before(self, item: ModulePass, module: ModuleOp) -> None:
        if not isinstance(item, InstrumentProfilePass | QuantizePass):
            return
        observed = observed_values(module)
        if isinstance(item, InstrumentProfilePass):
            for name, value in observed.items():
                owner = value.owner
                assert isinstance(owner, Operation)
                self.nodes[name] = location_names(owner.location)
                self.precisions[name] = "" if isinstance(owner, GetOp) else FULL_PRECISION
        if isinstance(item, QuantizePass):
            quantized_ops = {op for plan in item.plans(module) for op in plan.operators}
            self.precisions |= {
                name: item.options.precision for name, value in observed.items() if value.owner in quantized_ops
            }

    def after(self, item: ModulePass, module: ModuleOp) -> None:
        if isinstance(item, QuantizePass):
            self.types = saved_types(module)
        if isinstance(item, ConvertPrecisionPass):
            self.floats = saved_floats(module)

    def of(self, value: ValueReport, output: str) -> ValueReport:
        """The value of an output, with its compute type and storage type."""
        precision = self.precisions.get(value.name, "") if output.startswith(PREFIX) else ""
        if precision != FULL_PRECISION:
            return replace(value, precision=precision)
        floats = self.floats.get(output, Floats())
        return replace(value, precision=floats.computed, type=value.type if value.quantized_range else floats.stored)


def quantization_report(
    model: Any, title: str, options: Mapping[str, Any], inputs: Mapping[str, np.ndarray]
) -> QuantizationReport:
    """
    Compare the values of a model in f32 with its quantized or narrow-float values, on the inputs of one run.

    `options` are the session options, which select the precisions.
    """
    plain = {name: value for name, value in options.items() if name not in ("target", *NARROWING)}
    narrow = {name: options[name] for name in NARROWING if name in options}
    backend = get_backend(options["backend"])
    pipeline: Pipeline = profiling(backend.pipeline(options["target"]), _is_equalized(options))
    chosen = _Chosen()
    floats = ModelSession.of(model, pipeline=pipeline, cache=False, **plain).run(inputs)
    session = ModelSession.of(model, pipeline=pipeline, cache=False, pass_observers=[chosen], **narrow, **plain)
    session.require_sizes()
    quantized = session.run(inputs)
    times, rest = _times(model, options, inputs, chosen.nodes) if backend.MACHINE_CODE else ({}, None)
    values: list[ValueReport] = []
    for output in sorted(floats, key=lambda output: not output.startswith(PREFIX)):
        name = output.removeprefix(PREFIX)
        value = _value(name, chosen.types.get(output), floats[output], quantized[output])
        values.append(replace(chosen.of(value, output), microseconds=times.get(name)))
    return QuantizationReport(title, values, rest)


def _is_equalized(options: Mapping[str, Any]) -> bool:
    """Whether the quantized values come from equalized channels."""
    quantize, path = options["quantize"], options["configuration"]
    if path is not None:
        quantize = read_configuration(Path(path)).quantize
    return quantize is not None and read_profile(Path(quantize.profile)).is_equalized


def _value(name: str, type_: Attribute | None, signal: np.ndarray, found: np.ndarray) -> ValueReport:
    """The report of a value, from its f32 numbers, its actual numbers, and its type."""
    counted = Histogram(BINS)
    counted.add(signal)
    low, high = (counted.low, counted.high) if counted.total else (math.nan, math.nan)
    text = "" if type_ is None else str(type_).removeprefix("!quant.uniform")
    return ValueReport(name, "", text, low, high, _range_of(type_), signal_to_noise(signal, found), None, counted)


def _range_of(type_: Attribute | None) -> tuple[float, float] | None:
    """The numbers of the least and the largest quantized value of a type."""
    parameters = None if type_ is None else parameters_of(type_)
    if parameters is None or not isinstance(type_, UniformQuantizedType):
        return None
    scale, zero = parameters
    return (type_.least.data - zero) * scale, (type_.most.data - zero) * scale


def _times(
    model: Any, options: Mapping[str, Any], inputs: Mapping[str, np.ndarray], nodes: Mapping[str, Sequence[str]]
) -> tuple[dict[str, float], float]:
    """
    Value → the microseconds of the instructions of its nodes, charged to the last value; and the remaining time.
    """
    session = ModelSession.of(model, profile=True, cache=False, **options)
    profile = profiled_runs(lambda: session.run(inputs), session.machine_entry, BUDGET)
    last = {node: name for name, names in nodes.items() for node in names}
    order = {name: number for number, name in enumerate(nodes)}
    found, rest = dict[str, float](), 0.0
    for step, time in zip(profile.steps, profile.medians, strict=True):
        names = [last[node] for node in step.location.split("+") if node in last]
        if names:
            name = max(names, key=order.__getitem__)
            found[name] = found.get(name, 0.0) + float(time)
        else:
            rest += float(time)
    return found, rest
