"""onnxruntime's operators on sizes that are known at run time only give what it computes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from contrib_cases import ONNXRUNTIME, assert_near, normal
from onnx import TensorProto, helper, numpy_helper
from other_runtimes import by_onnxruntime

from glow_mlir import InferenceSession

N, HIDDEN, WORDS, EXPERTS = 2, 16, 11, 3


def encoder() -> onnx.ModelProto:
    """Embeddings, attention of both kinds, rotary positions and experts, of any batch and length."""

    def ours(kind: str, operands: str, results: str, **attributes: object) -> onnx.NodeProto:
        names = ["" if name == "-" else name for name in operands.split()]
        return helper.make_node(kind, names, results.split(), domain=ONNXRUNTIME, **attributes)

    nodes = [
        ours("EmbedLayerNormalization", "ids - words places - s b mask", "e count"),
        ours("Attention", "e wqkv bqkv mask", "a", num_heads=N),
        ours("SkipLayerNormalization", "a e s b", "n"),
        ours("RotaryEmbedding", "n zero cos sin", "q", interleaved=1),
        ours("MultiHeadAttention", "q n n - mask", "h k v", num_heads=N, unidirectional=1),
        ours("BiasGelu", "h b", "g"),
        helper.make_node("MatMul", ["g", "router"], ["scores"]),
        helper.make_node("Reshape", ["scores", "rows"], ["flat"]),
        ours("MoE", "g flat fc1 - fc2", "m", k=2, activation_type="silu"),
        ours("FusedMatMul", "m g", "y", transB=1, alpha=0.25),
    ]
    weights = {
        "words": normal(WORDS, HIDDEN),
        "places": normal(12, HIDDEN),
        "s": normal(HIDDEN) + 1,
        "b": normal(HIDDEN),
        "wqkv": normal(HIDDEN, 3 * HIDDEN) / 4,
        "bqkv": normal(3 * HIDDEN),
        "zero": np.array([0]),
        "cos": normal(12, HIDDEN // N // 2),
        "sin": normal(12, HIDDEN // N // 2),
        "router": normal(HIDDEN, EXPERTS),
        "rows": np.array([-1, EXPERTS]),
        "fc1": normal(EXPERTS, 8, HIDDEN) / 4,
        "fc2": normal(EXPERTS, HIDDEN, 8) / 4,
    }
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", "length"]) for name in ("ids", "mask")]
    outputs = [onnx.ValueInfoProto(name=name) for name in ("y", "k", "count")]
    arrays = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "encoder", inputs, outputs, arrays)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ONNXRUNTIME, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_one_compilation_serves_all_sizes(backend: str) -> None:
    model = encoder()
    session = InferenceSession(model, backend=backend, cache=False, dimensions={"batch": (1, 3), "length": (1, 10)})
    for batch, length in ((1, 1), (2, 7), (3, 10)):
        ids = np.random.default_rng(length).integers(0, WORDS, (batch, length)).astype(np.int32)
        mask = (np.arange(length) < np.array([[length], [max(length - 2, 1)], [1]])[:batch]).astype(np.int32)
        inputs = {"ids": ids, "mask": mask}
        assert_near(session.run(None, inputs), list(by_onnxruntime(model, inputs).values()), 2e-5)
