"""One-node models with any values at their inputs and outputs, beside onnxruntime, on both of our backends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from glow_mlir import InferenceSession

ML = "ai.onnx.ml"

KINDS = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(object): TensorProto.STRING,
    np.dtype(np.bool_): TensorProto.BOOL,
}
"""dtype → ONNX data type."""


def words(*items: str) -> np.ndarray:
    """A vector of strings."""
    found = np.empty(len(items), object)
    found[:] = items
    return found


def node_model(
    kind: str,
    arrays: Sequence[np.ndarray],
    results: int = 1,
    domain: str = "",
    version: int = 3,
    free: bool = False,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node; with `free`, the first axis of its inputs has no size."""
    names, given = [f"x{n}" for n in range(len(arrays))], [f"y{n}" for n in range(results)]
    inputs = [
        helper.make_tensor_value_info(
            name, KINDS[array.dtype], [f"{name}_rows", *array.shape[1:]] if free and array.ndim else list(array.shape)
        )
        for name, array in zip(names, arrays, strict=True)
    ]
    graph = helper.make_graph(
        [helper.make_node(kind, names, given, domain=domain, name="node", **attributes)],
        "graph",
        inputs,
        [onnx.ValueInfoProto(name=name) for name in given],
    )
    opsets = [helper.make_opsetid("", 21), *([helper.make_opsetid(domain, version)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def by_onnxruntime(model: onnx.ModelProto, given: dict[str, Any]) -> list[Any]:
    """The outputs of onnxruntime."""
    runtime = cast("Any", onnxruntime)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    return runtime.InferenceSession(model.SerializeToString(), options).run(None, given)


def assert_same(ours: Any, theirs: Any, atol: float = 1e-5) -> None:
    """Fail where a value is another: numbers within a tolerance, all else as it is, types and shapes included."""
    if isinstance(theirs, list):
        assert isinstance(ours, list)
        for one, other in zip(cast("list[Any]", ours), cast("list[Any]", theirs), strict=True):
            assert_same(one, other, atol)
    elif isinstance(theirs, dict):
        assert list(ours) == list(cast("dict[Any, Any]", theirs))
        np.testing.assert_allclose(list(ours.values()), list(cast("dict[Any, Any]", theirs).values()), atol=atol)
    elif theirs is None:
        assert ours is None
    elif theirs.dtype.kind in "Oib":
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=atol)


def assert_node(
    kind: str, arrays: Sequence[np.ndarray], results: int = 1, domain: str = "", version: int = 3, **attributes: Any
) -> None:
    """Fail where a node gives something else than in onnxruntime, with free sizes as well."""
    given = {f"x{n}": array for n, array in enumerate(arrays)}
    expected = by_onnxruntime(node_model(kind, arrays, results, domain, version, **attributes), given)
    for backend, free in (("interpreter", False), ("cpu", False), ("cpu", True)):
        model = node_model(kind, arrays, results, domain, version, free, **attributes)
        session = InferenceSession(model, backend=backend, cache=False)
        for ours, theirs in zip(session.run(None, given), expected, strict=True):
            assert_same(ours, theirs)
