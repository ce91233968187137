"""The models of the benchmark: those it builds, and files of users."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from models import GraphBuilder, he
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from contest.operations import flops
from contest.quantized import QUANTIZED, quantized
from contest.workloads import NotAWorkload, names_of, write_workload
from contest.zoo import ZOO


def product(path: Path, weights: np.ndarray, kind: int = TensorProto.FLOAT, external: bool = False) -> str:
    """Write a model with one product of a free number of rows."""
    rows = helper.make_tensor_value_info("x", kind, ["N", weights.shape[0]])
    result = helper.make_tensor_value_info("y", kind, ["N", weights.shape[1]])
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [rows], [result], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.parent.mkdir(exist_ok=True)
    onnx.save(model, path, save_as_external_data=external, location="weights.bin", size_threshold=0)
    return str(path)


def test_a_file_is_a_workload(tmp_path: Path):
    found = write_workload(product(tmp_path / "mine.onnx", np.ones((3, 4), np.float32)), tmp_path)
    assert (found.name, found.outputs, found.flops) == ("mine", ["y"], 2 * 3 * 4)
    assert np.load(found.inputs)["x"].shape == (1, 3)


def test_other_weights_are_another_workload(tmp_path: Path):
    folders: list[Path] = []
    for value in (1, 2):
        path = product(tmp_path / "mine.onnx", np.full((3, 4), value, np.float32), external=True)
        folders.append(write_workload(path, tmp_path).model)
        assert (numpy_helper.to_array(onnx.load(folders[-1]).graph.initializer[0]) == value).all()
    assert folders[0] != folders[1]


def test_files_called_model_have_the_names_of_their_folders(tmp_path: Path):
    paths = [product(tmp_path / name / "model.onnx", np.ones((3, 4), np.float32)) for name in ("left", "right")]
    assert [write_workload(path, tmp_path).name for path in names_of(paths)] == ["left", "right"]
    with pytest.raises(NotAWorkload, match="2 models are called left"):
        names_of([paths[0], paths[0]])


def test_what_cannot_be_measured_is_one_line(tmp_path: Path):
    with pytest.raises(NotAWorkload, match=r"no_such_model is neither a file nor one of resnet50, .*unet"):
        names_of(["no_such_model"])
    (tmp_path / "garbage.onnx").write_bytes(b"no model")
    with pytest.raises(NotAWorkload, match=r"garbage\.onnx: "):
        write_workload(str(tmp_path / "garbage.onnx"), tmp_path)
    missing = product(tmp_path / "missing.onnx", np.ones((3, 4), np.float32), external=True)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(NotAWorkload, match=r"missing\.onnx: "):
        write_workload(missing, tmp_path)
    with pytest.raises(NotAWorkload, match="input 'x' is no tensor of numbers"):
        write_workload(product(tmp_path / "s.onnx", np.array([["a"]], object), TensorProto.STRING), tmp_path)


def test_the_zoo_is_all_of_its_networks():
    assert names_of(["lstm", "zoo"]) == ["lstm", *ZOO]


@pytest.mark.parametrize("name", ["generator", "mobilenet_v3", "recommender"])
def test_networks_of_the_zoo_are_valid(name: str):
    model = ZOO[name]()
    onnx.checker.check_model(model, full_check=True)
    assert flops(model)


def test_quantized_networks_have_codes_around_each_product():
    g = GraphBuilder(0)
    weights, bias = g.weight(he(g.rng, (8, 3, 3, 3), 27)), g.weight(np.zeros(8, np.float32))
    x = g.node("Conv", "input", weights, bias, pads=[1] * 4)
    model = g.model({"input": (TensorProto.FLOAT, [1, 3, 8, 8])}, {g.node("Relu", x): [1, 8, 8, 8]})
    found = quantized(lambda: model)
    onnx.checker.check_model(found, full_check=True)
    kinds = Counter(node.op_type for node in found.graph.node)
    assert (kinds["Conv"], kinds["DequantizeLinear"]) == (1, 4)
    assert names_of(["int8"]) == list(QUANTIZED)


def test_operations_of_unknown_shapes_are_unknown():
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "ab"]
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["y"])], "g", inputs, inputs[:0])
    assert flops(helper.make_model(graph)) is None
