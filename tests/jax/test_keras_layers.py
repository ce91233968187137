"""Layers of Keras, each alone, with random weights."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import glow_mlir
from glow_mlir.errors import OptionError

pytestmark = pytest.mark.extra

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("KERAS_BACKEND", "jax")

RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def keras() -> Any:
    """The package."""
    pytest.importorskip("jax")
    return pytest.importorskip("keras")


def floats(*shape: int) -> np.ndarray:
    """Random numbers."""
    return RANDOM.standard_normal(shape).astype(np.float32)


IMAGES, ROWS, TOKENS = floats(2, 9, 10, 4), floats(2, 7, 6), np.array([[1, 2, 0, 0], [0, 3, 3, 1]], np.int32)
MASK = np.arange(7) < np.array([[5], [7]])

LAYERS: Mapping[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "Dense": (lambda k: k.Dense(5, activation="gelu"), (ROWS,)),
    "Conv2D": (lambda k: k.Conv2D(8, (3, 2), strides=(2, 3), padding="same", groups=2), (IMAGES,)),
    "Conv2D of other layout": (lambda k: k.Conv2D(8, 3, data_format="channels_first"), (IMAGES,)),
    "Conv2DTranspose": (lambda k: k.Conv2DTranspose(5, 3, 3, padding="same", output_padding=1), (IMAGES,)),
    "SeparableConv2D": (lambda k: k.SeparableConv2D(5, 3, depth_multiplier=2), (IMAGES,)),
    "AveragePooling2D": (lambda k: k.AveragePooling2D(3, 2, padding="same"), (IMAGES,)),
    "GroupNormalization": (lambda k: k.GroupNormalization(2), (IMAGES,)),
    "Resizing": (lambda k: k.Resizing(13, 6, interpolation="bicubic"), (IMAGES,)),
    "LSTM": (lambda k: k.LSTM(5, return_state=True), (ROWS,)),
    "GRU": (lambda k: k.GRU(5, return_sequences=True), (ROWS,)),
    "Embedding": (lambda k: k.Embedding(12, 5, mask_zero=True), (TOKENS,)),
    "Bidirectional": (lambda k: k.Bidirectional(k.LSTM(4)), (ROWS,)),
    "MultiHeadAttention": (lambda k: k.MultiHeadAttention(3, 4), (ROWS, ROWS)),
    "ConvLSTM2D": (lambda k: k.ConvLSTM2D(3, 3, padding="same"), (floats(2, 3, 6, 7, 3),)),
    "Dot": (lambda k: k.Dot(axes=(2, 2), normalize=True), ([ROWS, floats(2, 4, 6)],)),
    "RandomFlip": (lambda k: k.RandomFlip(), (IMAGES,)),
}
"""What is tested → how it is made, and what it is called with."""


@pytest.mark.parametrize("name", LAYERS)
def test_layer(keras: Any, name: str) -> None:
    make, arguments = LAYERS[name]
    check(keras, make(keras.layers), arguments, {"mask": MASK} if name == "GRU" else {})


def check(keras: Any, layer: Any, arguments: Any, keywords: Any) -> None:
    """Compare a layer with random weights to what it computes itself."""
    layer(*arguments, **keywords)
    for variable in layer.variables:
        if str(variable.dtype).startswith("float"):
            numbers = floats(*variable.shape)
            variable.assign(abs(numbers) + 0.5 if "variance" in variable.path else numbers)
    expected = layer(*arguments, **keywords, training=False)
    found = glow_mlir.from_keras(layer, *arguments, keywords=keywords, threads=1)(*arguments, **keywords)
    pairs = zip(keras.tree.flatten(found), keras.tree.flatten(expected), strict=True)
    for one, other in pairs:
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        scale = np.abs(np.asarray(other)).max() + 1e-6
        assert np.abs(np.asarray(one) - np.asarray(other)).max() <= 1e-5 * scale


def test_models_take_their_inputs_apart_or_as_they_declare_them(keras: Any) -> None:
    one, two = keras.Input((6,), name="x"), keras.Input((6,), name="y")
    model = keras.Model([one, two], keras.layers.Subtract()([one, two]))
    a, b = floats(1, 6), floats(1, 6)
    declared = glow_mlir.from_keras(model, threads=1)
    assert [item.shape for item in declared.session.get_inputs()] == [[1, 6], [1, 6]]
    for together in (declared, glow_mlir.from_keras(model, [a, b], threads=1)):
        np.testing.assert_allclose(np.asarray(together([a, b])), a - b, rtol=1e-6)
    apart = glow_mlir.from_keras(model, a, b, threads=1)
    np.testing.assert_allclose(np.asarray(apart(a, b)), a - b, rtol=1e-6)
    named = keras.Model({"x": one, "y": two}, keras.layers.Subtract()([one, two]))
    tree = {"x": a, "y": b}
    np.testing.assert_allclose(np.asarray(glow_mlir.from_keras(named, tree, threads=1)(tree)), a - b, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(glow_mlir.from_keras(named, threads=1)(tree)), a - b, rtol=1e-6)
    with pytest.raises(OptionError, match="the layer declares no inputs"):
        glow_mlir.from_keras(keras.layers.Dense(3))
