"""A linear classifier of irises, as onnxruntime's examples use one, in operators that all engines have."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS, FEATURES, CLASSES = 3, 2, 3


def iris_classifier() -> onnx.ModelProto:
    """`label` and `probabilities` of `float_input`, with the notes that exporters leave in a model."""
    weights = np.random.default_rng(0).standard_normal((FEATURES, CLASSES)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["float_input", "weights", "bias"], ["scores"], "scores"),
            helper.make_node("Softmax", ["scores"], ["probabilities"], "probabilities"),
            helper.make_node("ArgMax", ["scores"], ["label"], "label", axis=1, keepdims=0),
        ],
        "iris",
        [helper.make_tensor_value_info("float_input", TensorProto.FLOAT, [ROWS, FEATURES])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, [ROWS]),
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [ROWS, CLASSES]),
        ],
        [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(np.zeros(CLASSES, np.float32), "bias")],
        doc_string="three classes",
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
        producer_name="a trainer",
        domain="org.example",
        model_version=7,
        doc_string="which iris it is",
    )
    helper.set_model_props(model, {"trained on": "irises", "seed": "0"})
    return model


def flowers() -> np.ndarray:
    """Three irises."""
    return np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
