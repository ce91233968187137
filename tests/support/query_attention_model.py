"""GroupQueryAttention as onnxruntime-genai writes it: the lengths of sequences follow from a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from contrib_cases import ONNXRUNTIME
from onnx import TensorProto, helper, numpy_helper

HEADS, KEY_HEADS, DEPTH = 4, 2, 16
"""Heads of queries, heads of keys, and elements of each."""

WIDTH = (HEADS + 2 * KEY_HEADS) * DEPTH
"""The elements of a row of queries, keys and values."""


def query_attention(dtype: str = "float32", **attributes: Any) -> bytes:
    """The model, with attributes of the operator; its sizes are batch, length, past and total."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    operands = ["qkv", "", "", "past.k", "past.v", "last", "total"]
    angles = np.outer(np.arange(64), 0.5 ** np.arange(DEPTH // 2))
    arrays = {"axis": np.array([1]), "one": np.array(1)}
    if attributes.get("do_rotary"):
        operands += ["cos", "sin"]
        arrays |= {"cos": np.cos(angles).astype(dtype), "sin": np.sin(angles).astype(dtype)}
    nodes = [
        helper.make_node("ReduceSum", ["mask", "axis"], ["sums"], keepdims=0),
        helper.make_node("Sub", ["sums", "one"], ["last64"]),
        helper.make_node("Cast", ["last64"], ["last"], to=TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["total64"], axis=0),
        helper.make_node("Cast", ["total64"], ["total"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention",
            operands,
            ["y", "now.k", "now.v"],
            domain=ONNXRUNTIME,
            num_heads=HEADS,
            kv_num_heads=KEY_HEADS,
            **attributes,
        ),
    ]
    inputs = [
        helper.make_tensor_value_info("qkv", element, ["batch", "length", WIDTH]),
        helper.make_tensor_value_info("mask", TensorProto.INT64, ["batch", "total"]),
        *(helper.make_tensor_value_info(f"past.{name}", element, ["batch", KEY_HEADS, "past", DEPTH]) for name in "kv"),
    ]
    outputs = [helper.make_tensor_value_info(name, element, None) for name in ("y", "now.k", "now.v")]
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "attention", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ONNXRUNTIME, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
