"""`glow-run --weights`: weights that are rounded to codes, but for those that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from checkout import ROOT
from in_process import run_tool
from onnx import numpy_helper
from onnx_models import model_of, node, value

from glow_mlir import InferenceSession
from glow_mlir.tools import glow_run

DIGITS = [str(ROOT / "examples" / "digits.onnx"), "--bind", "N=1", "--no-cache"]
KEEP = "--keep-precision-for-nodes"


def outputs(folder: Path, *options: str) -> np.ndarray:
    """What the digits example computes for one image."""
    finished = run_tool(glow_run.main, [*DIGITS, "--outputs", "y.npz", *options], directory=folder)
    assert (finished.code, finished.stderr) == (0, b"")
    with np.load(folder / "y.npz") as archive:
        return archive["probabilities"]


def test_weights_are_rounded_but_for_those_that_are_kept(tmp_path: Path) -> None:
    exact, rounded = outputs(tmp_path), outputs(tmp_path, "--weights", "int8")
    assert 0 < np.abs(rounded - exact).max() < 0.05 * np.abs(exact).max()
    np.testing.assert_array_equal(outputs(tmp_path, "--weights", "int8", KEEP, "fully_*"), exact)


def product(folder: Path, depth: int, columns: int, rows: int = 3) -> Path:
    """A model of one product of rows with constant weights."""
    weights = np.random.default_rng(4).normal(size=(depth, columns)).astype(np.float32)
    tensor, given = numpy_helper.from_array(weights, "w"), value("x", shape=(rows, depth))
    onnx.save(model_of([node("MatMul", "x w", name="mm")], [given], initializers=[tensor]), folder / "product.onnx")
    return folder / "product.onnx"


@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize(("depth", "columns"), [(32, 1), (16, 1), (33, 1), (31, 7), (1001, 1), (66, 40)])
def test_weights_may_have_any_shape(depth: int, columns: int, weights: str, tmp_path: Path) -> None:
    model = product(tmp_path, depth, columns)
    x = {"x": np.random.default_rng(5).normal(size=(3, depth)).astype(np.float32)}
    options: dict[str, Any] = {"cache": False}
    (exact,) = InferenceSession(model, **options).run(None, x)
    (meaning,) = InferenceSession(model, weights=weights, backend="interpreter", **options).run(None, x)
    (rounded,) = InferenceSession(model, weights=weights, **options).run(None, x)
    noise = {"int8": 0.02, "int4": 0.4}[weights] * float(np.sqrt(depth))
    assert 0 < np.abs(meaning - exact).max() < noise
    np.testing.assert_allclose(rounded, meaning, rtol=0, atol=1e-5 * float(np.abs(meaning).max()))


@pytest.mark.parametrize("depth", [15, 16])
def test_a_warning_says_where_nothing_is_rounded(depth: int, tmp_path: Path) -> None:
    arguments = [str(product(tmp_path, depth, 2)), "--no-cache", "--weights", "int4"]
    finished = run_tool(glow_run.main, arguments, directory=tmp_path)
    assert finished.code == 0
    assert finished.stderr.count(b"no weights are rounded to int4") == (depth < 16)
    assert finished.stderr.count(b"\n") == (depth < 16)


def test_nodes_that_nothing_would_change_or_that_there_are_not_are_mistakes(tmp_path: Path) -> None:
    for options, reason in (
        ([KEEP, "x"], b"needs --precision"),
        (["--precision", "f32", KEEP, "x"], b"needs --precision"),
        (["--weights", "int4", KEEP, "x"], b"called 'x'"),
        (["--weights", "int4", "--check", "interpreter"], b"--weights rounds its numbers"),
        (["--precision", "bf16", "--check", "interpreter"], b"--precision rounds its numbers"),
    ):
        finished = run_tool(glow_run.main, [*DIGITS, *options], directory=tmp_path)
        assert finished.code == 1
        assert reason in finished.stderr
        assert finished.stderr.count(b"\n") == 1
