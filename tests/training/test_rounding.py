"""Training for a quantized model computes what the quantized model computes, and goes straight through the rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from checkout import ROOT
from onnx import helper, numpy_helper
from train_quantized_digits import accuracies, separable
from training_models import convolutional, model, perceptron

from glow_mlir import InferenceSession, Quantization, TrainingSession
from glow_mlir.api.profiling import profiled
from glow_mlir.errors import GlowError, OptionError
from glow_mlir.options.quantization import SCHEMAS
from glow_mlir.quantization.schemas import POWER_OF_TWO
from glow_mlir.support.activity import warning_to
from glow_mlir.training.losses import MeanSquaredError
from glow_mlir.training.optimizers import SGD

BATCH = 16
IMAGES = np.random.default_rng(5).random((BATCH, 1, 8, 8), np.float32)
LABELS = np.random.default_rng(6).integers(0, 10, BATCH)


def scores() -> onnx.ModelProto:
    """The trained digits example up to its softmax."""
    found = onnx.load(ROOT / "examples" / "digits.onnx")
    del found.graph.node[-1]
    found.graph.output[0].name = "logits"
    return found


def residual() -> onnx.ModelProto:
    """The trained residual network."""
    return onnx.load(ROOT / "examples" / "residual_digits.onnx")


SIZES = {separable: (8, 8), residual: (16, 16)}
"""Network → the size of its pictures."""


def quantization(source: onnx.ModelProto, folder: Path, images: np.ndarray, **options: Any) -> Quantization:
    """How a model is quantized, by its profile on some images."""
    path = folder / "p.json"
    profiled(source, [{"image": images}], dimensions={"N": BATCH}).write(path)
    given: dict[str, Any] = {"bias_correction": False, **options}
    return Quantization(path, **given)


def session(source: onnx.ModelProto, options: Quantization | None, **keywords: Any) -> TrainingSession:
    given: dict[str, Any] = {"optimizer": SGD(0.05), "dimensions": {"N": BATCH}, "cache": False, **keywords}
    return TrainingSession(source, quantization=options, **given)


def predicted(trained: TrainingSession, images: np.ndarray = IMAGES) -> np.ndarray:
    """What a session says of images."""
    (found,) = trained.predict({"image": images}).values()
    return found


def inferred(source: Any, options: Quantization | None = None, images: np.ndarray = IMAGES) -> np.ndarray:
    """What a model says of images, quantized or not."""
    return InferenceSession(source, quantize=options, dimensions={"N": BATCH}, cache=False).run(
        None, {"image": images}
    )[0]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("change", [{}, {"weights": "int4"}, {"per_channel": False}, {"bias": "int8"}], ids=str)
def test_session_computes_what_the_quantized_model_computes(
    tmp_path: Path, change: dict[str, Any], schema: str
) -> None:
    source = scores()
    options = quantization(source, tmp_path, IMAGES, schema=schema, **change)
    backend = "interpreter" if change else "cpu"
    found, expected = predicted(session(source, options, backend=backend)), inferred(source, options)
    assert np.abs(expected - inferred(source)).max() > 1e-2
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("weights", ["same", "int4"])
@pytest.mark.parametrize("network", [separable, residual], ids=lambda network: network.__name__)
def test_rounding_of_normalized_networks_differs_in_few_codes(
    tmp_path: Path, network: Callable[[], onnx.ModelProto], weights: str
) -> None:
    """What a normalization adds is rounded as a part of a bias in the quantized model alone."""
    source = network()
    images = np.random.default_rng(5).random((BATCH, 1, *SIZES[network]), np.float32)
    options = quantization(source, tmp_path, images, weights=weights)
    trained = session(source, options, backend="interpreter")
    found, expected = predicted(trained, images), inferred(source, options, images)
    rounding = np.linalg.norm(expected - inferred(source, None, images))
    assert np.linalg.norm(found - expected) < 0.7 * rounding


def test_exported_model_is_quantized_to_what_the_session_computes(tmp_path: Path) -> None:
    source = scores()
    options = quantization(source, tmp_path, IMAGES, weights="int4")
    trained = session(source, options)
    before = predicted(trained)
    for _ in range(5):
        trained.step({"image": IMAGES, "targets": LABELS})
    trained.export(tmp_path / "trained.onnx", tmp_path / "trained.json")
    told: list[GlowError] = []
    with warning_to(told.append):
        found = inferred(tmp_path / "trained.onnx", replace(options, profile=tmp_path / "trained.json"))
    assert not told
    assert np.abs(found - before).max() > 0.1
    alike = np.isclose(found, predicted(trained), atol=1e-5).all(axis=1)
    assert alike.sum() > 0.8 * BATCH  # Of a number half-way between two codes, each may have another.


def test_profile_is_that_of_normalizations_that_had_no_offset(tmp_path: Path) -> None:
    """A product has no bias in a network that nothing has trained, and one in what is exported."""
    source, images = convolutional(8), np.random.default_rng(5).random((8, 1, 8, 8), np.float32)
    profiled(source, [{"x": images}]).write(tmp_path / "p.json")
    options = Quantization(tmp_path / "p.json", bias_correction=False)
    trained = session(source, options, dimensions={})
    trained.step({"x": images, "targets": np.arange(8) % 3})
    trained.export(tmp_path / "trained.onnx", tmp_path / "trained.json")
    options = replace(options, profile=tmp_path / "trained.json")
    found = InferenceSession(tmp_path / "trained.onnx", quantize=options, cache=False).run(None, {"x": images})[0]
    expected = trained.predict({"x": images})["y"]
    assert np.linalg.norm(found - expected) < 1e-2 * np.linalg.norm(expected)


def test_a_step_is_that_of_rounded_numbers_by_hand(tmp_path: Path) -> None:
    """The gradient by weights is that of rounded numbers, and goes through the rounding of the weights themselves."""
    source = perceptron([6, 3], BATCH)
    x = np.random.default_rng(9).uniform(-2, 2, (BATCH, 6)).astype(np.float32)
    path = tmp_path / "p.json"
    profiled(source, [{"x": x / 2}]).write(path)  # Some numbers are beyond the codes.
    options = Quantization(path, weights="int4", schema="symmetric", bias_correction=False)
    trained = session(source, options, loss=MeanSquaredError(), optimizer=SGD(0.5), dimensions={})
    before, targets = trained.weights(), np.ones((BATCH, 3), np.float32)
    trained.step({"x": x, "targets": targets})
    found = trained.weights()

    scale = np.abs(x / 2).max() / 127
    codes = np.clip(np.rint(x / scale), -128, 127) * scale
    scales = np.abs(before["w0"]).max(0) / 7
    y = codes @ (np.rint(before["w0"] / scales) * scales) + before["b0"]
    dy = 2 * (y - targets) / y.size
    np.testing.assert_allclose(found["w0"], before["w0"] - 0.5 * codes.T @ dy, atol=1e-5)
    np.testing.assert_allclose(found["b0"], before["b0"] - 0.5 * dy.sum(0), atol=1e-5)


def test_parts_of_a_batch_are_rounded_alike(tmp_path: Path) -> None:
    source = perceptron([6, 3], "N")
    x = np.random.default_rng(9).uniform(-2, 2, (BATCH, 6)).astype(np.float32)
    profiled(source, [{"x": x}], dimensions={"N": BATCH}).write(tmp_path / "p.json")
    options = Quantization(tmp_path / "p.json", weights="int4", bias_correction=False)
    whole, parts = (session(source, options, dimensions={"N": BATCH // count}, accumulate=count) for count in (1, 4))
    batch = {"x": x, "targets": LABELS % 3}
    assert [parts.step(batch) for _ in range(3)] == pytest.approx([whole.step(batch) for _ in range(3)], abs=1e-6)


def test_weights_of_four_bits_have_fifteen_codes(tmp_path: Path) -> None:
    x = np.eye(6, dtype=np.float32)
    profiled(perceptron([6, 3], 6), [{"x": x}]).write(tmp_path / "p.json")
    options = Quantization(tmp_path / "p.json", weights="int4", precision="int16", bias_correction=False)
    found = InferenceSession(perceptron([6, 3], 6), quantize=options, cache=False).run(None, {"x": x})[0]
    codes = found / (np.abs(found).max(0) / 7)
    np.testing.assert_allclose(codes, np.rint(codes), atol=1e-2)
    assert len(np.unique(np.rint(codes))) > 5


def test_models_with_quantizations_are_trained_through_them() -> None:
    """The gradient by what is in front of QuantizeLinear and DequantizeLinear is that of the numbers behind them."""
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["p"]),
        helper.make_node("QuantizeLinear", ["p", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    weights = {"w": np.ones(6), "scale": np.array(0.01)}
    source = model(nodes, {name: value.astype(np.float32) for name, value in weights.items()}, [2, 6], [2, 6])
    source.graph.initializer.append(numpy_helper.from_array(np.array(128, np.uint8), "zero"))
    trained = session(source, None, loss="output", optimizer=SGD(1.0), dimensions={})
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(2, 6)
    trained.step({"x": x})
    inside = np.where(np.abs(np.rint(x / 0.01) - 0.5) < 128, x, 0)
    np.testing.assert_allclose(trained.weights()["w"], 1 - inside.sum(0) / 12, rtol=1e-5)


def refused(reason: str, folder: Path, source: onnx.ModelProto, **changes: Any) -> None:
    """Check that a session of quantization gives a reason for which it cannot be."""
    with pytest.raises(OptionError, match=reason):
        session(source, quantization(source, folder, IMAGES, **changes))


def test_what_training_cannot_foresee_is_refused(tmp_path: Path) -> None:
    refused("bias correction", tmp_path, scores(), bias_correction=True)
    refused("weights take in the factors of 'stem.norm'", tmp_path, separable(), per_channel=False)
    refused("weights take in the factors of 'stem.norm'", tmp_path, separable(), schema=POWER_OF_TWO)
    path = tmp_path / "equalized.json"
    profiled(scores(), [{"image": IMAGES}], dimensions={"N": BATCH}, equalize=True).write(path)
    with pytest.raises(OptionError, match="channels are equalized"):
        session(scores(), Quantization(path, bias_correction=False))
    with pytest.raises(OptionError, match="did not record a profile"):
        session(scores(), None).export(tmp_path / "m.onnx", tmp_path / "m.json")
    assert not (tmp_path / "m.onnx").exists()
    with pytest.raises(OptionError, match=r"quantization='p\.json' is not a Quantization"):
        session(scores(), cast("Any", "p.json"))


@pytest.mark.extra
def test_training_gets_back_what_rounding_to_four_bits_loses(tmp_path: Path) -> None:
    """The images are those of scikit-learn."""
    found = accuracies(tmp_path)
    floats = found["floats"]
    assert floats > 0.97
    assert found["weights of 8 bits"] > floats - 0.01
    assert found["the same, with bias correction"] < floats - 0.015
    assert found["the same, trained with them"] > floats - 0.01
