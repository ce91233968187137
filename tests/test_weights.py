"""Digests of the weight store: of content, and of recipes."""

from __future__ import annotations

import numpy as np
import pytest
from validation import validate

import glow_mlir.weights
from glow_mlir.context import new_context
from glow_mlir.textual import parse_module
from glow_mlir.weights import LEAST_BY_RECIPE, add_weights, weights

LARGE = LEAST_BY_RECIPE // 4

TRANSPOSED = """
glow_high.constant @c : tensor<3x3x3xf32> {{weights = "{digest}"}}
glow_high.placeholder @y : tensor<3x3x3xf32> {{output}}
glow_high.placeholder @z : tensor<3x3x3xf32> {{output}}
glow_high.func @main(@y, @z) {{
  %c = glow_high.get @c : tensor<3x3x3xf32>
  %a = glow_high.transpose %c {{permutation = [1, 2, 0]}} : tensor<3x3x3xf32>
  %b = glow_high.transpose %c {{permutation = [2, 1, 0]}} : tensor<3x3x3xf32>
  glow_high.save %a, @y
  glow_high.save %b, @z
}}
"""
"""One constant in two orders, of one shape."""

SCALED = """
glow_high.placeholder @x : tensor<6x6xf32> {{input}}
glow_high.constant @c : tensor<6x6xf32> {{weights = "{digest}"}}
glow_high.constant @f : tensor<6xf32> {{value = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>}}
glow_high.constant @g : tensor<6xf32> {{value = dense<[2.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>}}
glow_high.placeholder @y : tensor<6x6xf32> {{output}}
glow_high.placeholder @z : tensor<6x6xf32> {{output}}
glow_high.placeholder @w : tensor<6x6xf32> {{output}}
glow_high.func @main(@x, @y, @z, @w) {{
  %x = glow_high.get @x : tensor<6x6xf32>
  %c = glow_high.get @c : tensor<6x6xf32>
  %f = glow_high.get @f : tensor<6xf32>
  %g = glow_high.get @g : tensor<6xf32>
  %0 = glow_high.matmul %x, %c : tensor<6x6xf32>
  %1 = glow_high.mul %0, %f : tensor<6x6xf32>
  %2 = glow_high.matmul %x, %c : tensor<6x6xf32>
  %3 = glow_high.mul %2, %g : tensor<6x6xf32>
  %4 = glow_high.mul %x, %f : tensor<6x6xf32>
  %5 = glow_high.matmul %4, %c : tensor<6x6xf32>
  glow_high.save %1, @y
  glow_high.save %3, @z
  glow_high.save %5, @w
}}
"""
"""One constant times two vectors, and times one of them along its other axis."""


def test_large_arrays_are_known_by_their_recipes() -> None:
    array = np.arange(LARGE, dtype=np.float32)
    by_recipe = add_weights(array, "sum a b")
    assert by_recipe == add_weights(array.copy(), "sum a b")
    assert by_recipe != add_weights(array, "sum b a")
    assert by_recipe != add_weights(array)
    assert by_recipe != add_weights(array.reshape(2, -1), "sum a b")
    assert by_recipe != add_weights(array.view(np.int32), "sum a b")
    np.testing.assert_array_equal(weights(by_recipe), array)


def test_small_arrays_are_known_by_their_content() -> None:
    array = np.arange(LARGE - 1, dtype=np.float32)
    assert add_weights(array, "sum a b") == add_weights(array, "sum b a") == add_weights(array)


@pytest.mark.parametrize(
    ("text", "shape", "name"), [(TRANSPOSED, (3, 3, 3), "fold-constants"), (SCALED, (6, 6), "fold-into-weights")]
)
def test_recipes_leave_nothing_out(
    text: str, shape: tuple[int, ...], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is made of one constant in several ways is not taken for the same."""
    monkeypatch.setattr(glow_mlir.weights, "LEAST_BY_RECIPE", 0)
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    module = parse_module(text.format(digest=add_weights(array)), new_context())
    inputs = {"x": np.eye(6, dtype=np.float32)} if "@x" in text else {}
    validate(module, name, inputs, rtol=1e-6)
    assert not any(op.name in ("glow_high.transpose", "glow_high.mul") for op in module.walk())
