"""FlexAttention: one operator, or its parts with graphs of the model between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import refusal
from other_runtimes import by_reference

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.errors import GlowError, ModelError
from glow_mlir.frontends.onnx.importer import import_model

PREVIEW = "ai.onnx.preview"
RANDOM = np.random.default_rng(17)
QUERY, KEY, VALUE = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((2, 4, 3, 8), *[(2, 2, 5, 8)] * 2))


def changing(kind: str, *others: str, outputs: int = 1, **attributes: Any) -> onnx.GraphProto:
    """A graph that changes scores or weights by one node."""
    nodes = [helper.make_node(kind, ["s", *others], ["t"], **attributes)]
    info = [onnx.ValueInfoProto(name=name) for name in ("s", "t")]
    half = helper.make_tensor("half", TensorProto.FLOAT, [], [0.5])
    return helper.make_graph(nodes, "change", info[:1], [info[1]] * outputs, [half])


def model_of(*operands: np.ndarray, **attributes: Any) -> onnx.ModelProto:
    """A model of one node."""
    names = "qkv"[: len(operands)]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, operands, strict=True)
    ]
    node = helper.make_node("FlexAttention", list(names), ["y"], "flex", domain=PREVIEW, **attributes)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 26), helper.make_opsetid(PREVIEW, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=13)


def attentions(model: onnx.ModelProto) -> int:
    """How many operators of attention a model becomes when it is imported."""
    return sum(isinstance(op, AttentionOp) for op in import_model(model).walk())


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize(
    ("attributes", "count"),
    [
        ({}, 1),
        ({"scale": 0.3}, 1),
        ({"score_mod": changing("Tanh")}, 0),
        ({"prob_mod": changing("Mul", "half")}, 0),
        ({"score_mod": changing("Sub", "half"), "prob_mod": changing("Mul", "half"), "softmax_precision": 11}, 0),
    ],
)
def test_heads_share_keys(attributes: dict[str, Any], count: int, backend: str) -> None:
    if "softmax_precision" in attributes:
        attributes = {**attributes, "score_mod": changing("Neg"), "prob_mod": changing("Neg")}
    model = model_of(QUERY, KEY, VALUE, **attributes)
    inputs = dict(zip("qkv", (QUERY, KEY, VALUE), strict=True))
    wanted = by_reference(model, inputs)["y"]
    (found,) = InferenceSession(model, backend=backend, cache=False).run(None, inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert attentions(model) == count


@pytest.mark.parametrize(
    ("operands", "attributes", "said"),
    [
        ((QUERY[0], KEY, VALUE), {}, "operand 0 of FlexAttention has 3 axes"),
        ((QUERY[:, :3], KEY, VALUE), {}, "3 heads of queries cannot share 2 of keys and 2 of values"),
        ((QUERY, KEY, VALUE), {"score_mod": changing("Tanh", outputs=2)}, "takes 1 values and gives 2"),
        ((QUERY, KEY, VALUE), {"prob_mod": changing("ReduceSum", keepdims=0)}, "prob_mod of FlexAttention gives"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(operands: Any, attributes: dict[str, Any], said: str) -> None:
    model = model_of(*(np.ascontiguousarray(array) for array in operands), **attributes)
    assert said in refusal(model, ModelError)


def test_a_graph_with_an_operator_that_is_not_supported_is_reported() -> None:
    assert "Nothing" in refusal(model_of(QUERY, KEY, VALUE, score_mod=changing("Nothing")), GlowError)
