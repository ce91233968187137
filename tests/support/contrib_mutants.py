"""Models of onnxruntime's own operators that are damaged, each of which is valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OURS, BLOCKED = "com.microsoft", "com.microsoft.nchwc"
RANDOM = np.random.default_rng(23)


def normal(*shape: int) -> np.ndarray:
    """Random numbers."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def whole(*numbers: int, dtype: str = "int64") -> np.ndarray:
    """Integers: one as a scalar."""
    return np.array(numbers[0] if len(numbers) == 1 else numbers, dtype)


Nodes = Sequence[tuple[str, str, str, Mapping[str, Any]]]
"""Operator, operands and results, `-` for an absent one, and attributes."""


def model_of(
    nodes: Nodes, inputs: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray], domain: str = OURS
) -> onnx.ModelProto:
    """A model of nodes of a domain, or of ONNX's where the name has a colon in front; its outputs are all results."""
    made: list[onnx.NodeProto] = []
    for number, (kind, operands, results, attributes) in enumerate(nodes):
        taken, given = (["" if name == "-" else name for name in text.split()] for text in (operands, results))
        plain = kind.removeprefix(":")
        own = "" if plain != kind else domain
        made.append(helper.make_node(plain, taken, given, f"n{number}", domain=own, **attributes))
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for node in made for name in node.output if name]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(made, "graph", values, outputs, tensors)
    opsets = [helper.make_opsetid(name, version) for name, version in (("", 21), (OURS, 1), (BLOCKED, 1))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def encoder() -> onnx.ModelProto:
    """Embeddings, attention of one product, norms of sums, activations and products."""
    nodes: Nodes = [
        ("EmbedLayerNormalization", "ids ids words places words s b shown", "e count sum", {"epsilon": 1e-6}),
        ("Attention", "e wqkv bqkv mask past", "a now", {"num_heads": 2, "mask_filter_value": -9.0, "scale": 0.5}),
        ("SkipLayerNormalization", "a e s b", "n - - total", {"epsilon": 1e-5}),
        ("SkipSimplifiedLayerNormalization", "n a s b", "m", {"epsilon": 1e-5}),
        ("FusedMatMul", "m m", "scores", {"alpha": 0.5, "transB": 1, "transBatchA": 0}),
        ("MultiHeadAttention", "m n a bqkv keys", "h k v", {"num_heads": 2, "unidirectional": 1}),
        ("RotaryEmbedding", "h one cos sin", "r", {"interleaved": 1}),
        ("BiasGelu", "r b", "g", {}),
        ("FastGelu", "g b", "f", {}),
        ("QuickGelu", "f", "q", {"alpha": 1.5}),
        ("FusedGemm", "s2 square b", "y", {"activation": "LeakyRelu", "activation_alpha": 0.2, "transB": 1}),
    ]
    inputs = {"ids": np.zeros((2, 3), np.int32), "past": normal(2, 2, 2, 1, 4)}
    weights = {
        "words": normal(5, 8),
        "places": normal(4, 8),
        "s": normal(8),
        "b": normal(8),
        "shown": np.ones((2, 3), np.int32),
        "mask": np.ones((2, 4), np.int32),
        "keys": np.array([[1, 1, 1], [1, 1, 0]], np.int32),
        "wqkv": normal(8, 24),
        "bqkv": normal(24),
        "one": np.array([1]),
        "cos": normal(6, 2),
        "sin": normal(6, 2),
        "s2": normal(3, 8),
        "square": normal(8, 8),
    }
    return model_of(nodes, inputs, weights)


def images() -> onnx.ModelProto:
    """The blocked layout, with channels that fill up blocks."""
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1, 1]}
    nodes: Nodes = [
        ("Conv", "x first bias", "a", {**window, "activation": "Clip", "activation_params": [0.0, 6.0]}),
        ("Conv", "a depth bias", "b", {**window, "group": 16, "auto_pad": "NOTSET"}),
        ("Conv", "b point bias a", "c", {"kernel_shape": [1, 1], "activation": "Relu"}),
        ("MaxPool", "c", "d", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("AveragePool", "d", "e", {"kernel_shape": [2, 2], "count_include_pad": 1, "auto_pad": "SAME_UPPER"}),
        ("Upsample", "e", "f", {"scales": [1, 1, 2, 2], "mode": "nearest"}),
        ("ReorderOutput", "f", "g", {"channels": 12, "channels_last": 1}),
        ("ReorderInput", "g", "h", {"channels_last": 1}),
        ("GlobalAveragePool", "h", "i", {}),
        ("ReorderOutput", "i", "j", {"channels": 12}),
        (":Relu", "j", "y", {}),
    ]
    weights = {
        "first": normal(16, 3, 3, 3),
        "depth": normal(16, 1, 3, 3),
        "point": normal(16, 16, 1, 1),
        "bias": normal(16),
    }
    model = model_of(nodes, {"x": normal(1, 3, 4, 4)}, weights, BLOCKED)
    del model.graph.output[:]
    model.graph.output.extend([onnx.ValueInfoProto(name="g"), onnx.ValueInfoProto(name="y")])
    return model


def codes() -> onnx.ModelProto:
    """Convolutions and pools with channels last, and means."""
    nodes: Nodes = [
        ("QLinearConv", "x s z w s zw s z", "a", {"channels_last": 1, "kernel_shape": [2, 2], "group": 1}),
        ("NhwcMaxPool", "a", "b", {"kernel_shape": [2, 2], "strides": [1, 1]}),
        ("QLinearAveragePool", "b s z s z", "c", {"channels_last": 1, "kernel_shape": [1, 2]}),
        ("QLinearReduceMean", "c s z s z", "d", {"axes": [1, 2], "keepdims": 0}),
        ("DequantizeLinear", "d s z", "e", {}),
        ("FusedConv", "image filter", "f", {"activation": "HardSigmoid", "activation_params": [0.2, 0.5]}),
        ("MatMulBnb4", "rows packed absmax", "g", {"K": 16, "N": 4, "block_size": 16, "quant_type": 1}),
    ]
    weights = {
        "s": np.array(0.1, np.float32),
        "z": np.array(3, np.uint8),
        "w": RANDOM.integers(-9, 9, (4, 3, 2, 2)).astype(np.int8),
        "zw": np.array(0, np.int8),
        "filter": normal(2, 2, 2, 2),
        "packed": RANDOM.integers(0, 255, 32).astype(np.uint8),
        "absmax": np.abs(normal(4)),
    }
    inputs = {"x": np.zeros((1, 5, 5, 3), np.uint8), "image": normal(1, 2, 4, 4), "rows": normal(2, 16)}
    return model_of(nodes, inputs, weights)


def decoder() -> onnx.ModelProto:
    """Attention whose lengths are data."""
    heads = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
    beams = {"num_heads": 2, "past_present_share_buffer": 1}
    window = {"local_window_size": 3, "softcap": 2.0}
    last = {"local_window_size": 3, "sliding_window_cache": 1}
    nodes: Nodes = [
        ("GroupQueryAttention", "qkv - - pk pv last total cos sin - - sink", "a k v", {**heads, **window}),
        ("GroupQueryAttention", "qkv - - pk pv last total cos sin", "w wk wv", {**heads, **last}),
        ("SparseAttention", "qkv - - pk pv rows columns total ends cos sin", "b sk sv", {**heads, **BLOCKS}),
        ("DecoderMaskedMultiHeadAttention", "one one one keys - bk bv before beams source bias", "dm dk dv", beams),
        ("MRotaryEmbedding", "a three cos sin", "m", {"mrope_section": [1, 1, 0], "num_heads": 4}),
    ]
    weights = {
        "keys": np.ones((2, 4), np.int32),
        "before": whole(3, dtype="int32"),
        "beams": whole(2, dtype="int32"),
        "source": np.zeros((1, 2, 5), np.int32),
        "bias": normal(12),
        "last": whole(4, 2, dtype="int32"),
        "ends": whole(5, 3, dtype="int32"),
        "total": whole(5, dtype="int32"),
        "cos": normal(20, 2),
        "sin": normal(20, 2),
        "sink": normal(4),
        "rows": np.array([[0, 1, 3, 5, 7]], np.int32),
        "columns": np.array([[0, 0, 1, 0, 2, 0, 3]], np.int32),
        "three": np.zeros((3, 2, 1), np.int64),
    }
    buffers = {"one": normal(2, 1, 4), "bk": normal(2, 2, 5, 2), "bv": normal(2, 2, 5, 2)}
    cache = normal(2, 2, 16, 4)
    return model_of(nodes, {**buffers, "qkv": normal(2, 1, 32), "pk": cache, "pv": cache}, weights)


BLOCKS = {"sparse_block_size": 4}


def experts() -> onnx.ModelProto:
    """Mixtures of experts, gates and states."""
    nodes: Nodes = [
        ("MoE", "rows router fc1 b1 fc2", "c", {"k": 1, "activation_type": "swiglu", "swiglu_fusion": 1}),
        ("QMoE", "rows router q1 s1 - q2 s2", "d", {"k": 2, "activation_type": "silu", "expert_weight_bits": 8}),
        ("LinearAttention", "t t t - g g", "la ls", {"q_num_heads": 2, "kv_num_heads": 2, "scale": 0.5}),
        ("CausalConvWithState", "i cw - cs", "cc cn", {"activation": "silu", "dilation": 1}),
        ("GatedRMSNorm", "t s t", "gn", {"activation": "sigmoid"}),
        ("SwiGLU", "t", "sw", {"limit": 0.5}),
    ]
    weights = {
        "rows": normal(3, 16),
        "fc1": normal(2, 8, 16),
        "b1": normal(2, 8),
        "fc2": normal(2, 16, 4),
        "q1": RANDOM.integers(0, 255, (2, 16, 16)).astype(np.uint8),
        "s1": normal(2, 16),
        "q2": RANDOM.integers(0, 255, (2, 16, 16)).astype(np.uint8),
        "s2": normal(2, 16),
        "cw": normal(3, 1, 2),
        "cs": normal(1, 3, 1),
        "s": normal(2),
        "g": normal(1, 2, 2),
    }
    return model_of(nodes, {"router": normal(3, 2), "t": normal(1, 2, 4), "i": normal(1, 3, 4)}, weights)
