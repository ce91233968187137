"""Initial values: their distributions by the fans of layers, and what a session makes of patterns."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from training_models import convolutional, perceptron

from glow_mlir import TrainingSession
from glow_mlir.errors import OptionError
from glow_mlir.frontends.onnx.models.fans import Fans, fans_of
from glow_mlir.training.initializers import INITIALIZERS

SHAPE = (120, 80, 3, 3)
FANS = Fans(80 * 9, 120 * 9)
DEVIATIONS = {
    "normal": 0.02,
    "uniform": 0.1 / math.sqrt(12),
    "xavier_uniform": math.sqrt(2 / (200 * 9)),
    "xavier_normal": math.sqrt(2 / (200 * 9)),
    "he_uniform": math.sqrt(2 / (80 * 9)),
    "he_normal": math.sqrt(2 / (80 * 9)),
}


def graph(node: onnx.NodeProto) -> onnx.GraphProto:
    """A graph of one node."""
    return helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])


@pytest.mark.parametrize("name", DEVIATIONS)
def test_distributions(name: str) -> None:
    values = INITIALIZERS[name]().values(SHAPE, FANS, np.random.default_rng(1))
    assert values.shape == SHAPE
    assert abs(values.mean()) < 0.02 * DEVIATIONS[name]
    np.testing.assert_allclose(values.std(), DEVIATIONS[name], rtol=0.02)
    if name.endswith("uniform"):
        np.testing.assert_allclose(abs(values).max(), DEVIATIONS[name] * math.sqrt(3), rtol=0.01)


@pytest.mark.parametrize("shape", [(20, 30), (30, 20), (16, 2, 3, 3)])
def test_orthogonal_matrices(shape: tuple[int, ...]) -> None:
    matrix = INITIALIZERS["orthogonal"]().values(shape, Fans(1, 1), np.random.default_rng(2)).reshape(shape[0], -1)
    product = matrix @ matrix.T if shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-12)


@pytest.mark.parametrize(
    ("node", "shape", "fans"),
    [
        (helper.make_node("Conv", ["x", "w"], ["y"]), (8, 4, 3, 5), Fans(60, 120)),
        (helper.make_node("Gemm", ["x", "w"], ["y"], transB=1), (8, 4), Fans(4, 8)),
        (helper.make_node("Gemm", ["x", "w"], ["y"]), (4, 8), Fans(4, 8)),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), (4, 8), Fans(4, 8)),
        (helper.make_node("Transpose", ["w"], ["y"]), (8, 4), Fans(4, 8)),
        (helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2), (1, 8, 4), Fans(4, 8)),
        (helper.make_node("Add", ["x", "w"], ["y"]), (8,), None),
    ],
)
def test_fans(node: onnx.NodeProto, shape: tuple[int, ...], fans: Fans | None) -> None:
    assert fans_of(graph(node), "w", shape) == fans


def test_sessions_begin_anew() -> None:
    first, second = (TrainingSession(perceptron([64, 256, 3], 8), cache=False) for _ in range(2))
    for session in (first, second):
        session.initialize({"*": "he_normal", "b*": "zeros"}, seed=3)
    found = first.weights()
    assert all((second.weights()[name] == value).all() for name, value in found.items())
    np.testing.assert_allclose(found["w0"].std(), math.sqrt(2 / 64), rtol=0.03)
    assert not found["b0"].any()
    first.initialize({"w0": "he_normal"}, seed=4)
    assert (first.weights()["w0"] != found["w0"]).mean() > 0.9
    assert first.parameters == ("w0", "b0", "w1", "b1")


def test_running_statistics_are_no_parameters() -> None:
    session = TrainingSession(convolutional(8), cache=False)
    assert {"mean", "variance"}.isdisjoint(session.parameters)
    session.initialize({"*": "ones"})
    assert not (session.weights()["mean"] == 1).any()


@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        ({"u*": "zeros"}, "no parameter is called 'u\\*'"),
        ({"w0": "glorot"}, "there is no initializer 'glorot'"),
        ({"b0": "orthogonal"}, "a parameter of shape \\[5\\] has no fans"),
    ],
)
def test_errors(patterns: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        TrainingSession(perceptron([6, 5, 3], 8), cache=False).initialize(patterns)
