"""Training of networks with Dropout: other elements in each step, the same ones from the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from glow_mlir import InferenceSession
from glow_mlir.api.training_session import TrainingSession
from glow_mlir.errors import OptionError, UnsupportedError
from glow_mlir.training.optimizers import SGD

BATCH, FEATURES, HIDDEN = 16, 4, 32
RATIO = 0.25


def network(opset: int = 22) -> onnx.ModelProto:
    """Two layers, with a Dropout between them."""
    random = np.random.default_rng(3)
    weights = {
        "w1": random.standard_normal((FEATURES, HIDDEN)).astype(np.float32) / 2,
        "w2": random.standard_normal((HIDDEN, 1)).astype(np.float32) / 6,
    }
    drop = helper.make_node("Dropout", ["r", *["ratio"] * (opset >= 12)], ["d"], name="drop")
    if opset < 12:
        drop.attribute.append(helper.make_attribute("ratio", RATIO))
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        drop,
        helper.make_node("MatMul", ["d", "w2"], ["y"]),
    ]
    kept = {**weights, **({"ratio": np.float32(RATIO)} if opset >= 12 else {})}
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [BATCH, FEATURES])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [BATCH, 1])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in kept.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def session(seed: int = 5, rate: float = 0.02, opset: int = 22, backend: str | None = None) -> TrainingSession:
    return TrainingSession(
        network(opset), loss="mse", optimizer=SGD(learning_rate=rate), seed=seed, cache=False, backend=backend
    )


def batch() -> dict[str, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((BATCH, FEATURES)).astype(np.float32)
    return {"x": x, "targets": x.sum(axis=1, keepdims=True)}


def losses(trained: TrainingSession, count: int) -> list[float]:
    return [trained.step(batch()) for _ in range(count)]


def test_loss_falls_and_inference_drops_nothing() -> None:
    trained = session()
    before = trained.evaluate(batch())["loss"]
    losses(trained, 60)
    after = trained.evaluate(batch())
    assert after["loss"] < before / 10
    expected = InferenceSession(network(), cache=False).run(None, {"x": batch()["x"]})[0]
    np.testing.assert_allclose(session().predict({"x": batch()["x"]})["y"], expected, rtol=1e-5)
    assert np.array_equal(trained.predict({"x": batch()["x"]})["y"], after["y"])


def test_steps_follow_from_the_seed() -> None:
    first = losses(session(seed=5), 4)
    assert first == losses(session(seed=5), 4)
    assert first != losses(session(seed=6), 4)


def test_each_step_drops_others() -> None:
    """With a learning rate of 0, masks are all that changes."""
    assert len(set(losses(session(rate=0.0), 6))) == 6


def test_checkpoint_goes_on_with_the_same_masks(tmp_path: Path) -> None:
    trained, path = session(seed=5), tmp_path / "checkpoint.safetensors"
    losses(trained, 3)
    trained.save(path)
    expected = losses(trained, 3)
    other = session(seed=9)
    losses(other, 1)
    other.load(path)
    assert losses(other, 3) == expected


def test_interpreter_takes_the_same_steps() -> None:
    np.testing.assert_allclose(losses(session(), 5), losses(session(backend="interpreter"), 5), rtol=1e-5)


def test_dropout_of_opset_6_trains() -> None:
    assert len(set(losses(session(rate=0.0, opset=6), 3))) == 3


def test_dropout_for_inference_alone_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="node 'drop': Dropout of opset 11 has no training"):
        session(opset=11)


def test_seed_of_more_than_64_bits_is_refused() -> None:
    with pytest.raises(OptionError, match="more than 64 bits"):
        session(seed=1 << 63)
