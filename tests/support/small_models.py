"""Small ONNX models for tests of the API."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def adding(shape: Sequence[int | str | None] = (2, 3), kind: int = TensorProto.FLOAT, name: str = "x") -> bytes:
    """y = x + x."""
    graph = helper.make_graph(
        [helper.make_node("Add", [name, name], ["y"], "double")],
        "graph",
        [helper.make_tensor_value_info(name, kind, shape)],
        [helper.make_tensor_value_info("y", kind, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def two_inputs() -> bytes:
    """sum = a + b, and difference = a - b."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("a", "b", "sum", "difference")]
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Sub", ["a", "b"], ["difference"])]
    graph = helper.make_graph(nodes, "graph", values[:2], values[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def with_weight(weight: float | Sequence[float] = 1.0, shape: Sequence[int] = (3,)) -> onnx.ModelProto:
    """y = x + w."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    constant = numpy_helper.from_array(np.full(tuple(shape), weight, np.float32), "w")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "graph", values[:1], values[1:], [constant])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def counter(size: int = 4) -> str:
    """A module whose state is the sum of its inputs, of `size` elements."""
    return f"""
glow_high.placeholder @s : tensor<{size}xf32> {{state}}
glow_high.placeholder @x : tensor<{size}xf32> {{input}}
glow_high.placeholder @y : tensor<{size}xf32> {{output}}
glow_high.func @main(@s, @x, @y) {{
  %x = glow_high.get @x : tensor<{size}xf32>
  %old = glow_high.get @s {{mutable}} : tensor<{size}xf32>
  %sum = glow_high.add %old, %x : tensor<{size}xf32>
  glow_high.save %sum, @s
  glow_high.save %sum, @y
}}
"""
