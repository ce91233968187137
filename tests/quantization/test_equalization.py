"""Equalized channels leave floats as they are, and codes of badly scaled ones become exact."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from checkout import ROOT
from in_process import run_tool
from models import GraphBuilder, he
from onnx import TensorProto

from glow_mlir import InferenceSession, Quantization
from glow_mlir.api.profiling import profiled
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.quantization.noise import signal_to_noise
from glow_mlir.quantization.profile import read_profile
from glow_mlir.tools import glow_profile
from glow_mlir.transforms.quantization.equalize_channels import EqualizeChannelsPass

DIGITS = str(ROOT / "examples" / "digits.onnx")


def unequal() -> onnx.ModelProto:
    """Three convolutions, in whose results channels are up to a thousand times as large as others."""
    g = GraphBuilder(0)
    x, channels = "x", 8
    factors = [np.exp(g.rng.uniform(-3.5, 3.5, channels)).astype(np.float32) for _ in range(2)]
    for number in range(3):
        weights = he(g.rng, (channels, channels, 3, 3), channels * 9)
        if number < 2:
            weights = weights * factors[number][:, None, None, None]
        if number > 0:
            weights = weights / factors[number - 1][:, None, None]
        bias = (g.rng.standard_normal(channels) * 0.1).astype(np.float32) * (factors[number] if number < 2 else 1)
        x = g.node("Conv", x, g.weight(weights), g.weight(bias.astype(np.float32)), pads=[1] * 4)
        x = g.node("Relu", x) if number < 2 else x
    return g.model({"x": (TensorProto.FLOAT, [1, channels, 6, 6])}, {x: [1, channels, 6, 6]}, opset=17)


def image(seed: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((1, 8, 6, 6)).astype(np.float32)}


def test_floats_keep_their_bits() -> None:
    module = import_model(unequal())
    Compilation(module, "interpreter").run("optimized")
    (expected,) = run_function(module, image(0)).values()
    before = str(module)
    EqualizeChannelsPass().apply(new_context(), module)
    assert str(module) != before
    (found,) = run_function(module, image(0)).values()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("schema", ["asymmetric", "symmetric-with-power2-scale"])
@pytest.mark.parametrize("per_channel", [True, False])
def test_codes_become_exact(tmp_path: Path, schema: str, per_channel: bool) -> None:
    model = unequal()
    (expected,) = InferenceSession(model, backend="interpreter").run(None, image(9))
    ratios: list[float] = []
    for equalize in (False, True):
        samples = [image(seed) for seed in range(4)]
        profiled(model, samples, equalize=equalize, backend="interpreter").write(tmp_path / "p.json")
        quantize = Quantization(tmp_path / "p.json", schema=schema, per_channel=per_channel)
        (found,) = InferenceSession(model, backend="interpreter", quantize=quantize).run(None, image(9))
        ratios.append(signal_to_noise(expected, found))
    assert ratios[0] < 25
    assert ratios[1] > ratios[0] + 10


def test_profiles_say_that_channels_are_equalized(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", image=np.random.default_rng(0).random((4, 1, 8, 8), np.float32))
    argv = [DIGITS, "--bind", "N=4", "--backend", "interpreter", "--dataset", "x.npz"]
    for options in (["-o", "plain.json"], ["--equalize-channels", "-o", "equal.json"]):
        assert run_tool(glow_profile.main, [*argv, *options], directory=tmp_path).code == 0
    plain, equal = (read_profile(tmp_path / name) for name in ("plain.json", "equal.json"))
    assert (plain.is_equalized, equal.is_equalized) == (False, True)
    assert plain.graph == equal.graph
    assert list(plain.histograms) == list(equal.histograms)
    assert json.loads((tmp_path / "equal.json").read_text())["equalized"] is True
    found = run_tool(glow_profile.main, [*argv, "--merge", "equal.json", "-o", "m.json"], directory=tmp_path)
    assert found.code == 1
    assert b"profiles with and without equalized channels cannot be merged" in found.stderr
