"""An option is given once, or once for each name: the tools say so, instead of taking the last in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from in_process import run_tool

from glow_mlir.errors import OptionError
from glow_mlir.tools import glow_compile, glow_import, glow_opt, glow_profile, glow_run, glow_train, glow_tune
from glow_mlir.tools.arguments.run_arguments import parse_arguments

MODEL = str(ROOT / "examples" / "digits.onnx")

Tool = Callable[[list[str]], int]


@pytest.mark.parametrize(
    "tool", [glow_compile.main, glow_import.main, glow_profile.main, glow_run.main, glow_train.main, glow_tune.main]
)
def test_a_dimension_has_one_size(tool: Tool, tmp_path: Path) -> None:
    found = run_tool(tool, [MODEL, "--bind", "N=1..4", "--bind", "N=3"], directory=tmp_path)
    assert found.code == 1
    assert "error: argument --bind: 'N' is given twice" in found.stderr.decode()
    assert found.stderr.count(b"\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        (glow_run.main, ["--threads", "1", "--threads", "2"], "argument --threads: is given twice"),
        (glow_run.main, ["--value", "x=1", "--value", "x=2"], "argument --value: 'x' is given twice"),
        (glow_import.main, ["-o", "a.mlir", "--output-file", "b.mlir"], "-o/--output-file: is given twice"),
        (glow_compile.main, ["--target", "avx2", "--target", "neon"], "argument --target: is given twice"),
        (glow_opt.main, ["--target", "avx2", "--target", "neon"], "argument --target: is given twice"),
        (glow_profile.main, ["--merge", "a.json", "--merge", "a.json"], "a.json: error: is merged twice"),
    ],
)
def test_an_option_is_given_once(tool: Tool, arguments: list[str], message: str, tmp_path: Path) -> None:
    dataset = ["--dataset", "d.npz"] if tool is glow_profile.main else []
    found = run_tool(tool, [MODEL, *dataset, *arguments], directory=tmp_path)
    assert found.code == 1
    assert message in found.stderr.decode()
    assert found.stderr.count(b"\n") == 1


def test_one_input_has_one_array(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8), np.float32))
    arguments = [MODEL, "--input", "x.npy", "--input", "image=x.npy"]
    found = run_tool(glow_run.main, arguments, directory=tmp_path)
    assert found.code == 1
    assert "error: input 'image' is given twice" in found.stderr.decode()


def test_options_of_the_other_side_take_the_place_of_those_of_both() -> None:
    args = parse_arguments(
        [MODEL, "--bind", "N=1", "--bind", "M=2", "--threads", "1"], ["--bind", "N=3", "--threads", "2"]
    )
    assert dict(args.bind) == {"N": 3, "M": 2}
    assert args.threads == 2
    with pytest.raises(OptionError, match="is given twice"):
        parse_arguments([MODEL], ["--threads", "1", "--threads", "2"])
