"""The edits that pages count are whole: made in a copy of the repository, they give an operator that does all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from checkout import ROOT

PAGE = ROOT / "docs" / "add-an-operator.md"
BLOCK = re.compile(r'^```python title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)

REDUCTION = """
import numpy as np
import onnx
from gradients import check_gradients
from onnx import helper

import glow_mlir
from glow_mlir.dialects.glow_high.reductions import ReduceL3Op

x = np.random.default_rng(0).standard_normal((3, 40, 2), np.float32)
axes = helper.make_node("Constant", [], ["axes"], value_ints=[1])
node = helper.make_node("ReduceL3", ["x", "axes"], ["y"], keepdims=0)
relu = helper.make_node("Relu", ["y"], ["z"])
x_type = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 40, 2])
z_type = helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None)
graph = helper.make_graph([axes, node, relu], "g", [x_type], [z_type])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
for options in ({}, {"backend": "interpreter"}, {"threads": 2, "dimensions": {"n": (1, 8)}}):
    (z,) = glow_mlir.InferenceSession(model, cache=False, **options).run(None, {"x": x})
    np.testing.assert_allclose(z, np.abs(x).sum(1), rtol=1e-5)
check_gradients(lambda emit, values: emit(ReduceL3Op, values["x"], axes=(1,)), {"x": x[:, :5].astype(np.float64)})
"""
"""A program with a model of the reduction: machine code, interpreter, threads, run-time sizes, and its gradient."""


def blocks(name: str) -> list[tuple[Path, str]]:
    """The blocks of the page that have a name, and the files that they are lines of."""
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return [(Path(path), text) for path, text in found if name in text]


def lines_of(text: str) -> int:
    """How many lines of a text are not blank."""
    return len([line for line in text.splitlines() if line.strip()])


POOL = """
import numpy as np
import onnx
from gradients import check_gradients
from onnx import helper

import glow_mlir
from glow_mlir.dialects.glow_high.pooling import LqPoolOp

x = np.random.default_rng(0).standard_normal((2, 3, 8, 9), np.float32)
window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 0]}
node, relu = helper.make_node("LqPool", ["x"], ["y"], p=3, **window), helper.make_node("Relu", ["y"], ["z"])
x_type = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, "h", 9])
z_type = helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None)
graph = helper.make_graph([node, relu], "g", [x_type], [z_type])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
padded = np.pad(np.abs(x) ** 3, [(0, 0), (0, 0), (1, 1), (0, 0)])
seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))[:, :, ::2]
for options in ({}, {"backend": "interpreter"}, {"threads": 2, "dimensions": {"n": (1, 8), "h": (4, 20)}}):
    (z,) = glow_mlir.InferenceSession(model, cache=False, **options).run(None, {"x": x})
    np.testing.assert_allclose(z, seen.sum((-1, -2)) ** (1 / 3), rtol=1e-5)
few = x[:1, :, :5, :4].astype(np.float64)
check_gradients(lambda emit, v: emit(LqPoolOp, v["x"], p=3, layout="channels_first", **window), {"x": few})
"""
"""A program with a model of the pool: machine code, interpreter, threads, run-time sizes, and its gradient."""


def copy_with(edits: list[tuple[Path, str]], renames: dict[str, str], folder: Path) -> None:
    """A copy of the repository with each block once more, below itself, for an operator of another name."""
    for room in ("dialects", "glow_mlir"):
        shutil.copytree(ROOT / room, folder / room, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in edits:
        source = (folder / path).read_text(encoding="utf-8")
        assert source.count(text) == 1
        renamed = text
        for old, new in renames.items():
            renamed = renamed.replace(old, new)
            source = re.sub(rf"^(from .* import .*)\b{old}Op\b", rf"\1{old}Op, {new}Op", source, flags=re.MULTILINE)
        whole = source.replace(text, f"{text}\n\n{renamed}" if ":\n" in text else text + renamed)
        (folder / path).write_text(whole, encoding="utf-8")


def run_with(program: str, folder: Path) -> None:
    """Run a program with the copy of the repository in a folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "tests" / "support")])}
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_reduction_is_an_edit_of_two_files(tmp_path: Path) -> None:
    edits = blocks("ReduceL1Op")
    assert (len(edits), sum(lines_of(text) for _, text in edits)) == (2, 9)
    copy_with(edits, {"L1": "L3", "l1": "l3"}, tmp_path)
    run_with(REDUCTION, tmp_path)


def test_a_pool_is_an_edit_of_three_files(tmp_path: Path) -> None:
    edits = blocks("LpPoolOp")
    assert (len(edits), sum(lines_of(text) for _, text in edits)) == (3, 33)
    copy_with(edits, {"LpPool": "LqPool", "lp_pool": "lq_pool"}, tmp_path)
    run_with(POOL, tmp_path)
