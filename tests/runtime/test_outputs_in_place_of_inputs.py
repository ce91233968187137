"""Outputs that are bound to the memory of an input: written in its place where nothing reads it later, else correct."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from glow_mlir import InferenceSession, OrtValue
from glow_mlir.api.model_session import ModelSession

CACHE, NEW = [2, 3, 16, 8], [2, 3, 2, 8]


def model(nodes: Sequence[NodeProto]) -> bytes:
    """A model of nodes that read a cache `p`, new rows `u` and indices `i`, and give `o`, of the cache's shape."""
    floats = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("p", CACHE), ("u", NEW))]
    inputs = [*floats, helper.make_tensor_value_info("i", TensorProto.INT64, [2])]
    outputs = [helper.make_tensor_value_info("o", TensorProto.FLOAT, CACHE)]
    graph = helper.make_graph(list(nodes), "cache", inputs, outputs)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    return made.SerializeToString()


SCATTER = helper.make_node("TensorScatter", ["p", "u", "i"], ["o"], axis=2)
GRAPHS = {
    "a scatter": ([SCATTER], True),
    "a sum": ([helper.make_node("Add", ["p", "p"], ["o"])], True),
    "a later read": (
        [
            helper.make_node("TensorScatter", ["p", "u", "i"], ["x"], axis=2),
            helper.make_node("ReduceSum", ["p"], ["s"], keepdims=1),
            helper.make_node("Add", ["x", "s"], ["o"]),
        ],
        False,
    ),
    "turned elements": (
        [
            helper.make_node("Transpose", ["p"], ["x"], perm=[0, 1, 3, 2]),
            helper.make_node("Reshape", ["x", "shape"], ["o"]),
        ],
        False,
    ),
}
"""Nodes, and whether the output takes the place of the cache."""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("nodes", "replaces"), GRAPHS.values(), ids=GRAPHS)
def test_results_are_those_of_separate_memory(nodes: list[NodeProto], replaces: bool, threads: int) -> None:
    if nodes[-1].op_type == "Reshape":
        shape = helper.make_tensor("shape", TensorProto.INT64, [4], CACHE)
        nodes = [helper.make_node("Constant", [], ["shape"], value=shape), *nodes]
    compiled = InferenceSession(model(nodes), threads=threads)
    generator = np.random.default_rng(0)
    cache, new = (generator.standard_normal(shape).astype(np.float32) for shape in (CACHE, NEW))
    given = {"p": cache.copy(), "u": new, "i": np.array([5, 0])}
    (expected,) = compiled.run(None, given)
    np.testing.assert_array_equal(given["p"], cache)
    place = OrtValue.ortvalue_from_numpy(cache)
    binding = compiled.io_binding()
    binding.bind_ortvalue_input("p", place)
    binding.bind_cpu_input("u", new)
    binding.bind_cpu_input("i", given["i"])
    binding.bind_ortvalue_output("o", place)
    compiled.run_with_iobinding(binding)
    np.testing.assert_array_equal(place.numpy(), expected)
    entry = ModelSession.from_keywords(model(nodes), {"threads": threads}).executable.entry()
    (output,) = (bound for bound in entry.bindings if bound.role == "output")
    assert (output.in_place_of == ("p",)) == replaces
