"""Slices at every place where a bound may lie, also far outside of the axis, against the standard's other readers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from glow_mlir import InferenceSession

LEAST, MOST = -(1 << 63), (1 << 63) - 1
BOUNDS = (LEAST, LEAST + 1, -7, -6, -5, -4, -1, 0, 1, 4, 5, 6, MOST)

Case = tuple[int, int, int]
"""Start, end and step."""


def slices(size: int, cases: list[Case], opset: int) -> onnx.ModelProto:
    """A model that takes slices of the second axis of its input; opset 9 has the bounds as attributes."""
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    for number, (start, end, step) in enumerate(cases):
        if opset < 10:
            nodes.append(helper.make_node("Slice", ["x"], [f"y{number}"], starts=[start], ends=[end], axes=[1]))
            continue
        names = [f"{role}{number}" for role in ("start", "end", "axis", "step")]
        values = (start, end, -1, step)
        constants += [numpy_helper.from_array(np.array([v], np.int64), n) for n, v in zip(names, values, strict=True)]
        nodes.append(helper.make_node("Slice", ["x", *names], [f"y{number}"]))
    outputs = [onnx.ValueInfoProto(name=f"y{number}") for number in range(len(cases))]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, size])
    graph = helper.make_graph(nodes, "slices", [x], outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def by_us(model: onnx.ModelProto, x: np.ndarray, backend: str) -> list[np.ndarray]:
    return InferenceSession(model, backend=backend, cache=False).run(None, {"x": x})


def by_reference(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    return [np.asarray(array) for array in cast("list[Any]", ReferenceEvaluator(model).run(None, {"x": x}))]


def by_onnxruntime(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    options = cast(Any, onnxruntime).SessionOptions()
    options.log_severity_level = 3  # Its inference of shapes differs from what it computes, of which it warns.
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(array) for array in cast("list[Any]", session.run(None, {"x": x}))]


@pytest.mark.parametrize(("opset", "step"), [(9, 1), *((17, step) for step in (LEAST, -2, -1, 1, 3, MOST))])
@pytest.mark.parametrize("size", [0, 1, 5])
def test_slices_agree_with_the_standard_and_its_readers(size: int, step: int, opset: int) -> None:
    """
    Two readers differ from the standard, and are not asked there.

    Where the start of a negative step lies in front of the axis, the standard begins at the first element: the
    reference, which slices as numpy does, takes nothing. Where its end is the largest number, the standard has nothing
    left to take: onnxruntime goes through to the first element.
    """
    x = np.arange(2 * size, dtype=np.float32).reshape(2, size)
    cases = [(start, end, step) for start in BOUNDS for end in BOUNDS]
    model = slices(size, cases, opset)
    results = by_us(model, x, "interpreter")
    readers = zip(cases, results, by_reference(model, x), by_onnxruntime(model, x), strict=True)
    for (start, end, _), ours, reference, runtime in readers:
        if step > 0 or start >= -size:
            np.testing.assert_array_equal(ours, reference, f"{start}:{end}:{step}")
        if step > 0 or end != MOST:
            np.testing.assert_array_equal(ours, runtime, f"{start}:{end}:{step}")


def test_machine_code_takes_the_same_slices() -> None:
    cases = [(start, end, step) for step in (LEAST, -2, 3) for start in (LEAST, -2, 4) for end in (LEAST, 0, MOST)]
    model = slices(5, cases, 17)
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    for ours, meaning in zip(by_us(model, x, "cpu"), by_us(model, x, "interpreter"), strict=True):
        np.testing.assert_array_equal(ours, meaning)
