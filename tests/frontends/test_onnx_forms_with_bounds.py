"""Each operator with one size that is known at run time only: it computes as onnxruntime does, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast
from unittest import mock

import numpy as np
import onnx
import onnxruntime
import pytest
from checkout import ROOT
from cut import however_small
from onnx import TensorProto, helper, numpy_helper
from operator_forms import FORMS, Form

from glow_mlir import InferenceSession
from glow_mlir.codegen.selection import candidate
from glow_mlir.errors import ModelError, UnsupportedError

BOUNDS = {"size": (1, 9)}

REFUSED = {
    **{(kind, axis): "spatial" for kind in ("AveragePool", "Conv", "LpPool", "MaxPool") for axis in (3,)},
    **{(kind, axis): "batch and spatial" for kind in ("ConvTranspose",) for axis in (0, 3)},
    ("LRN", 3): "spatial",
    ("SpaceToDepth", 3): "not divided by the block",
}
"""Operator and axis that are refused with such a size, each with the reason."""

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
    if (kind, axis) in UNFIT or (kind, axis) in REFUSED:
        error = ModelError if (kind, axis) in UNFIT else UnsupportedError
        with pytest.raises(error, match=r"'it'.*") as caught:
            InferenceSession(content, dimensions=BOUNDS, cache=False)
        assert "\n" not in str(caught.value)
        return
    session = InferenceSession(content, dimensions=BOUNDS, cache=False)
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
    and (kind, axis) not in REFUSED | UNFIT
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
    session = InferenceSession(content, dimensions=BOUNDS, cache=False)
    options = cast("Any", onnxruntime.SessionOptions())
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    reference: Any = onnxruntime.InferenceSession(content, options)
    for more in (0, 2):
        shape = list(form.operands[0].shape)
        shape[axis] += more
        x = np.random.default_rng(more).integers(0, 256, shape).astype(np.uint8)
        (found,), (wanted,) = (any_session.run(None, {"x0": x}) for any_session in (session, reference))
        np.testing.assert_allclose(found.astype(int), wanted.astype(int), atol=1)


def test_the_documentation_names_what_is_refused() -> None:
    text = (ROOT / "docs" / "sizes.md").read_text(encoding="utf-8")
    assert all(f"`{kind}`" in text for kind, _ in REFUSED)


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


@pytest.mark.parametrize(("kind", "axis"), [case for case in CASES if case not in REFUSED | UNFIT])
def test_calls_with_symbols_use_all_threads(kind: str, axis: int) -> None:
    """With the same bits as on one."""
    model, form = model_of(kind, axis)
    content = model.SerializeToString()
    bounds = {"size": (1, 40000)}  # Copies are cut where they may be large.
    alone = InferenceSession(content, dimensions=bounds, cache=False, threads=1)
    with counted_cuts() as cuts:
        together = InferenceSession(content, dimensions=bounds, cache=False, threads=3)
    assert cuts() or kind in NOT_CUT
    for size in (1, 2, form.operands[0].shape[axis], 17, 40):
        inputs: dict[str, np.ndarray] = {}
        for place in free_operands(form):
            shape = list(form.operands[place].shape)
            shape[axis] = size
            inputs[f"x{place}"] = np.resize(form.operands[place], shape)
        for found, wanted in zip(together.run(None, inputs), alone.run(None, inputs), strict=True):
            assert found.tobytes() == wanted.tobytes(), f"of size {size}"
