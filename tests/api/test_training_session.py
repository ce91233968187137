"""Training sessions: what changes and what does not, checkpoints, export, and errors."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from training_models import convolutional, model, perceptron

import glow_mlir
from glow_mlir import InferenceSession, TrainingSession
from glow_mlir.errors import GlowError, GlowWarning, InputError, ModelError, OptionError, UnsupportedError
from glow_mlir.training.losses import CrossEntropy, MeanSquaredError
from glow_mlir.training.optimizers import SGD, AdamW

RNG = np.random.default_rng(29)
BATCH = {"x": RNG.standard_normal((8, 6)).astype(np.float32), "targets": RNG.integers(0, 3, 8)}
IMAGES = {"x": RNG.standard_normal((8, 1, 8, 8)).astype(np.float32), "targets": RNG.integers(0, 3, 8)}


def session(source: Any = None, **keywords: Any) -> TrainingSession:
    """A session of a perceptron, or of another model."""
    given: dict[str, Any] = {"optimizer": SGD(0.1, momentum=0.9), "cache": False, **keywords}
    return TrainingSession(perceptron([6, 5, 3], 8) if source is None else source, **given)


def test_steps_lower_the_loss_until_a_batch_is_known() -> None:
    trained = session()
    losses = [trained.step(BATCH) for _ in range(200)]
    assert losses[-1] < 0.05 < losses[0]
    assert (trained.predict({"x": BATCH["x"]})["y"].argmax(1) == BATCH["targets"]).all()


def test_faults_of_a_model_are_told_once_and_refused_by_the_strict() -> None:
    """Those of nodes, of declarations, of the model as a whole, and those that were mended."""
    source = perceptron([6, 5, 3], 8)
    source.graph.ClearField("name")
    source.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 9
    source.ir_version = 3
    with pytest.warns(GlowWarning) as found:
        session(source)
    lines = sorted(str(item.message).partition(";")[0] for item in found)
    assert [line.partition(" ")[0] for line in lines] == ["4", "a", "output"]
    with pytest.raises(ModelError, match="4 initializers are not inputs") as refused:
        session(source, strict=True)
    assert len(refused.value.others) == 2


@pytest.mark.parametrize("percent", [80, 50, 30])
def test_less_memory_changes_no_bit(percent: int) -> None:
    """What is computed again is what was computed: losses and parameters are equal, activations take less."""
    # As many rows as let activations outweigh what products pack, on every processor.
    batch = {"x": RNG.standard_normal((64, 6)).astype(np.float32), "targets": RNG.integers(0, 3, 64)}
    source = perceptron([6, *([32] * 12), 3], 64)
    usual, frugal = session(source), session(source, activation_percent=percent)
    assert [usual.step(batch) for _ in range(5)] == [frugal.step(batch) for _ in range(5)]
    expected, found = usual.get_state(), frugal.get_state()
    assert all((found[name] == value).all() for name, value in expected.items())
    assert frugal.activation_bytes < usual.activation_bytes


def test_a_model_that_was_exported_in_training_infers() -> None:
    """What a batch normalization or a Dropout does in training is for `step` alone, and no part of what is exported."""
    usual, exported = convolutional(8), convolutional(8)
    (normalization,) = (node for node in exported.graph.node if node.op_type == "BatchNormalization")
    normalization.attribute.append(helper.make_attribute("training_mode", 1))
    normalization.output.extend(["mean.next", "variance.next"])
    sessions = [session(source, loss=CrossEntropy()) for source in (usual, exported)]
    assert len({trained.step(IMAGES) for trained in sessions}) == 1
    one, other = (trained.evaluate(IMAGES) for trained in sessions)
    assert all((one[name] == value).all() for name, value in other.items())


def test_parameters_without_influence_stay() -> None:
    """Not even weight decay changes them: they have no gradient, as in PyTorch."""
    source = perceptron([6, 5, 3], 8)
    source.graph.node.append(helper.make_node("MatMul", ["h0", "aside"], ["other"]))
    source.graph.output.append(helper.make_tensor_value_info("other", onnx.TensorProto.FLOAT, [8, 2]))
    source.graph.initializer.append(numpy_helper.from_array(np.ones((5, 2), np.float32), "aside"))
    trained = session(source, optimizer=AdamW(0.1, weight_decay=0.5), loss={"y": CrossEntropy()})
    trained.step(BATCH)
    assert (trained.weights()["aside"] == 1).all()
    assert (trained.weights()["w0"] != numpy_helper.to_array(source.graph.initializer[0])).all()


def test_evaluation_changes_nothing() -> None:
    trained = session()
    before = trained.get_state()
    first, second = trained.evaluate(BATCH), trained.evaluate(BATCH)
    assert first["loss"] == second["loss"]
    assert first["y"].shape == (8, 3)
    after = trained.get_state()
    assert all((before[name] == after[name]).all() for name in before)
    assert trained.step(BATCH) == first["loss"]


def test_perceptron_is_that_of_numpy() -> None:
    """One step in f64 beside the chain rule by hand."""
    source = perceptron([6, 5, 3], 8, np.float64)
    w = {tensor.name: numpy_helper.to_array(tensor) for tensor in source.graph.initializer}
    x, labels = BATCH["x"].astype(np.float64), [int(label) for label in BATCH["targets"]]
    h = x @ w["w0"] + w["b0"]
    y = np.maximum(h, 0) @ w["w1"] + w["b1"]
    p = np.exp(y) / np.exp(y).sum(1, keepdims=True)
    dy = (p - np.eye(3)[labels]) / 8
    dh = (dy @ w["w1"].T) * (h > 0)
    gradients = {"w1": np.maximum(h, 0).T @ dy, "b1": dy.sum(0), "w0": x.T @ dh, "b0": dh.sum(0)}
    trained = session(source, optimizer=SGD(0.5))
    assert trained.step({"x": x, "targets": BATCH["targets"]}) == pytest.approx(
        -np.log(p[range(8), labels]).mean(), rel=1e-12
    )
    for name, gradient in gradients.items():
        np.testing.assert_allclose(trained.weights()[name], w[name] - 0.5 * gradient, rtol=1e-10, atol=1e-14)


def test_batch_normalization_takes_the_statistics_of_the_batch() -> None:
    trained = session(convolutional(8))
    before = trained.weights()
    trained.step(IMAGES)
    after = trained.weights()
    filtered = InferenceSession(_convolution_alone(), cache=False).run(None, {"x": IMAGES["x"]})[0]
    np.testing.assert_allclose(after["mean"], 0.1 * filtered.mean((0, 2, 3)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after["variance"], 0.9 + 0.1 * filtered.var((0, 2, 3)), rtol=1e-4)
    assert (before["scale"] != after["scale"]).any()
    losses = [trained.step(IMAGES) for _ in range(60)]
    assert losses[-1] < 0.1


def _convolution_alone() -> onnx.ModelProto:
    whole = convolutional(8)
    filters = {tensor.name: numpy_helper.to_array(tensor) for tensor in whole.graph.initializer}["filter"]
    node = helper.make_node("Conv", ["x", "filter"], ["y"], pads=[1, 1, 1, 1])
    return model([node], {"filter": filters}, [8, 1, 8, 8], [8, 4, 8, 8])


def test_checkpoint_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    undisturbed = session(convolutional(8), optimizer=AdamW(0.01))
    for _ in range(3):
        undisturbed.step(IMAGES)
    undisturbed.save(path)
    expected = [undisturbed.step(IMAGES) for _ in range(3)]
    resumed = session(convolutional(8), optimizer=AdamW(0.01))
    resumed.load(path)
    assert resumed.steps == 3
    assert [resumed.step(IMAGES) for _ in range(3)] == expected
    left, right = undisturbed.get_state(), resumed.get_state()
    assert all((left[name] == right[name]).all() for name in left)


def test_process_that_is_killed_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    program = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
from training_models import perceptron
import numpy as np
from glow_mlir import TrainingSession
session = TrainingSession(perceptron([6, 5, 3], 8), optimizer="adam", cache=False)
batch = dict(np.load({str(tmp_path / "batch.npz")!r}))
for step in range(5):
    session.step(batch)
    if step == 2:
        session.save({str(path)!r})
os.kill(os.getpid(), signal.SIGKILL)
"""
    np.savez(tmp_path / "batch.npz", x=BATCH["x"], targets=BATCH["targets"])
    killed = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    undisturbed, resumed = session(optimizer="adam"), session(optimizer="adam")
    expected = [undisturbed.step(BATCH) for _ in range(6)]
    resumed.load(path)
    assert [resumed.step(BATCH) for _ in range(3)] == expected[3:]


def test_exported_model_computes_what_the_session_predicts(tmp_path: Path) -> None:
    trained = session(convolutional(8))
    for _ in range(5):
        trained.step(IMAGES)
    trained.export(tmp_path / "trained.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "trained.onnx"))
    (found,) = InferenceSession(tmp_path / "trained.onnx", cache=False).run(None, {"x": IMAGES["x"]})
    np.testing.assert_allclose(found, trained.predict({"x": IMAGES["x"]})["y"], rtol=1e-4, atol=1e-5)


def test_what_is_not_trainable_stays() -> None:
    trained = session(trainable=["w1", "b?"])
    before = trained.weights()
    trained.step(BATCH)
    after = trained.weights()
    assert set(after) == {"w1", "b0", "b1"}
    assert all((before[name] != after[name]).any() for name in after)


def test_losses_of_several_outputs_add_up() -> None:
    source = perceptron([6, 5, 3], 8)
    source.graph.output.append(helper.make_tensor_value_info("h0", onnx.TensorProto.FLOAT, [8, 5]))
    hidden = RNG.standard_normal((8, 5)).astype(np.float32)
    both = session(source, loss={"y": "cross_entropy", "h0": MeanSquaredError()})
    alone = session(source, loss={"h0": "mse"})
    batch = {"x": BATCH["x"], "y.targets": BATCH["targets"], "h0.targets": hidden}
    expected = session(source).step(BATCH) + alone.step({"x": BATCH["x"], "targets": hidden})
    assert both.step(batch) == pytest.approx(expected, rel=1e-6)


def test_equal_initializers_that_an_exporter_wrote_once_are_told_apart() -> None:
    source = perceptron([6, 3, 3], 8)
    (copied,) = [tensor for tensor in source.graph.initializer if tensor.name == "b1"]
    source.graph.initializer.remove(copied)
    source.graph.node.insert(0, helper.make_node("Identity", ["b0"], ["b1"]))
    trained = session(source)
    trained.step(BATCH)
    weights = trained.weights()
    assert (weights["b0"] != weights["b1"]).any()


def test_matrix_that_two_nodes_share_stays_one_parameter() -> None:
    source = perceptron([4, 4, 4], 8)
    (copied,) = [tensor for tensor in source.graph.initializer if tensor.name == "w1"]
    source.graph.initializer.remove(copied)
    source.graph.node.insert(0, helper.make_node("Identity", ["w0"], ["w1"]))
    assert set(session(source).weights()) == {"w0", "b0", "b1"}


@pytest.mark.parametrize("opset", [7, 9, 13, 15])
def test_batch_normalization_of_any_opset_trains(opset: int) -> None:
    source = convolutional(8)
    del source.opset_import[:]
    source.opset_import.append(helper.make_opsetid("", opset))
    trained = session(source)
    before = trained.weights()["mean"]
    assert trained.step(IMAGES) > trained.step(IMAGES)
    assert (trained.weights()["mean"] != before).any()


def test_function_of_a_model_trains() -> None:
    source = perceptron([6, 5, 3], 8)
    (node,) = [node for node in source.graph.node if node.name == "layer1"]
    node.CopyFrom(helper.make_node("Layer", node.input, node.output, domain="own"))
    inner = helper.make_node("Gemm", ["a", "w", "b"], ["c"])
    source.functions.append(
        helper.make_function("own", "Layer", ["a", "w", "b"], ["c"], [inner], [helper.make_opsetid("", 20)])
    )
    source.opset_import.append(helper.make_opsetid("own", 1))
    assert session(source).step(BATCH) == session().step(BATCH)


def test_parameter_of_a_branch_trains() -> None:
    branches = [
        helper.make_graph(
            [helper.make_node("MatMul", ["x", name], [f"{name}.y"])],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}.y", onnx.TensorProto.FLOAT, [8, 3])],
        )
        for name in ("w", "v")
    ]
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["is_above"]),
        helper.make_node("If", ["is_above"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    weights = {"w": np.ones((6, 3), np.float32), "v": np.ones((6, 3), np.float32), "zero": np.array(0, np.float32)}
    trained = session(model(nodes, weights, [8, 6], [8, 3]))
    for name, sign in (("w", 1), ("v", -1)):
        before = trained.weights()
        trained.step({"x": sign * abs(BATCH["x"]), "targets": BATCH["targets"]})
        assert {other for other, value in trained.weights().items() if (value != before[other]).any()} >= {name}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x", "targets"),
        ("x", "step"),
        ("w0", "learning_rate"),
        ("b0", "w0.momentum"),
        ("w0", "predict"),
        ("x", "evaluate"),
        ("b0", "train"),
        ("w0", "loss"),
    ],
)
def test_names_that_training_needs_are_told(old: str, new: str) -> None:
    source = perceptron([6, 5, 3], 8)
    for item in (*source.graph.input, *source.graph.initializer):
        item.name = new if item.name == old else item.name
    for node in source.graph.node:
        names = [new if name == old else name for name in node.input]
        del node.input[:]
        node.input.extend(names)
    with pytest.raises(OptionError, match=f"the model has something of the name '{new}'"):
        session(source)


def test_output_named_loss_that_is_not_the_loss_is_told() -> None:
    source = perceptron([6, 5, 3], 8)
    source.graph.output[0].name = source.graph.node[-1].output[0] = "loss"
    with pytest.raises(OptionError, match="which is not the loss"):
        session(source)


def test_half_floats_are_changed_in_f32() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    source = model(nodes, {"w": np.ones((2, 2), np.float16)}, [2, 2], [2, 2])
    for value in (*source.graph.input, *source.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    trained = session(source, loss="mse", optimizer="adam")
    x = np.array([[1, 0], [1, 0]], np.float16)
    for _ in range(3):
        trained.step({"x": x, "targets": np.zeros((2, 2), np.float16)})
    assert np.isfinite(trained.weights()["w"]).all()
    assert (trained.weights()["w"][0] < 1).all()


def test_settings_of_operators_are_no_parameters() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["h"]),
        helper.make_node("Resize", ["h", "", "scales"], ["y"], mode="nearest"),
    ]
    weights = {"w": np.ones(2, np.float32), "scales": np.array([1, 1, 2, 2], np.float32)}
    trained = session(model(nodes, weights, [1, 1, 2, 2], [1, 1, 4, 4]), loss="mse")
    assert set(trained.weights()) == {"w"}


def test_free_batch_is_given_a_size() -> None:
    source = perceptron([6, 5, 3], 8)
    for value in (*source.graph.input, *source.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    assert session(source, dimensions={"N": 8}).step(BATCH) == session().step(BATCH)


def test_model_that_computes_its_own_loss() -> None:
    source = perceptron([6, 5, 3], 8)
    source.graph.node.append(helper.make_node("ReduceMean", ["y"], ["loss"], keepdims=0))
    del source.graph.output[:]
    source.graph.output.append(helper.make_tensor_value_info("loss", onnx.TensorProto.FLOAT, []))
    trained = session(source, loss="output")
    assert trained.step({"x": BATCH["x"]}) > trained.step({"x": BATCH["x"]})


ERRORS: dict[str, tuple[dict[str, Any], type[GlowError], str]] = {
    "loss": ({"loss": "entropy"}, OptionError, "there is no loss 'entropy'"),
    "optimizer": ({"optimizer": "newton"}, OptionError, "there is no optimizer 'newton'"),
    "trainable": ({"trainable": ["w7"]}, OptionError, "the model has no initializer 'w7'"),
    "output": ({"loss": {"z": CrossEntropy()}}, OptionError, "the model has no output 'z'"),
    "class": ({"optimizer": SGD}, OptionError, "is no optimizer"),
    "list": ({"loss": ["mse"]}, OptionError, "is no loss"),
    "text": ({"trainable": "w1"}, OptionError, "trainable='w1' is no list of names"),
    "nothing": ({"trainable": []}, OptionError, "the loss depends on no trainable parameter"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    keywords, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        session(**keywords)


def test_operator_without_a_gradient_is_named() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["h"]),
        helper.make_node("RoiAlign", ["h", "regions", "numbers"], ["y"], name="regions", mode="max", output_height=1),
    ]
    weights = {"w": np.ones(1, np.float32), "regions": np.zeros((1, 4), np.float32), "numbers": np.zeros(1, np.int64)}
    with pytest.raises(UnsupportedError, match="gradient") as caught:
        session(model(nodes, weights, [1, 1, 4, 4], [1, 1, 1, 1]), loss="mse", trainable=["w"])
    assert caught.value.node == "regions"


def test_checkpoint_of_another_optimizer_is_told(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    session(optimizer=SGD(0.1)).save(path)
    with pytest.raises(InputError, match=r"there is no 'b0.momentum', 'b1.momentum', 'w0.momentum'"):
        session().load(path)
    path.write_bytes(b"\0" * 40)
    with pytest.raises(InputError, match="is no file of safetensors"):
        session().load(path)
    with pytest.raises(InputError, match="cannot be read"):
        session().load(tmp_path / "none.safetensors")


def test_names_are_public() -> None:
    assert glow_mlir.TrainingSession is TrainingSession
    assert glow_mlir.training.CrossEntropy is CrossEntropy


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "uint64"])
@pytest.mark.parametrize("parts", [1, 2])
def test_classes_are_integers_of_any_type(dtype: str, parts: int) -> None:
    losses = [
        session(perceptron([6, 5, 3], 8 // parts), accumulate=parts).step({**BATCH, "targets": targets})
        for targets in (BATCH["targets"], BATCH["targets"].astype(dtype), BATCH["targets"].tolist())
    ]
    assert losses[0] == losses[1] == losses[2]


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(("wrong", "dtype"), [(3, "int64"), (-1, "int32"), (200, "uint8"), (2**64 - 1, "uint64")])
def test_a_class_that_there_is_not_is_refused(wrong: int, dtype: str, parts: int) -> None:
    trained = session(perceptron([6, 5, 3], 8 // parts), accumulate=parts)
    targets = np.zeros(8, dtype)
    targets[5] = np.array(wrong, dtype)
    before = trained.weights()
    for call in (trained.step, trained.evaluate):
        with pytest.raises(InputError, match=f"input 'targets' is no class from 0 to 2: {wrong}"):
            call({**BATCH, "targets": targets})
    assert all((before[name] == value).all() for name, value in trained.weights().items())


def test_an_ignored_class_is_none_that_there_is_not() -> None:
    targets = BATCH["targets"].astype(np.int32)
    targets[:4] = 9
    trained = session(loss=CrossEntropy(ignore_index=9))
    assert trained.step({**BATCH, "targets": targets}) > 0.0
    with pytest.raises(InputError, match="is no class from 0 to 2: -100"):
        trained.step({**BATCH, "targets": np.full(8, -100)})


def test_integers_are_targets_of_losses_of_numbers() -> None:
    wanted = RNG.integers(-3, 3, (8, 3))
    losses = [
        session(loss=MeanSquaredError()).step({**BATCH, "targets": targets})
        for targets in (wanted.astype(np.float32), wanted.astype(np.int16))
    ]
    assert losses[0] == losses[1]


def test_words_of_pytorch_are_told_in_ours() -> None:
    with pytest.raises(OptionError, match=r"TrainingSession has no keyword 'lr' \(hint: .*AdamW\(learning_rate=…\)"):
        session(lr=0.1)
    with pytest.raises(OptionError, match=r"SGD takes no 'lr' \(hint: it is called learning_rate\)"):
        SGD(lr=0.1)  # pyright: ignore[reportCallIssue]
