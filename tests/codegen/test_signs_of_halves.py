"""The bits of 16-bit floats in machine code, of which LLVM computes the sign wherever elements lie."""

from __future__ import annotations

import numpy as np
import pytest

import glow_mlir
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.support.dtypes import named_dtype

TEXT = """
glow_high.placeholder @x : tensor<{count}x{type}> {{input}}
glow_high.placeholder @y : tensor<{count}xi1> {{output}}
glow_high.func @main(@x, @y) {{
  %x = glow_high.get @x : tensor<{count}x{type}>
  %bits = glow_high.bit_cast %x {{to = i16}} : tensor<{count}xi16>
  %zero = glow_high.splat {{value = 0 : i16}} : tensor<i16>
  %negative = glow_high.less %bits, %zero : tensor<{count}xi1>
  glow_high.save %negative, @y
}}
"""


@pytest.mark.parametrize("count", [1, 8, 25])
@pytest.mark.parametrize(("element", "dtype"), [("bf16", "bfloat16"), ("f16", "float16")])
def test_a_sign_is_the_first_bit(element: str, dtype: str, count: int) -> None:
    """Of vectors and of single elements alike."""
    numbers = np.resize([1, -2, -0.0, 0.0, np.inf, -np.inf], count)
    module = parse_module(TEXT.format(type=element, count=count), new_context())
    (found,) = glow_mlir.InferenceSession(module, backend="cpu").run(None, {"x": numbers.astype(named_dtype(dtype))})
    assert found.tolist() == np.signbit(numbers).tolist()
