"""ONNX's operators of training, beside what the standard says in numpy's words; the suite has cases of them, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import node, refusal, value

from glow_mlir import InferenceSession
from glow_mlir.errors import GlowError, ModelError, UnsupportedError

DOMAIN = "ai.onnx.preview.training"


def model(nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[str]) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "graph", inputs, [onnx.ValueInfoProto(name=name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22), helper.make_opsetid(DOMAIN, 1)])


def updated(kind: str, step: int, *tensors: np.ndarray, **attributes: Any) -> list[np.ndarray]:
    """What an optimizer makes of a tensor, and of what it keeps for it; operands are of f64."""
    names = [f"t{place}" for place in range(len(tensors))]
    results = [name for name in names if name != "t1"]
    outputs = [f"new_{name}" for name in results]
    made = helper.make_node(kind, ["r", "n", *names], outputs, domain=DOMAIN, **attributes)
    inputs = [value("r", TensorProto.DOUBLE, ()), value("n", TensorProto.INT64, ())]
    inputs += [value(name, TensorProto.DOUBLE, item.shape) for name, item in zip(names, tensors, strict=True)]
    feeds = {"r": np.array(0.25), "n": np.array(step), **dict(zip(names, tensors, strict=True))}
    return InferenceSession(model([made], inputs, outputs), cache=False).run(None, feeds)


def tensors(count: int) -> list[np.ndarray]:
    return [np.abs(np.random.default_rng(place).standard_normal((3, 4))) for place in range(count)]


@pytest.mark.parametrize("step", [0, 1, 5])
@pytest.mark.parametrize("norm", [0.0, 0.125])
def test_adagrad(step: int, norm: float) -> None:
    x, g, squares = tensors(3)
    found = updated("Adagrad", step, x, g, squares, norm_coefficient=norm, decay_factor=0.5, epsilon=0.0625)
    g = g + norm * x
    squares = squares + g * g
    expected = [x - 0.25 / (1 + step * 0.5) * g / (np.sqrt(squares) + 0.0625), squares]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("step", [0, 1, 5])
@pytest.mark.parametrize("norm", [0.0, 0.125])
@pytest.mark.parametrize("post", [0.0, 0.25])
def test_adam(step: int, norm: float, post: float) -> None:
    x, g, first, second = tensors(4)
    attributes = {"norm_coefficient": norm, "norm_coefficient_post": post, "epsilon": 0.0625}
    found = updated("Adam", step, x, g, first, second, alpha=0.75, beta=0.875, **attributes)
    g = g + norm * x
    first, second = 0.75 * first + 0.25 * g, 0.875 * second + 0.125 * g * g
    rate = 0.25 * np.sqrt(1 - 0.875**step) / (1 - 0.75**step) if step else 0.25
    expected = [(1 - post) * (x - rate * first / (np.sqrt(second) + 0.0625)), first, second]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("mode", ["standard", "nesterov"])
def test_momentum(step: int, mode: str) -> None:
    x, g, kept = tensors(3)
    found = updated("Momentum", step, x, g, kept, norm_coefficient=0.125, alpha=0.75, beta=0.5, mode=mode)
    g = g + 0.125 * x
    kept = 0.75 * kept + (0.5 if step else 1.0) * g
    np.testing.assert_allclose(found, [x - 0.25 * (kept if mode == "standard" else g + 0.75 * kept), kept], rtol=1e-9)


def gradient_of(inputs: str = "a b", **attributes: Any) -> onnx.ModelProto:
    """a · b · b, and derivatives of it."""
    names: dict[str, Any] = {"xs": ["a"], "zs": ["b"], "y": "y", **attributes}
    nodes = [
        node("Mul", "a b", "p"),
        node("Mul", "p b", "y"),
        helper.make_node("Gradient", inputs.split(), ["d"], "slope", domain=DOMAIN, **names),
    ]
    return model(nodes, [value("a"), value("b")], ["y", "d"])


def test_gradient_of_what_is_not_held_constant() -> None:
    a, b = np.array([1, 2], np.float32), np.array([3, -1], np.float32)
    feeds = {"a": a, "b": b}
    np.testing.assert_allclose(InferenceSession(gradient_of(), cache=False).run(None, feeds)[1], b * b)
    through = gradient_of("p b", xs=["p"])
    np.testing.assert_allclose(InferenceSession(through, cache=False).run(None, feeds)[1], b)


def test_gradient_of_a_loss_changes_parameters() -> None:
    """A step of a model that says itself how it trains."""
    nodes = [
        node("MatMul", "x w", "y"),
        node("Sub", "y t", "e"),
        node("Mul", "e e", "s"),
        node("ReduceSum", "s", "loss", keepdims=0),
        helper.make_node("Gradient", ["w"], ["g"], domain=DOMAIN, xs=["w"], y="loss"),
        helper.make_node(
            "Momentum", ["r", "n", "w", "g", "v"], ["w2", "v2"],
            domain=DOMAIN, alpha=0.5, beta=1.0, norm_coefficient=0.0, mode="standard",
        ),
    ]  # fmt: skip
    shapes = {"x": (8, 3), "w": (3, 1), "t": (8, 1), "v": (3, 1), "r": ()}
    inputs = [*(value(name, shape=shape) for name, shape in shapes.items()), value("n", TensorProto.INT64, ())]
    session = InferenceSession(model(nodes, inputs, ["loss", "w2", "v2"]), cache=False)
    x = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
    w = v = np.zeros((3, 1), np.float32)
    losses: list[float] = []
    for step in range(100):
        feeds = {"x": x, "t": x.sum(axis=1, keepdims=True), "w": w, "v": v}
        loss, w, v = session.run(None, {**feeds, "r": np.array(0.02, np.float32), "n": np.array(step)})
        losses.append(float(loss))
    assert losses[-1] < losses[0] / 1000
    np.testing.assert_allclose(w, np.ones((3, 1)), atol=0.05)


def momentum(inputs: str, **attributes: Any) -> onnx.ModelProto:
    given: dict[str, Any] = {"alpha": 0.5, "beta": 1.0, "norm_coefficient": 0.0, "mode": "standard", **attributes}
    made = helper.make_node("Momentum", inputs.split(), ["y"], "move", domain=DOMAIN, **given)
    scalars = [value("r", shape=()), value("n", TensorProto.INT64, ())]
    return model([made], [*scalars, *(value(name) for name in "xgv")], ["y"])


REFUSED: dict[str, tuple[onnx.ModelProto, type[GlowError], str]] = {
    "number": (momentum("r n x g"), ModelError, "node 'move': Momentum: 2 tensors (hint: R and T are followed by 3"),
    "mode": (momentum("r n x g v", mode="heavy"), ModelError, "Momentum: mode 'heavy' does not exist"),
    "operand": (
        gradient_of("b b"),
        UnsupportedError,
        "node 'slope': Gradient: operand 0 is not 'a', from which 'y' was computed",
    ),
    "names": (gradient_of("a"), ModelError, "node 'slope': Gradient: 2 names and 1 operands"),
    "target": (gradient_of(y="nowhere"), ModelError, "'nowhere' has no value"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusal(case: str) -> None:
    made, kind, reason = REFUSED[case]
    assert reason in refusal(made, kind)
