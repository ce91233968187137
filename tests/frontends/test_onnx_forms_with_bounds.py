"""Each operator with one size that is known at run time only computes as onnxruntime does."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast
from unittest import mock

import numpy as np
import onnx
import onnxruntime
import pytest
from cut import however_small
from onnx import TensorProto, helper, numpy_helper
from operator_forms import FORMS, LATER_FORMS, Form

from glow_mlir import InferenceSession
from glow_mlir.codegen.selection import candidate
from glow_mlir.errors import ModelError

MOST = 9
"""The largest free size."""

WINDOWS = {"AveragePool", "Conv", "LpPool", "MaxPool"}
"""Operators that take no image smaller than a window."""

UNFIT = {
    **{(kind, 1): "the inner size of a product with a constant" for kind in ("Gemm", "MatMul")},
    **{("Reshape", axis): "the shape holds for one size" for axis in (0, 2)},
    **{(kind, 2): "the width of constant weights" for kind in ("GRU", "LSTM", "RNN")},
    ("Squeeze", 0): "an axis of size one",
    ("Gemm", 0): "a constant that broadcasts to one size",
    **{(kind, 0): "a constant that broadcasts to one size" for kind in ("Add", "Div", "Mul", "Sub", "And", "Or")},
    **{(kind, 0): "a constant that broadcasts to one size" for kind in ("Xor", "Equal", "Greater", "Less", "Pow")},
}
"""Operator and axis that can have the size of the other operands alone."""

CASES = [
    (kind, axis)
    for kind, forms in FORMS.items()
    if (operands := forms[max(forms)].operands) and operands[0].ndim
    for axis in sorted({0, operands[0].ndim - 1})
]


def free_operands(form: Form) -> list[int]:
    """The operands that have the free size: the first one, and those of its shape."""
    return [place for place, array in enumerate(form.operands) if array.shape == form.operands[0].shape]


def model_of(kind: str, axis: int) -> tuple[onnx.ModelProto, Form]:
    """A model of the operator, in the last form of the table, and that form."""
    since = max(FORMS[kind])
    form = FORMS[kind][since]
    free = free_operands(form)
    names = [f"x{place}" for place in range(len(form.operands))]
    inputs = [
        helper.make_tensor_value_info(
            names[place],
            helper.np_dtype_to_tensor_dtype(form.operands[place].dtype),
            ["size" if other == axis else size for other, size in enumerate(form.operands[place].shape)],
        )
        for place in free
    ]
    weights = [
        numpy_helper.from_array(array, names[place]) for place, array in enumerate(form.operands) if place not in free
    ]
    results = [f"y{place}" for place in range(form.outputs)]
    outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in results]
    for output in outputs:
        output.ClearField("type")
    node = helper.make_node(form.kind or kind, names, results, name="it", **form.attributes)
    graph = helper.make_graph([node], "form", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", max(since, 9))], ir_version=8), form


@pytest.mark.parametrize(("kind", "axis"), CASES)
def test_one_axis_of_a_size_known_at_run_time_only(kind: str, axis: int) -> None:
    model, form = model_of(kind, axis)
    content = model.SerializeToString()
    bounds = {"size": (form.operands[0].shape[axis] if kind in WINDOWS else 1, MOST)}
    if (kind, axis) in UNFIT:
        with pytest.raises(ModelError, match=r"'it'.*") as caught:
            InferenceSession(content, dimensions=bounds, cache=False)
        assert "\n" not in str(caught.value)
        return
    session = InferenceSession(content, dimensions=bounds, cache=False)
    reference: Any = onnxruntime.InferenceSession(content)
    for more in (0, 2):
        inputs: dict[str, np.ndarray] = {}
        for place in free_operands(form):
            shape = list(form.operands[place].shape)
            shape[axis] += more
            inputs[f"x{place}"] = np.resize(form.operands[place], shape)
        for found, wanted in zip(session.run(None, inputs), reference.run(None, inputs), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


NO_NUMBERS = {"ArgMax", "ArgMin", "Cast", "Shape", "Size"}
"""Operators whose results are no floats."""

CODED = [
    (kind, axis)
    for kind, axis in CASES
    if len((form := FORMS[kind][max(FORMS[kind])]).operands) == 1
    and form.operands[0].dtype == np.float32
    and axis == form.operands[0].ndim - 1
    and (kind, axis) not in UNFIT
    and kind not in NO_NUMBERS
]
"""Operators of one operand that give numbers, and their last axes."""


@pytest.mark.parametrize(("kind", "axis"), CODED)
def test_what_is_made_of_codes_takes_the_same_sizes(kind: str, axis: int) -> None:
    """Between quantizations; functions of one code are tables. Half-way between two codes, either is right."""
    model, form = model_of(kind, axis)
    graph = model.graph
    graph.node[0].input[0] = "numbers"
    before = helper.make_node("DequantizeLinear", ["x0", "scale", "zero"], ["numbers"])
    after = helper.make_node("QuantizeLinear", ["y0", "scale", "zero"], ["codes"])
    nodes = [before, graph.node[0], after]
    graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
    constants = {"scale": np.array(0.05, np.float32), "zero": np.array(100, np.uint8)}
    initializers = [*graph.initializer, *(numpy_helper.from_array(x, name) for name, x in constants.items())]
    outputs = [helper.make_tensor_value_info("codes", TensorProto.UINT8, None)]
    coded = helper.make_graph(nodes, "coded", graph.input, outputs, initializers)
    opset = helper.make_opsetid("", max(model.opset_import[0].version, 13))
    content = helper.make_model(coded, opset_imports=[opset], ir_version=8).SerializeToString()
    bounds = {"size": (form.operands[0].shape[axis] if kind in WINDOWS else 1, MOST)}
    session = InferenceSession(content, dimensions=bounds, cache=False)
    options = cast("Any", onnxruntime.SessionOptions())
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    reference: Any = onnxruntime.InferenceSession(content, options)
    for more in (0, 2):
        shape = list(form.operands[0].shape)
        shape[axis] += more
        x = np.random.default_rng(more).integers(0, 256, shape).astype(np.uint8)
        (found,), (wanted,) = (any_session.run(None, {"x0": x}) for any_session in (session, reference))
        np.testing.assert_allclose(found.astype(int), wanted.astype(int), atol=1)


LATER = [(name, place) for name, bounded in LATER_FORMS.items() for place in range(len(bounded.cases))]


def later_model(name: str, axes: Mapping[int, int]) -> bytes:
    """A model of a later form, of whose operands those have a free size along these axes."""
    bounded, kind = LATER_FORMS[name], re.split(r"[ ,]", name)[0]
    form = bounded.form
    names = [f"x{place}" if array.size else "" for place, array in enumerate(form.operands)]
    inputs = [
        helper.make_tensor_value_info(
            f"x{place}",
            helper.np_dtype_to_tensor_dtype(form.operands[place].dtype),
            ["size" if other == axis else size for other, size in enumerate(form.operands[place].shape)],
        )
        for place, axis in axes.items()
    ]
    weights = [numpy_helper.from_array(x, f"x{p}") for p, x in enumerate(form.operands) if p not in axes and x.size]
    outputs = [onnx.ValueInfoProto(name=f"y{place}") for place in range(form.outputs)]
    results = [output.name for output in outputs]
    node = helper.make_node(kind, names, results, name="it", domain=bounded.domain, **form.attributes)
    opsets = [helper.make_opsetid("", form.opset), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "form", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


@pytest.mark.parametrize(("name", "place"), LATER)
def test_later_forms(name: str, place: int) -> None:
    """From the smallest size to the largest; codes may differ by one where a number is half-way between two."""
    bounded = LATER_FORMS[name]
    axes, operands = bounded.cases[place], bounded.form.operands
    content = later_model(name, axes)
    session = InferenceSession(content, dimensions={"size": (bounded.least, MOST)}, cache=False)
    options = cast("Any", onnxruntime.SessionOptions())
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    reference: Any = onnxruntime.InferenceSession(content, options)
    for size in range(bounded.least, MOST + 1):
        inputs: dict[str, np.ndarray] = {}
        for number, axis in axes.items():
            shape = [size if other == axis else extent for other, extent in enumerate(operands[number].shape)]
            inputs[f"x{number}"] = np.resize(operands[number], shape)
        for found, wanted in zip(session.run(None, inputs), reference.run(None, inputs), strict=True):
            assert found.dtype == wanted.dtype
            assert found.shape == wanted.shape
            near = 1 if wanted.dtype == np.uint8 else 1e-5
            np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=1e-4, atol=near)


@contextmanager
def counted_cuts() -> Generator[Callable[[], int]]:
    """How many instructions are cut while the context lasts, however small they are."""
    original, found = candidate.partition, list[bool]()

    def partition(*given: Any) -> bool:
        found.append(original(*given))
        return found[-1]

    with mock.patch.object(candidate, "partition", partition), however_small():
        yield lambda: sum(found)


NOT_CUT = {"Shape", "Size", "Reshape", "Flatten", "Identity", "Dropout"}
"""Operators that are views of their operands, or have sizes for results."""


@pytest.mark.long
@pytest.mark.parametrize(("kind", "axis"), [case for case in CASES if case not in UNFIT])
def test_calls_with_symbols_use_all_threads(kind: str, axis: int) -> None:
    """With the same bits as on one."""
    model, form = model_of(kind, axis)
    content = model.SerializeToString()
    least = form.operands[0].shape[axis] if kind in WINDOWS else 1
    bounds = {"size": (least, 40000)}  # Copies are cut where they may be large.
    alone = InferenceSession(content, dimensions=bounds, cache=False, threads=1)
    with counted_cuts() as cuts:
        together = InferenceSession(content, dimensions=bounds, cache=False, threads=3)
    assert cuts() or kind in NOT_CUT
    block = form.attributes.get("blocksize", 1) if axis else 1
    for size in (least, least + 1, form.operands[0].shape[axis], 17, 40):
        if size % block:
            continue
        inputs: dict[str, np.ndarray] = {}
        for place in free_operands(form):
            shape = list(form.operands[place].shape)
            shape[axis] = size
            inputs[f"x{place}"] = np.resize(form.operands[place], shape)
        for found, wanted in zip(together.run(None, inputs), alone.run(None, inputs), strict=True):
            assert found.tobytes() == wanted.tobytes(), f"of size {size}"
