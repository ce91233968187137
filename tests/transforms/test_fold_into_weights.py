"""A mask that is added to a product of two variable matrices does not become the start of its sums."""

from __future__ import annotations

import numpy as np
from execute import compile_module, sample

from glow_mlir.driver.pipelines import OPTIMIZE
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

SCORES = """
glow_high.placeholder @q : tensor<4x32xf32> {input}
glow_high.placeholder @k : tensor<32x6xf32> {input}
glow_high.placeholder @mask : tensor<6xf32> {input}
glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_high.func @main(@q, @k, @mask, @y) {
  %q = glow_high.get @q : tensor<4x32xf32>
  %k = glow_high.get @k : tensor<32x6xf32>
  %mask = glow_high.get @mask : tensor<6xf32>
  %1 = glow_high.matmul %q, %k : tensor<4x6xf32>
  %2 = glow_high.add %1, %mask : tensor<4x6xf32>
  glow_high.save %2, @y
}"""


def test_masks_cost_one_rounding() -> None:
    context = new_context()
    module = parse_module(SCORES, context)
    for item in OPTIMIZE.passes():
        item.apply(context, module)
    inputs = {"q": sample((4, 32), "f4"), "k": sample((32, 6), "f4", 1), "mask": np.full(6, 1e6, np.float32)}
    exact = inputs["q"].astype(np.float64) @ inputs["k"] + 1e6
    found = compile_module(module).run(inputs)["y"]
    assert np.abs(found - exact).max() <= np.spacing(np.float32(1e6))


def test_what_is_added_before_one_column() -> None:
    context = new_context()
    module = parse_module(
        """
glow_high.placeholder @x : tensor<4x3xf32> {input}
glow_high.constant @shift : tensor<3xf32> {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>}
glow_high.constant @weights : tensor<3x1xf32> {value = dense<[[1.0], [10.0], [100.0]]> : tensor<3x1xf32>}
glow_high.placeholder @y : tensor<4x1xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4x3xf32>
  %shift = glow_high.get @shift : tensor<3xf32>
  %weights = glow_high.get @weights : tensor<3x1xf32>
  %1 = glow_high.add %x, %shift : tensor<4x3xf32>
  %2 = glow_high.matmul %1, %weights : tensor<4x1xf32>
  glow_high.save %2, @y
}""",
        context,
    )
    for item in OPTIMIZE.passes():
        item.apply(context, module)
    found = compile_module(module).run({"x": np.zeros((4, 3), np.float32)})["y"]
    np.testing.assert_array_equal(found, np.full((4, 1), 321, np.float32))
