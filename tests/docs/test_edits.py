"""The edits that pages count are whole: made in a copy of the repository, they give an operator that does all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
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


FUNCTION = """
import math

import numpy as np
import onnx
from gradients import check_gradients
from onnx import helper

import glow_mlir
from glow_mlir.dialects.glow_high.elementwise_math import Erf2Op
from glow_mlir.dialects.math import MATH
from glow_mlir.kernels import erf2

x = np.random.default_rng(0).standard_normal((3, 40), np.float32)
expected = np.vectorize(math.erf)(x)
node = helper.make_node("Erf2", ["x"], ["y"])
x_type = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 40])
y_type = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
graph = helper.make_graph([node], "g", [x_type], [y_type])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
for options in ({}, {"backend": "interpreter"}, {"threads": 2, "dimensions": {"n": (1, 8)}}):
    (y,) = glow_mlir.InferenceSession(model, cache=False, **options).run(None, {"x": x})
    np.testing.assert_allclose(y, expected, rtol=1e-6)

@glow_mlir.kernel("x[i, j] -> y[i, j]")
def doubled(x):
    return erf2(x) * 2.0

np.testing.assert_allclose(doubled(x), 2 * expected, rtol=1e-6)
assert "math.erf2" in {op.name for op in MATH.operations}
check_gradients(lambda emit, values: emit(Erf2Op, values["x"]), {"x": x[:, :5].astype(np.float64)})
"""
"""A program with a function of one float: as an operator of ONNX, as a word of kernels, and its gradient."""


FOLD = """
import numpy as np
from gradients import check_gradients
from xdsl.dialects.builtin import f32

import glow_mlir
from glow_mlir.dialects.shapes import tensor
from glow_mlir.kernels import reduce_fmax2
from glow_mlir.support.symbols import Symbol, SymbolicSize

@glow_mlir.kernel("x[i, j] -> y[i]")
def largest(x):
    return reduce_fmax2(x, "j") * 2.0

x = np.random.default_rng(0).standard_normal((3, 40), np.float32)
gaps = np.where(x > 1, np.nan, x)
rows = SymbolicSize.of(Symbol("rows", 0, 8))
module = largest.module(tensor((rows, 40), f32))
assert "fold [maxnumf2]" in str(module)
for options in ({}, {"backend": "interpreter"}, {"threads": 2}):
    (y,) = glow_mlir.InferenceSession(module.clone(), **options).run(None, {"x": gaps})
    np.testing.assert_array_equal(y, np.fmax.reduce(gaps, axis=1) * 2)
check_gradients(
    lambda emit, values: emit.insert(largest.operator(values["x"])).results[0], {"x": x[:, :5].astype(np.float64)}
)
"""
"""A program with a fold: as a word of kernels, in machine code and in the interpreter, and its gradient."""


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


def copy_with(edits: list[tuple[Path, str]], renamed: Callable[[str], str], folder: Path) -> None:
    """A copy of the repository with each block once more, below itself, for an operator of another name."""
    for room in ("dialects", "glow_mlir"):
        shutil.copytree(ROOT / room, folder / room, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in edits:
        source = (folder / path).read_text(encoding="utf-8")
        assert source.count(text) == 1
        names = {name for name in re.findall(r"\w+Op\b", text) if renamed(name) != name}
        for name in names:
            pattern = rf"^(from .* import .*)\b{name}\b"
            source = re.sub(pattern, rf"\1{name}, {renamed(name)}", source, flags=re.MULTILINE)
        between = "\n\n" if re.search("^(class|def) ", text, re.MULTILINE) else ""
        (folder / path).write_text(source.replace(text, f"{text}{between}{renamed(text)}"), encoding="utf-8")


def run_in(folder: Path, program: str) -> None:
    """Run a program with a copy of the repository."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "tests" / "support")])}
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_reduction_is_an_edit_of_two_files(tmp_path: Path) -> None:
    edits = blocks("ReduceL1Op")
    assert (len(edits), sum(lines_of(text) for _, text in edits)) == (2, 9)
    copy_with(edits, lambda text: text.replace("L1", "L3").replace("l1", "l3"), tmp_path)
    run_in(tmp_path, REDUCTION)


def test_a_function_of_one_float_is_an_edit_of_two_files(tmp_path: Path) -> None:
    edits = blocks("erf")
    assert (len(edits), sum(lines_of(text) for _, text in edits)) == (2, 17)
    copy_with(edits, lambda text: re.sub("(?<!_math.)(erf)", r"\g<1>2", text, flags=re.IGNORECASE), tmp_path)
    run_in(tmp_path, FUNCTION)


def test_a_fold_is_an_edit_of_one_file(tmp_path: Path) -> None:
    edits = blocks("reduce_fmax =")
    assert (len(edits), sum(lines_of(text) for _, text in edits)) == (1, 11)
    copy_with(edits, lambda text: re.sub('(reduce_fmax|"maxnumf?)', r"\g<1>2", text), tmp_path)
    run_in(tmp_path, FOLD)


def test_a_pool_is_an_edit_of_three_files(tmp_path: Path) -> None:
    edits = blocks("LpPoolOp")
    assert (len(edits), sum(lines_of(text) for _, text in edits)) == (3, 33)
    copy_with(edits, lambda text: text.replace("LpPool", "LqPool").replace("lp_pool", "lq_pool"), tmp_path)
    run_in(tmp_path, POOL)


def test_a_gather_is_an_edit_of_two_files(tmp_path: Path) -> None:
    edits = blocks("GatherElementsOp")
    assert (len(edits), sum(lines_of(text) for _, text in edits)) == (2, 26)
    names = {"GatherElements": "TakeAlong", "gather_elements": "take_along"}
    copy_with(edits, lambda text: re.sub("|".join(names), lambda found: names[found[0]], text), tmp_path)
    run_in(tmp_path, GATHER)
