"""
Signal to noise of quantized networks: profiled and quantized here, and by ONNX Runtime's static quantization.

Both have the same inputs to calibrate on, a scale for each channel of weights, and activations of u8; the noise is that
of the outputs for other inputs, beside the floats of ONNX Runtime. Weights and inputs are random, those of batch
normalization calibrated.

    python benchmarks/quantization_noise.py [resnet50 mobilenet_v2 minilm]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from models import random_inputs

from contest.quantized import FLOAT, RandomInputs, quantized
from glow_mlir import InferenceSession, Quantization
from glow_mlir.api.profiling import profiled
from glow_mlir.options.quantization import CALIBRATIONS
from glow_mlir.quantization.noise import Noise

NETWORKS = ("resnet50", "mobilenet_v2", "minilm")

INPUTS = 32
"""How many inputs the noise is measured on."""

Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays], list[np.ndarray]]


def of_onnxruntime(model: onnx.ModelProto) -> Run:
    """What runs a model in ONNX Runtime."""
    session: Any = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda inputs: [np.asarray(output) for output in session.run(None, inputs)]


def of_ours(model: onnx.ModelProto, quantize: Quantization) -> Run:
    """What runs a model that is quantized here."""
    session = InferenceSession(model, quantize=quantize, cache=False)
    return lambda inputs: session.run(None, inputs)


def noise(run: Run, samples: Sequence[Arrays], expected: Sequence[Sequence[np.ndarray]]) -> float:
    """The ratio of signal to noise of all outputs, in dB."""
    found = Noise()
    for inputs, outputs in zip(samples, expected, strict=True):
        for signal, output in zip(outputs, run(inputs), strict=True):
            found.add(signal, output)
    return found.ratio


def row(name: str, folder: Path) -> list[float]:
    """The ratios of ONNX Runtime, and of each calibration here."""
    build = FLOAT[name]
    model, random = build(), np.random.default_rng(5)
    samples = [random_inputs(model, random) for _ in range(INPUTS)]
    floats = of_onnxruntime(model)
    expected = [floats(inputs) for inputs in samples]
    ratios = [noise(of_onnxruntime(quantized(build)), samples, expected)]
    path = folder / f"{name}.profile.json"
    profiled(model, RandomInputs.of(model)).write(path)
    for calibration in CALIBRATIONS:
        ratios.append(noise(of_ours(model, Quantization(path, calibration=calibration)), samples, expected))
    return ratios


def main() -> None:
    """Print the table."""
    columns = ["ONNX Runtime", *CALIBRATIONS]
    print(f"{'dB':16}{''.join(f'{column:>14}' for column in columns)}")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or NETWORKS:
            print(f"{name:16}{''.join(f'{ratio:14.2f}' for ratio in row(name, Path(folder)))}", flush=True)


if __name__ == "__main__":
    main()
