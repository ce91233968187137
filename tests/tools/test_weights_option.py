"""`glow-run --weights`: weights that are rounded to codes, but for those that are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from checkout import ROOT
from in_process import run_tool

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


def test_nodes_that_nothing_would_change_or_that_there_are_not_are_mistakes(tmp_path: Path) -> None:
    for options, reason in (([KEEP, "x"], b"needs --precision"), (["--weights", "int4", KEEP, "x"], b"called 'x'")):
        finished = run_tool(glow_run.main, [*DIGITS, *options], directory=tmp_path)
        assert finished.code == 1
        assert reason in finished.stderr
        assert finished.stderr.count(b"\n") == 1
