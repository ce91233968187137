"""`glow-run --quantization-report`: ratios of quantized values to those in floats."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from checkout import ROOT
from in_process import run_tool
from onnx import TensorProto, helper

from glow_mlir.api.profiling import profiled
from glow_mlir.quantization.noise import Noise, decibels, signal_to_noise
from glow_mlir.tools import glow_run

DIGITS = str(ROOT / "examples" / "digits.onnx")


def test_the_ratio_is_that_of_powers() -> None:
    signal = np.array([3.0, -4.0], np.float32)
    assert signal_to_noise(signal, signal + np.float32(0.5)) == pytest.approx(10 * math.log10(25 / 0.5))
    assert signal_to_noise(signal, signal) == math.inf
    assert signal_to_noise(signal * 0, signal) == -math.inf
    noise = Noise()
    for number in signal:
        noise.add(number, number + np.float32(0.5))
    assert decibels(noise.share) == pytest.approx(noise.ratio) == pytest.approx(signal_to_noise(signal, signal + 0.5))


@pytest.mark.filterwarnings("error")
def test_equal_numbers_that_are_not_finite_are_no_noise() -> None:
    odd = np.array([np.inf, -np.inf, np.nan, 3.0], np.float32)
    assert signal_to_noise(odd, odd) == math.inf
    found = np.array([np.inf, -np.inf, np.nan, 3.5], np.float32)
    assert signal_to_noise(odd, found) == pytest.approx(signal_to_noise(odd[3:], found[3:]))
    for other in ([np.inf, np.inf, np.nan, 3.0], [np.inf, -np.inf, 0.0, 3.0], [np.inf, -np.inf, np.nan, np.nan]):
        noise = Noise()
        noise.add(odd, np.array(other, np.float32))
        assert (noise.share, noise.ratio) == (math.inf, -math.inf)


def report(folder: Path, *options: str, backend: str = "interpreter") -> dict[str, dict[str, Any]]:
    """What the report says of each value of the digits example."""
    argv = [DIGITS, "--bind", "N=1", "--backend", backend, "--load-profile", "p.json", "--input", "x.npy", *options]
    if "--quantization-report" not in options:
        argv.append("--quantization-report")
    finished = run_tool(glow_run.main, [*argv, "--json", "r.json"], directory=folder)
    assert (finished.code, finished.stderr) == (0, b"")
    assert b"SNR in dB" in finished.stdout
    return {row["name"]: row for row in json.loads((folder / "r.json").read_text())["quantization"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a profile of eight images, and one of them."""
    images = np.random.default_rng(0).random((8, 1, 1, 8, 8), np.float32)
    samples = [{"image": image} for image in images]
    profiled(DIGITS, samples, dimensions={"N": 1}, backend="interpreter").write(tmp_path / "p.json")
    np.save(tmp_path / "x.npy", images[0])
    return tmp_path


def test_values_in_codes_are_told_from_those_in_floats(folder: Path) -> None:
    narrow, wide = report(folder), report(folder, "--quantization-precision", "int16")
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
    kept = report(folder, "--keep-original-precision-for-nodes", "*")
    assert all(row["ratio"] is None for row in kept.values())


def test_report_says_what_is_computed_in_what(folder: Path) -> None:
    found = report(folder, "--keep-original-precision-for-nodes", "conv2", "--precision", "bf16")
    words = {name: row["precision"] for name, row in found.items()}
    assert {"image:0": "", "relu1:0": "f32", "pool+classifier:0": "int8", "probabilities": ""}.items() <= words.items()
    assert found["relu1:0"]["type"] == "bf16"
    low, high = found["conv1:0"]["quantized_range"]
    assert low <= found["conv1:0"]["low"] < found["conv1:0"]["high"] <= high + 0.01
    assert found["conv2:1"]["quantized_range"] is None
    assert all(row["microseconds"] is None for row in found.values())


def test_report_of_narrow_floats_needs_no_profile(folder: Path) -> None:
    argv = [DIGITS, "--bind", "N=1", "--backend", "interpreter", "--precision", "bf16", "--input", "x.npy"]
    assert run_tool(glow_run.main, [*argv, "--quantization-report", "q.json"], directory=folder).code == 0
    values = {row["name"]: row for row in json.loads((folder / "q.json").read_text())["values"]}
    assert (values["conv2:1"]["precision"], values["conv2:1"]["type"]) == ("bf16", "f32")
    assert (values["relu1:0"]["precision"], values["relu1:0"]["type"]) == ("f32", "bf16")
    assert (values["pool:0"]["precision"], values["pool:0"]["type"]) == ("bf16", "bf16")
    assert 40 < values["relu1:0"]["ratio"] < 70


def test_reference_of_weights_has_none_of_them(folder: Path) -> None:
    argv = [DIGITS, "--bind", "N=1", "--backend", "interpreter", "--weights", "int4", "--input", "x.npy"]
    finished = run_tool(glow_run.main, [*argv, "--quantization-report", "q.json"], directory=folder)
    assert (finished.code, finished.stderr) == (0, b"")
    values = {row["name"]: row for row in json.loads((folder / "q.json").read_text())["values"]}
    assert values["relu2:0"]["ratio"] is None
    assert 5 < values["probabilities"]["ratio"] < 60
    assert (values["conv2:1"]["precision"], values["conv2:1"]["type"]) == ("f32", "f32")


def test_activation_alone_is_computed_in_floats_of_its_own(tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], name="relu")], "graph", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    argv = ["m.onnx", "--backend", "interpreter", "--precision", "bf16", "--quantization-report", "q.json"]
    assert run_tool(glow_run.main, argv, directory=tmp_path).code == 0
    [row] = [row for row in json.loads((tmp_path / "q.json").read_text())["values"] if row["name"] == "relu:0"]
    assert (row["precision"], row["type"], row["ratio"]) == ("f32", "f32", None)


def test_times_are_those_of_the_nodes_of_a_value(folder: Path) -> None:
    found = report(folder, backend="cpu")
    took = {name for name, row in found.items() if (row["microseconds"] or 0) > 0}
    # A convolution, its bias, its activation and its rounding are one instruction.
    assert {"relu1:0", "relu2:0", "pool+classifier:0"} <= took
    assert found["pool:0"]["microseconds"] is None


def test_files_have_histograms(folder: Path) -> None:
    report(folder, "--quantization-report", "q.json")
    data = json.loads((folder / "q.json").read_text())
    values = {row["name"]: row for row in data["values"]}
    assert data["model"] == "digits.onnx"
    assert sum(values["image:0"]["histogram"]["counts"]) == 64
    report(folder, "--quantization-report", "q.html")
    page = ElementTree.fromstring((folder / "q.html").read_text().partition("\n")[2])
    assert len(list(page.iter("{http://www.w3.org/2000/svg}svg"))) == len(values)
    ranges = [row["quantized_range"] for row in values.values() if row["quantized_range"] is not None]
    assert len(list(page.iter("{http://www.w3.org/2000/svg}line"))) == 2 * len(ranges) > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--quantization-report", "q.txt"], "expected FILE.json or FILE.html, got 'q.txt'"),
        (["--load-profile", "p.json", "--quantization-report", "p.json"], "p.json: error: cannot be written"),
        (
            ["--quantization-report"],
            "--quantization-report needs --load-profile or --load-configuration or --precision or --weights",
        ),
    ],
)
def test_mistakes_are_one_line(folder: Path, options: list[str], message: str) -> None:
    found = run_tool(glow_run.main, [DIGITS, "--bind", "N=1", *options], directory=folder)
    assert (found.code, found.stdout) == (1, b"")
    assert message in found.stderr.decode()
