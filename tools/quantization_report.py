"""`--quantization-report`: how far codes are from the numbers that they stand for, value by value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.api.session import InferenceSession
from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.pipelines import PassObserver, Pipeline, profiling
from glow_mlir.tools.tables import Alignment, print_table
from glow_mlir.transforms.instrument_profile import PREFIX, saved_types
from glow_mlir.transforms.quantize import QuantizePass

NARROWING = ("quantize", "precision", "configuration")
"""The options of a session that say precisions."""

COLUMNS: dict[str, Alignment] = {"value": "left", "type": "left", "min": "right", "max": "right", "SNR in dB": "right"}


def signal_to_noise(signal: np.ndarray, found: np.ndarray) -> float:
    """The power of the signal over that of what differs from it, in dB; infinite where nothing does."""
    wide = signal.astype(np.float64)
    noise = float(np.square(found - wide).sum())
    power = float(np.square(wide).sum())
    return math.inf if noise == 0 else 10 * math.log10(power / noise) if power else -math.inf


@dataclass(frozen=True)
class ValueNoise:
    """A value: its name, the type of its codes or else of floats, its range in floats, and signal to noise in dB."""

    name: str
    type: str
    low: float
    high: float
    ratio: float


@dataclass(frozen=True)
class NoiseReport:
    """The values of a graph that a profile has, and behind them the outputs of the model."""

    values: Sequence[ValueNoise]
    key: str = "quantization"

    def show(self) -> None:
        """Print the table."""
        rows = [[v.name, v.type, f"{v.low:.4g}", f"{v.high:.4g}", f"{v.ratio:.1f}"] for v in self.values]
        print_table("quantization", COLUMNS, rows)

    def data(self) -> object:
        """The table as JSON has it; `None` for a ratio that is infinite."""
        found = [asdict(value) for value in self.values]
        return [row | {"ratio": row["ratio"] if math.isfinite(row["ratio"]) else None} for row in found]


@dataclass
class _Types(PassObserver):
    """Takes the types of the codes that the saved values are made of."""

    found: dict[str, str] = field(default_factory=dict[str, str])

    def after(self, item: ModulePass, module: ModuleOp) -> None:
        if isinstance(item, QuantizePass):
            self.found = {
                name: str(type_).removeprefix("!quant.uniform") for name, type_ in saved_types(module).items()
            }


def noise_report(model: Any, options: Mapping[str, Any], inputs: Mapping[str, np.ndarray]) -> NoiseReport:
    """
    Compare the values of a model in f32 with those in codes and narrower floats, on the inputs of one run.

    `options` are those of a session, which say the precisions.
    """
    plain = {name: value for name, value in options.items() if name not in ("target", *NARROWING)}
    narrow = {name: options[name] for name in NARROWING}
    backend = get_backend(options["backend"])
    pipeline: Pipeline = profiling(backend.pipeline(options["target"]))
    types = _Types()
    floats = _outputs(InferenceSession(model, pipeline=pipeline, cache=False, **plain), inputs)
    quantized = InferenceSession(model, pipeline=pipeline, cache=False, pass_observers=[types], **narrow, **plain)
    codes = _outputs(quantized, inputs)
    names = sorted(floats, key=lambda name: not name.startswith(PREFIX))
    return NoiseReport([_noise(name, types.found.get(name, ""), floats[name], codes[name]) for name in names])


def _outputs(session: InferenceSession, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = [argument.name for argument in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def _noise(name: str, type_: str, signal: np.ndarray, found: np.ndarray) -> ValueNoise:
    finite = signal[np.isfinite(signal)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
    return ValueNoise(name.removeprefix(PREFIX), type_, low, high, signal_to_noise(signal, found))
