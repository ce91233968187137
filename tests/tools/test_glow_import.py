"""`glow-import`: from ONNX files to textual modules, and one-line errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from checkout import ROOT
from in_process import Finished, run_tool
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import read_module
from glow_mlir.tools import glow_compile
from glow_mlir.tools.glow_import import main


def glow_import(*arguments: str, stdin: bytes = b"", directory: Path | None = None) -> Finished:
    """Run the tool in process."""
    return run_tool(main, arguments, program="glow-import", stdin=stdin, directory=directory)


WEIGHT = np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(np.float32)


def model(kind: str = "Relu") -> onnx.ModelProto:
    """A convolution with a free batch size, and something after it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node(kind, ["c"], ["y"], name="last"),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8, 4, 4])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `m.onnx`."""
    onnx.save(model(), tmp_path / "m.onnx")
    return tmp_path


@pytest.mark.parametrize("stage", ["imported", "optimized", "allocated"])
def test_a_stage_on_disk_runs_from_its_files(folder: Path, stage: str) -> None:
    finished = glow_import("m.onnx", "--bind", "N=2", "--stage", stage, "-o", "out.mlir", directory=folder)
    assert (finished.code, finished.stdout, finished.stderr) == (0, b"", b"")
    module = read_module(folder / "out.mlir", new_context())
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 4)).astype(np.float32)
    (actual,) = run_function(module, {"x": x}).values()
    (expected,) = ReferenceEvaluator(model()).run(None, {"x": x})
    np.testing.assert_allclose(actual, np.asarray(expected), rtol=1e-5, atol=1e-5)


def test_names_of_nodes_are_locations(folder: Path) -> None:
    assert glow_import("m.onnx", "--bind", "N=1", directory=folder).code == 0
    text = (folder / "m.mlir").read_text()
    assert 'glow_high.relu %conv1_3 : tensor<1x8x4x4xf32> loc("last"' in text
    assert (folder / "m.weights").stat().st_size >= WEIGHT.nbytes


def test_stdout_gets_the_module_and_nothing_else(folder: Path) -> None:
    stdin = (folder / "m.onnx").read_bytes()
    finished = glow_import("-", "--bind", "N=1", "--name", "net", "-o", "-", stdin=stdin, directory=folder)
    assert finished.code == 0
    assert finished.stdout.startswith(b"builtin.module")
    assert b"glow_high.func @net(@x, @y)" in finished.stdout
    assert b"loc(" not in finished.stdout
    assert {path.name for path in folder.iterdir()} == {"m.onnx"}
    with_locations = glow_import("m.onnx", "--bind", "N=1", "-o", "-", "--print-debuginfo", directory=folder)
    assert b'loc("conv1"' in with_locations.stdout


def test_values_of_inputs_are_constants(tmp_path: Path) -> None:
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3)),
        helper.make_tensor_value_info("shape", TensorProto.INT64, (1,)),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, (None,))
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"], "flat")], "g", inputs, [output])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    finished = glow_import("m.onnx", "--value", "shape=6", "-o", "-", directory=tmp_path)
    assert b"glow_high.func @main(@x, @y)" in finished.stdout
    finished = glow_import("m.onnx", directory=tmp_path)
    assert (finished.code, finished.stdout) == (1, b"")
    line = "m.onnx: error: node 'flat': the shape of Reshape depends on an input of the model (hint: give the value of"
    assert finished.stderr.decode().startswith(line)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["m.onnx"], "m.onnx: error: 1 dimension has no size: 'N' of input 'x' (hint: --bind N=1, or a range"),
        (
            ["m.onnx", "--bind", "N"],
            "glow-import: error: argument --bind: expected NAME=SIZE, NAME=LEAST..MOST, NAME=LEAST.. or "
            "NAME=EXPRESSION, got 'N'",
        ),
        (["m.onnx", "--bind", "N=1", "--bind", "M=1"], "error: the model has no free dimension 'M'"),
        (["m.onnx", "--bind", "N=1", "--stage", "done"], "glow-import: error: no stage 'done' (hint: stages are"),
        (["-"], "glow-import: error: a model from stdin has no name to write to (hint: say where with -o)"),
        (["m.onnx", "--bind", "N=1", "--name", ""], "glow-import: error: --name is empty"),
        (["nowhere.onnx"], "nowhere.onnx: error: cannot be read: No such file or directory"),
        (["cut.onnx", "--bind", "N=1"], "cut.onnx: error: is not an ONNX model, or is cut off (hint: check"),
        (
            ["odd.onnx", "--bind", "N=1"],
            "odd.onnx: error: 1 operator is not supported by the importer: Oddity ('last')",
        ),
        ([], "glow-import: error: the following arguments are required: model"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(folder: Path, arguments: list[str], reason: str) -> None:
    (folder / "cut.onnx").write_bytes((folder / "m.onnx").read_bytes()[:300])
    onnx.save(model("Oddity"), folder / "odd.onnx")
    before = {path.name for path in folder.iterdir()}
    finished = glow_import(*arguments, directory=folder)
    assert (finished.code, finished.stdout) == (1, b"")
    line = finished.stderr.decode()
    assert reason in line
    assert line.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize("path", ["", "/", ".."])
def test_a_folder_without_a_name_is_told(path: str) -> None:
    finished = glow_import(path)
    assert finished.code == 1
    assert "error: cannot be read: Is a directory" in finished.stderr.decode()


def test_a_file_says_why_no_free_size_is_taken_to_be_one(tmp_path: Path) -> None:
    model = str(ROOT / "examples" / "digits.onnx")
    for tool in (main, glow_compile.main):
        found = run_tool(tool, [model], directory=tmp_path)
        assert found.code == 1
        expected = "(hint: --bind N=1, or a range as 1..8; there is no default of 1, because the file keeps the size)\n"
        assert found.stderr.decode().endswith(expected)
        assert not list(tmp_path.iterdir())
