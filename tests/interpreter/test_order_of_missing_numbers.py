"""Where NaN is in the order of floats of any width: machine code and the interpreter agree."""

from __future__ import annotations

import numpy as np
import pytest

import glow_mlir
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.support.dtypes import named_dtype

TEXT = """
glow_high.placeholder @x : tensor<6x{type}> {{input}}
glow_high.placeholder @y : tensor<6xi64> {{output}}
glow_high.func @main(@x, @y) {{
  %x = glow_high.get @x : tensor<6x{type}>
  %values, %indices = glow_high.top_k %x {{k = 6, axis = 0, largest = {largest}}} : tensor<6x{type}>, tensor<6xi64>
  glow_high.save %indices, @y
}}
"""

ORDERS = {"true": [1, 4, 3, 0, 5, 2], "false": [2, 5, 0, 3, 1, 4]}
"""Whether the largest come first → the places of elements in order."""


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
@pytest.mark.parametrize("largest", ORDERS)
@pytest.mark.parametrize(("element", "dtype"), [("bf16", "bfloat16"), ("f16", "float16"), ("f32", "float32")])
def test_missing_numbers_are_larger_than_all_others(element: str, dtype: str, largest: str, backend: str) -> None:
    x = np.array([1, np.nan, -2, 3, np.nan, 0]).astype(named_dtype(dtype))
    module = parse_module(TEXT.format(type=element, largest=largest), new_context())
    (found,) = glow_mlir.InferenceSession(module, backend=backend).run(None, {"x": x})
    assert found.tolist() == ORDERS[largest]
