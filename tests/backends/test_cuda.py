"""Models on the CUDA backend: PTX that ptxas takes, and the same device functions emulated on the CPU."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import ptx
import pytest
from breadth import long_ones
from models import bert_encoder, lstm_network, mobilenet_v2, random_inputs, resnet18
from quantized_models import SCHEMES, encoder, joined, mobile, quantized, quantized_model, residual

from glow_mlir import InferenceSession
from glow_mlir.backends.cuda.targets import GENERATIONS
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.runtime.artifact import Artifact

MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "residual": residual,
    "mobile": mobile,
    "joined": joined,
    "encoder": encoder,
    "residual in codes": lambda: quantized_model("residual", "qdq-u8"),
    "mobile in codes": lambda: quantized_model("mobile", "qdq-u8"),
    "encoder in codes": lambda: quantized_model("encoder", "qdq-i8"),
    "lstm": lambda: lstm_network(layers=1, steps=5, width=12, hidden=20),
    "resnet18": lambda: resnet18(size=64, classes=100),
    "bert": bert_encoder,
    "mobilenet_v2": lambda: mobilenet_v2(size=64, classes=100, width=0.5),
    "mobilenet_v2 in codes": lambda: quantized(mobilenet_v2(size=64, classes=100, width=0.5), SCHEMES["qdq-u8"]),
}

LARGE = ("resnet18", "mobilenet_v2", "mobilenet_v2 in codes")
"""Those for which a short run has no time."""

TOLERANCE = 3e-5
"""Of the largest output, between two orders of sums of floats."""

MIN_OCCUPANCY = 0.25


def model_named(name: str) -> onnx.ModelProto:
    logging.getLogger().setLevel(logging.ERROR)  # onnxruntime's quantization has advice.
    return MODELS[name]()


@pytest.mark.extra
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("name", MODELS)
def test_kernels_are_assembled_without_spills(name: str, generation: str, tmp_path: Path) -> None:
    ptx.ptxas()
    artifact: Artifact = Compilation(import_model(model_named(name)), backend="cuda", target=generation).artifact()
    kernels = ptx.assembled(artifact.code[0].decode(), generation, tmp_path)
    (entry,) = artifact.manifest.entries
    assert entry.program is not None
    assert {kernel.name for kernel in kernels} == set(entry.program.functions())
    assert not [kernel for kernel in kernels if kernel.spilled]
    assert not [kernel for kernel in kernels if kernel.occupancy(generation) < MIN_OCCUPANCY]


@pytest.mark.parametrize("name", long_ones(MODELS, lambda name: name in LARGE))
def test_emulated_models_equal_the_cpu(name: str) -> None:
    model = model_named(name)
    inputs = random_inputs(model, np.random.default_rng(0))
    expected = InferenceSession(model, cache=False).run(None, inputs)
    session = InferenceSession(model, backend="cuda", target="emulated-sm_80", cache=False)
    for _ in range(2):  # Blocks run in the other order.
        for wanted, found in zip(expected, session.run(None, inputs), strict=True):
            if "codes" in name:
                np.testing.assert_array_equal(found, wanted)
            else:
                np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE * float(np.abs(wanted).max()))
