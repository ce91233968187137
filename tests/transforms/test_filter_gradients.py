"""Gradients of filters as products of taps compute what the convolution does."""

from __future__ import annotations

import numpy as np
import pytest
from validation import validate

from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

CONTEXT = new_context()

PASSES = "assign-target{target=avx2},simplify-convolutions"

CASES = {
    "plain": (((2, 8, 9, 3), (2, 8, 9, 4)), "pads = [1, 1, 1, 1]", (3, 3, 3, 4)),
    "strides of the forward convolution": (((2, 17, 17, 2), (2, 8, 8, 5)), "dilations = [2, 2]", (2, 3, 3, 5)),
    "dilations of the forward convolution": (((1, 12, 12, 1), (1, 8, 8, 2)), "strides = [2, 2]", (1, 3, 3, 2)),
    "a line": (((3, 70, 16), (3, 64, 1)), "strides = [3]", (16, 3, 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_products_are_the_convolution(case: str) -> None:
    shapes, properties, result = CASES[case]
    types = ["x".join(map(str, shape)) + "xf32" for shape in shapes]
    swapped = ["x".join(map(str, (shape[-1], *shape[1:-1], shape[0]))) + "xf32" for shape in shapes]
    rank = len(result)
    order = [rank - 1, *range(1, rank - 1), 0]
    found = "x".join(map(str, result)) + "xf32"
    module = parse_module(
        f"""
        glow_high.func @main(%x: tensor<{types[0]}>, %g: tensor<{types[1]}>) -> tensor<{found}> {{
          %1 = glow_high.transpose %x {{permutation = {order}}} : tensor<{swapped[0]}> loc("x")
          %2 = glow_high.transpose %g {{permutation = {order}}} : tensor<{swapped[1]}> loc("g")
          %3 = glow_high.conv %1, %2 {{{properties}}} : tensor<{found}> loc("gradient")
          glow_high.return %3
        }}
        """,
        CONTEXT,
    )
    generator = np.random.default_rng(0)
    inputs = {
        f"main.{name}": generator.standard_normal(shape).astype(np.float32)
        for name, shape in zip("xg", shapes, strict=True)
    }
    validate(module, PASSES, inputs, rtol=1e-5, atol=1e-4, context=CONTEXT)
    assert not [op for op in module.walk() if isinstance(op, ConvOp)]
