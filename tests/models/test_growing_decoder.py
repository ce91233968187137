"""A decoder whose keys and values grow: one compilation makes token after token, as onnxruntime does."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnxruntime
import pytest
from growing_decoder import FORMS, growing_decoder
from onnx import TensorProto, helper

from glow_mlir import InferenceSession
from glow_mlir.errors import InputError, OptionError


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
@pytest.mark.parametrize("form", FORMS)
def test_one_compilation_makes_any_number_of_tokens(form: str, backend: str) -> None:
    model = growing_decoder(form, layers=1).SerializeToString()
    bounds = {"past": (0, 40), "tokens": (1, 8)}
    session = InferenceSession(model, dimensions=bounds, backend=backend, cache=False)
    reference: Any = onnxruntime.InferenceSession(model)
    generator = np.random.default_rng(0)
    kept = {name: np.zeros((1, 2, 0, 16), np.float32) for name in ("keys0", "values0")}
    for tokens in (5, 1, 1, 8, 1):
        inputs = {"ids": generator.integers(0, 50, (1, tokens)), **kept}
        found, wanted = session.run(None, inputs), reference.run(None, inputs)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        kept = dict(zip(kept, found[1:], strict=True))
    assert session.specializations == []


def test_keys_and_values_grow_where_they_are() -> None:
    """What is given back is not moved; an old output that is given a second time stays what it is."""
    session = InferenceSession(
        growing_decoder("comparison", layers=1), dimensions={"past": (0, 40), "tokens": (1, 8)}, cache=False
    )
    names = ("keys0", "values0")

    def step(ids: list[int], kept: list[np.ndarray]) -> list[np.ndarray]:
        return session.run(None, {"ids": np.array([ids]), **dict(zip(names, kept, strict=True))})[1:]

    first = step([1, 2, 3], [np.zeros((1, 2, 0, 16), np.float32)] * 2)
    before = [array.copy() for array in first]
    second, other = step([4], first), step([5], first)
    for old, kept, grown, branch in zip(first, before, second, other, strict=True):
        assert np.shares_memory(old, grown)
        assert not np.shares_memory(old, branch)
        np.testing.assert_array_equal(old, kept)
        np.testing.assert_array_equal(grown[:, :, :3], kept)
        np.testing.assert_array_equal(branch[:, :, :3], kept)
        assert not np.array_equal(grown, branch)
    longer = [array.copy() for array in second]
    for found, wanted in zip(step([6], second), step([6], longer), strict=True):
        np.testing.assert_array_equal(found, wanted)


HEADS, DEPTH = 2, 16


def query_attention() -> bytes:
    """GroupQueryAttention of one sequence, as exporters write it: the number of keys comes from a mask."""
    width = HEADS * DEPTH
    value, tables = helper.make_tensor_value_info, [1, HEADS, "past", DEPTH]
    inputs = [value(name, TensorProto.FLOAT, [1, "tokens", width]) for name in ("q", "k", "v")]
    inputs += [value(name, TensorProto.FLOAT, tables) for name in ("keys", "values")]
    inputs += [value("mask", TensorProto.INT64, [1, "total"])]
    grown = [1, HEADS, "total", DEPTH]
    outputs = [value("y", TensorProto.FLOAT, [1, "tokens", width])]
    outputs += [value(name, TensorProto.FLOAT, grown) for name in ("new_keys", "new_values")]
    operands = ["q", "k", "v", "keys", "values", "last", "total"]
    nodes = [
        helper.make_node("ReduceSum", ["mask", "one"], ["count"], keepdims=0),
        helper.make_node("Cast", ["count"], ["count32"], to=TensorProto.INT32),
        helper.make_node("Sub", ["count32", "one32"], ["last"]),
        helper.make_node("Shape", ["mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "second"], ["keys64"]),
        helper.make_node("Cast", ["keys64"], ["total"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention",
            operands,
            ["y", "new_keys", "new_values"],
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=HEADS,
        ),
    ]
    constants = [
        helper.make_tensor("one", TensorProto.INT64, [1], [1]),
        helper.make_tensor("one32", TensorProto.INT32, [1], [1]),
        helper.make_tensor("second", TensorProto.INT64, [], [1]),
    ]
    graph = helper.make_graph(nodes, "attention", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def test_tables_of_group_query_attention_grow() -> None:
    """One dimension is an expression of others; a call of other sizes is refused."""
    model = query_attention()
    bounds = {"past": (0, 40), "tokens": (1, 8), "total": "past + tokens"}
    session = InferenceSession(model, dimensions=bounds, cache=False)
    reference: Any = onnxruntime.InferenceSession(model)
    generator = np.random.default_rng(0)
    tables = [np.zeros((1, HEADS, 0, DEPTH), np.float32)] * 2
    for tokens in (5, 1, 1, 1):
        new = {name: generator.normal(size=(1, tokens, HEADS * DEPTH)).astype(np.float32) for name in "qkv"}
        mask = np.ones((1, tables[0].shape[2] + tokens), np.int64)
        inputs = {**new, "keys": tables[0], "values": tables[1], "mask": mask}
        found, wanted = session.run(None, inputs), reference.run(None, inputs)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        tables = found[1:]
    with pytest.raises(InputError, match=r"total|mask"):
        session.run(None, {**inputs, "mask": np.ones((1, 30), np.int64)})


@pytest.mark.parametrize("text", ["past +", "past + unknown", "total + 1", ""])
def test_expressions_of_unknown_dimensions_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match=f"dimension 'total' cannot be '{re.escape(text)}' long"):
        InferenceSession(query_attention(), dimensions={"past": (0, 40), "tokens": 1, "total": text}, cache=False)
