"""The models whose partitions are tested: of each family one that is small, and one of full size."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from control_flow_models import lstm
from models import GraphBuilder, bert_encoder, linear, resnet18, seeded_light_model
from onnx import TensorProto
from quantized_models import quantized_model

TABLES = 8
"""Tables of the recommendation model."""


def recommendation(rows: int = 100, width: int = 8, batch: int = 4, tables: int = TABLES) -> onnx.ModelProto:
    """
    A recommendation model in the manner of DLRM (arXiv 1906.00091): rows of some tables, and dense features through a
    perceptron, whose dot products with each other another perceptron reads.
    """
    g = GraphBuilder(0)
    dense = g.node("Relu", linear(g, "dense", 13, width))
    ids = [g.node("Gather", "ids", g.weight(np.int64(table)), axis=1) for table in range(tables)]
    looked = [
        g.node("Gather", g.weight(g.rng.standard_normal((rows, width), np.float32)), index, axis=0) for index in ids
    ]
    axis = g.weight(np.array([1], np.int64))
    stacked = g.node("Concat", g.node("Unsqueeze", dense, axis), *looked, axis=1)
    products = g.node("MatMul", stacked, g.node("Transpose", stacked, perm=[0, 2, 1]))
    flat = g.node("Reshape", products, g.weight(np.array([batch, (tables + 1) ** 2], np.int64)))
    joined = g.node("Concat", dense, flat, axis=1)
    hidden = g.node("Relu", linear(g, joined, width + (tables + 1) ** 2, 4 * width))
    result = g.node("Sigmoid", linear(g, hidden, 4 * width, 1))
    inputs = {"dense": (TensorProto.FLOAT, (batch, 13)), "ids": (TensorProto.INT64, (batch, tables))}
    return g.model(inputs, {result: (batch, 1)})


SMALL: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "resnet": lambda: resnet18(size=32, classes=10),
    "bert": lambda: bert_encoder(layers=1, length=16),
    "recommendation": recommendation,
    "int8": lambda: quantized_model("mobile", "qdq-u8"),
    "loop": lambda: lstm("loop", 4, 2, 8, 8),
}
"""Family → a small model of it."""

FULL: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "resnet": lambda: seeded_light_model("resnet50"),
    "bert": lambda: bert_encoder(layers=12, width=768, heads=12, length=128, vocabulary=30522),
    "recommendation": lambda: recommendation(rows=100_000, width=64, batch=32),
    "loop": lambda: lstm("loop", 64, 8, 128, 128),
}
"""Family → a model of full size; a full int8 MobileNetV2 is a file that the tests of quantization have."""
