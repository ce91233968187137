"""`glow-run` on models with free dimensions, and with inputs that fix shapes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from in_process import Finished, run_tool
from onnx import TensorProto, helper

from glow_mlir.tools.glow_run import main


def finished(folder: Path, *arguments: str) -> Finished:
    """Run the tool in that folder, with a cache of its own."""
    return run_tool(main, arguments, environment={"GLOW_CACHE_DIR": str(folder / "cache")}, directory=folder)


def test_sizes_and_values_come_from_the_inputs(tmp_path: Path) -> None:
    """Those of files and of the command line; layers are compared under the same ones."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 2)),
        helper.make_tensor_value_info("axes", TensorProto.INT64, (1,)),
    ]
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("ReduceSum", ["r", "axes"], ["y"], "sum", keepdims=0),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("rest",))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "sum.onnx")
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    given = ("sum.onnx", "--input", "x=x.npy", "--value", "axes=0")
    for reference in ("interpreter", "onnxruntime"):
        result = finished(tmp_path, *given, "--check", reference, "--outputs", "y.npz")
        assert (result.code, result.stderr) == (0, b"")
        assert b"2 layers" in result.stdout
    assert np.load(tmp_path / "y.npz")["y"].tolist() == [6, 9]
    stats = json.loads(finished(tmp_path, *given, "--stats", "-").stdout)
    (item,) = stats["specializations"]
    assert (item["values"], item["calls"], item["is_background"]) == ({"axes": [0]}, 1, False)
    assert item["compile_seconds"] == stats["compile_seconds"]
    assert 0 < stats["code_bytes"] <= item["bytes"]
    for arguments, line in (
        (("--bind", "N=3"), "input 'axes' fixes shapes, and no random numbers do (hint: --value axes=NUMBERS"),
        (("--bind", "N=3", "--value", "axes=0.5"), "the value of input 'axes' must be int64[1], got float64[1]"),
        (("--bind", "N=3", "--value", "axes"), "argument --value: expected INPUT=NUMBER,NUMBER…, got 'axes'"),
        (("--bind", "N=3", "--value", "axes=7"), "node 'sum': ReduceSum: "),
        (("--bind", "N=3", "--value", "axes=0", "--dump-values", "v"), "compiled for the values of inputs that fix"),
    ):
        result = finished(tmp_path, "sum.onnx", *arguments)
        assert (result.code, result.stdout) == (1, b"")
        assert line in result.stderr.decode()


def test_sizes_that_nothing_says_are_those_of_other_inputs_or_one(tmp_path: Path) -> None:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ("N", size)) for name, size in (("x", "M"), ("y", 2))
    ]
    graph = helper.make_graph(
        [helper.make_node("Concat", ["x", "y"], ["z"], axis=1)],
        "g",
        inputs,
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ("N", "width"))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "concat.onnx")
    np.save(tmp_path / "y.npy", np.zeros((3, 2), np.float32))
    result = finished(tmp_path, "concat.onnx", "--input", "y=y.npy", "--seed", "0")
    assert b"float32[3, 3]" in result.stdout
    assert result.stderr.decode() == (
        "glow-run: warning: unknown size: 'M' of input 'x' is taken to be 1 (hint: --bind M=1, or an input in a file)\n"
    )
    assert b"float32[1, 3]" in finished(tmp_path, "concat.onnx").stdout
