"""Bundles of TensorFlow Lite models for microcontrollers: results and variables are the session's, to the bit."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from emulators import Machine, contents, machine_for, only_entry
from in_process import run_tool
from tflite_reference import MAX_ERROR
from tiny_models import quantized_sine
from trained_tflite import TINY, smooth_inputs, trained_model

from glow_mlir import InferenceSession
from glow_mlir.frontends.tflite.file import TfliteFile
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.bundle import read_bundle
from glow_mlir.support.dtypes import named_dtype
from glow_mlir.tools import glow_compile

pytestmark = pytest.mark.extra

TARGETS = ("cortex-m0plus", "cortex-m4", "cortex-m55", "riscv32")

WAKE_WORDS = ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")
STEPS = 3

SINE = "sine of int8"


def bundle(model: Path, target: str, *options: str) -> Artifact:
    """What `glow-compile` writes for a target."""
    argv = [str(model), "--target", target, "-o", "out", "--name", "model", *options]
    assert run_tool(glow_compile.main, argv, program="glow-compile", directory=model.parent).code == 0
    _, _, artifact = read_bundle(model.parent / "out")
    return artifact


def codes(shape: list[int | str | None], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, [int(size or 1) for size in shape], np.int8)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [*TINY, "tflite_micro_speech", "sine_float", SINE])
def test_trained_models(name: str, target: str, tmp_path: Path) -> None:
    machine, model = machine_for(target), tmp_path / "model.tflite"
    model.write_bytes(quantized_sine() if name == SINE else trained_model(name))
    session = InferenceSession(model, threads=1)
    artifact = bundle(model, target)
    given = [item.name for item in session.get_inputs()]
    for arrays in smooth_inputs(TfliteFile.open(model), 1):
        inputs = dict(zip(given, arrays, strict=True))
        ran = machine.run(artifact, inputs)
        assert ran.status == 0
        for item, wanted in zip(session.get_outputs(), session.run(None, inputs), strict=True):
            compare(ran.outputs[item.name], wanted)


def compare(found: np.ndarray, wanted: np.ndarray) -> None:
    """Raise unless integers are equal, and floats but for the order of their sums."""
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=0, atol=MAX_ERROR * np.abs(wanted).max())
    else:
        np.testing.assert_array_equal(found, wanted)


def called(machine: Machine, artifact: Artifact, values: dict[str, np.ndarray]) -> None:
    """Call the entry, and put what it leaves into `values`: outputs and state."""
    entry = only_entry(artifact)
    found = machine.call(artifact, entry, contents(entry, values))
    assert found.status == 0
    for binding, data in zip(entry.bindings, found.bound, strict=False):
        values[binding.name] = np.frombuffer(data, named_dtype(binding.dtype)).reshape(binding.shape)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("word", WAKE_WORDS)
def test_wake_words(word: str, target: str, tmp_path: Path) -> None:
    pytest.importorskip("pymicro_wakeword")
    machine, model = machine_for(target), tmp_path / "model.tflite"
    model.write_bytes(Path(str(files("pymicro_wakeword") / "models" / f"{word}.tflite")).read_bytes())
    session = InferenceSession(model, threads=1)
    artifact, values = bundle(model, target), dict(session.compiled.get_state())
    (given,), (output,) = session.get_inputs(), session.get_outputs()
    for step in range(STEPS):
        values[given.name] = codes(given.shape, step)
        (wanted,) = session.run(None, {given.name: values[given.name]})
        called(machine, artifact, values)
        np.testing.assert_array_equal(values[output.name], wanted)
    for name, wanted in session.compiled.get_state().items():
        np.testing.assert_array_equal(values[name], wanted)
