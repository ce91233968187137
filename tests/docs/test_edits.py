"""The edits that pages count are whole: made in a copy of the repository, they give an operator that does all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
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

GATHER = """
import numpy as np
import onnx
from gradients import check_gradients
from onnx import helper

import glow_mlir
from glow_mlir.dialects.glow_high.indexing import TakeAlongOp

rng = np.random.default_rng(0)
x, at = rng.standard_normal((3, 7, 5), np.float32), rng.integers(-7, 7, (3, 4, 5))
node = helper.make_node("TakeAlong", ["x", "at"], ["y"], axis=1)
relu = helper.make_node("Relu", ["y"], ["z"])
x_type = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 7, 5])
at_type = helper.make_tensor_value_info("at", onnx.TensorProto.INT64, ["n", 4, 5])
z_type = helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None)
graph = helper.make_graph([node, relu], "g", [x_type, at_type], [z_type])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
for options in ({}, {"backend": "interpreter"}, {"threads": 2, "dimensions": {"n": (1, 8)}}):
    session = glow_mlir.InferenceSession(model, cache=False, **options)
    (z,) = session.run(None, {"x": x, "at": at})
    np.testing.assert_array_equal(z, np.maximum(np.take_along_axis(x, at, 1), 0))
    try:
        session.run(None, {"x": x, "at": at + 7})
    except glow_mlir.errors.ExecutionError as error:
        assert "an index is out of range" in str(error)
    else:
        raise AssertionError("an index out of range is no error")
inputs = {"x": x[:, :3, :2].astype(np.float64), "at": at[:2, :, :1] % 3}
check_gradients(lambda emit, values: emit(TakeAlongOp, *values.values(), axis=1), inputs)
"""
"""The same of the gather, and what an index out of range gives."""


def blocks(name: str) -> list[tuple[Path, str]]:
    """The blocks of the page that have a name, and the files that they are lines of."""
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return [(Path(path), text) for path, text in found if name in text]


def lines_of(text: str) -> int:
    """How many lines of a text are not blank."""
    return len([line for line in text.splitlines() if line.strip()])


def copy_with(edits: list[tuple[Path, str]], names: Mapping[str, str], folder: Path) -> None:
    """A copy of the repository with each block once more, below itself, for an operator of another name."""
    for room in ("dialects", "glow_mlir"):
        shutil.copytree(ROOT / room, folder / room, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in edits:
        source = (folder / path).read_text(encoding="utf-8")
        assert source.count(text) == 1
        renamed = re.sub("|".join(names), lambda found: names[found[0]], text)
        (folder / path).write_text(source.replace(text, f"{text}\n\n{renamed}" if "class" in text else text + renamed))


def run_with(edits: list[tuple[Path, str]], names: Mapping[str, str], program: str, folder: Path) -> None:
    """Run a program by a copy of the repository with the edits."""
    copy_with(edits, names, folder)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "tests" / "support")])}
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_reduction_is_an_edit_of_two_files(tmp_path: Path) -> None:
    edits = blocks("ReduceL1Op")
    assert (len(edits), sum(lines_of(text) for _, text in edits)) == (2, 9)
    run_with(edits, {"L1": "L3", "l1": "l3"}, REDUCTION, tmp_path)


def test_a_gather_is_an_edit_of_two_files(tmp_path: Path) -> None:
    edits = blocks("GatherElementsOp")
    assert (len(edits), sum(lines_of(text) for _, text in edits)) == (2, 26)
    run_with(edits, {"GatherElements": "TakeAlong", "gather_elements": "take_along"}, GATHER, tmp_path)
