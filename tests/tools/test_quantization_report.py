"""`glow-run --quantization-report`: ratios of values in codes to those in floats."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from in_process import run_tool

from glow_mlir.api.profiling import profiled
from glow_mlir.tools import glow_run
from glow_mlir.tools.quantization_report import signal_to_noise

DIGITS = str(ROOT / "examples" / "digits.onnx")


def test_the_ratio_is_that_of_powers() -> None:
    signal = np.array([3.0, -4.0], np.float32)
    assert signal_to_noise(signal, signal + np.float32(0.5)) == pytest.approx(10 * math.log10(25 / 0.5))
    assert signal_to_noise(signal, signal) == math.inf
    assert signal_to_noise(signal * 0, signal) == -math.inf


def report(folder: Path, *options: str) -> dict[str, dict[str, object]]:
    """What the report says of each value of the digits example."""
    argv = [
        DIGITS,
        "--bind",
        "N=1",
        "--backend",
        "interpreter",
        "--load-profile",
        "p.json",
        "--input",
        "x.npy",
        *options,
    ]
    finished = run_tool(glow_run.main, [*argv, "--quantization-report", "--json", "r.json"], directory=folder)
    assert (finished.code, finished.stderr) == (0, b"")
    assert b"SNR in dB" in finished.stdout
    return {row["name"]: row for row in json.loads((folder / "r.json").read_text())["quantization"]}


def test_values_in_codes_are_told_from_those_in_floats(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((8, 1, 1, 8, 8), np.float32)
    samples = [{"image": image} for image in images]
    profiled(DIGITS, samples, dimensions={"N": 1}, backend="interpreter").write(tmp_path / "p.json")
    np.save(tmp_path / "x.npy", images[0])
    narrow, wide = report(tmp_path), report(tmp_path, "--quantization-precision", "int16")
    assert str(narrow["relu1:0"]["type"]).startswith("<u8:f32")
    assert str(wide["relu1:0"]["type"]).startswith("<i16:f32")
    assert narrow["conv2:1"]["type"] == "f32"
    assert narrow["image:0"]["ratio"] is None
    for name, most in (("relu1:0", 60), ("relu2:0", 60), ("probabilities", 120)):
        ratios = narrow[name]["ratio"], wide[name]["ratio"]
        assert isinstance(ratios[0], float)
        assert isinstance(ratios[1], float)
        # Eight more bits are 48 dB.
        assert 20 < ratios[0] < most
        assert ratios[1] > ratios[0] + 30
    kept = report(tmp_path, "--keep-original-precision-for-nodes", "*")
    assert all(row["ratio"] is None for row in kept.values())
