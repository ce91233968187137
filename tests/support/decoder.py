"""A decoder like GPT-2 (Radford et al. 2019) that makes one token, after others whose keys and values are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from models import GraphBuilder, he, layer_norm
from onnx import TensorProto, helper

Product = Callable[[GraphBuilder, str, int, int], str]
"""Emits the product of a value with new weights, of so many inputs and outputs."""


def plain_product(g: GraphBuilder, x: str, inputs: int, outputs: int) -> str:
    """A product with weights of f32."""
    return g.node("MatMul", x, g.weight(he(g.rng, (inputs, outputs), 2 * inputs)))


def narrow_product(bits: int, block: int = 32, level: int = 0) -> Product:
    """Emits a product with weights in blocks of random codes, at an accuracy level (onnxruntime's MatMulNBits)."""

    def emitted(g: GraphBuilder, x: str, inputs: int, outputs: int) -> str:
        codes = g.rng.integers(0, 256, (outputs, inputs // block, block * bits // 8), np.uint8)
        step = np.sqrt(12 / inputs) / (1 << bits)
        scales = (step * g.rng.uniform(0.5, 1.5, (outputs, inputs // block))).astype(np.float32)
        widths = {"bits": bits, "block_size": block, "N": outputs, "K": inputs, "accuracy_level": level}
        return g.node("MatMulNBits", x, g.weight(codes), g.weight(scales), domain="com.microsoft", **widths)

    return emitted


def decoder(
    product: Product = plain_product,
    seed: int = 0,
    layers: int = 2,
    width: int = 128,
    heads: int = 4,
    past: int = 15,
    vocabulary: int = 500,
) -> onnx.ModelProto:
    """A token, and the keys and values of those before it, in; logits, and the keys and values with its own, out."""
    g = GraphBuilder(seed)
    table = g.weight((g.rng.standard_normal((vocabulary, width)) * 0.1).astype(np.float32))
    place = g.weight((g.rng.standard_normal((1, width)) * 0.1).astype(np.float32))
    x = g.node("Add", g.node("Gather", table, "token", axis=0), place)
    depth = width // heads
    kept = [1, heads, past, depth]
    outputs: dict[str, list[int]] = {}

    def dense(value: str, inputs: int, results: int) -> str:
        bias = g.weight((g.rng.standard_normal(results) * 0.1).astype(np.float32))
        return g.node("Add", product(g, value, inputs, results), bias)

    def split(value: str) -> str:
        shape = g.weight(np.array([1, 1, heads, depth], np.int64))
        return g.node("Transpose", g.node("Reshape", value, shape), perm=[0, 2, 1, 3])

    for layer in range(layers):
        before = layer_norm(g, x, width)
        q, k, v = (split(dense(before, width, width)) for _ in range(3))
        k, v = (g.node("Concat", f"{word}{layer}", new, axis=2) for word, new in (("keys", k), ("values", v)))
        outputs |= {name: [1, heads, past + 1, depth] for name in (k, v)}
        scores = g.node("MatMul", q, g.node("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.node("Div", scores, g.weight(np.float32(np.sqrt(depth))))
        seen = g.node("Transpose", g.node("MatMul", g.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        joined = g.node("Reshape", seen, g.weight(np.array([1, 1, width], np.int64)))
        x = g.node("Add", x, dense(joined, width, width))
        hidden = dense(layer_norm(g, x, width), width, 4 * width)
        hidden = g.node("Mul", hidden, g.node("Sigmoid", hidden))
        x = g.node("Add", x, dense(hidden, 4 * width, width))
    logits = product(g, layer_norm(g, x, width), width, vocabulary)
    inputs = {"token": (TensorProto.INT64, [1, 1])}
    inputs |= {f"{word}{layer}": (TensorProto.FLOAT, kept) for layer in range(layers) for word in ("keys", "values")}
    graph = helper.make_graph(
        g.nodes,
        "decoder",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in {logits: [1, 1, vocabulary], **outputs}.items()
        ],
        g.initializers,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
