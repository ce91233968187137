"""Slice and Split where data, or sizes with bounds, decide what a part is, against onnxruntime and on all backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_models import integers, model_of, node, value

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import ExecutionError, GlowError, ModelError
from glow_mlir.support.symbols import Dimension

BACKENDS = ("cpu", "interpreter")


def selected(*nodes: onnx.NodeProto, outputs: Sequence[str], **constants: Sequence[int]) -> onnx.ModelProto:
    """What nodes make of `rows`, those of `x` that `keep` selects, and of `count`, how many there are."""
    before = [
        node("Compress", "x keep", "rows", axis=0),
        node("Cast", "keep", "ones", to=TensorProto.INT64),
        node("ReduceSum", "ones first", "count", keepdims=1),
    ]
    inputs = [value("x", shape=("n", 3)), value("keep", TensorProto.BOOL, ("n",))]
    known = [integers(name, *numbers) for name, numbers in {"first": [0], **constants}.items()]
    return model_of([*before, *nodes], inputs, outputs, known, opset=18)


def experts() -> onnx.ModelProto:
    """A mixture of three experts, traced: the rows that go to each, weighted, and put in order again."""
    nodes = [
        node("MatMul", "x weights", "scores"),
        node("ArgMax", "scores", "choice", axis=1, keepdims=0),
        node("Cast", "choice", "chosen_float", to=TensorProto.FLOAT),
        node("TopK", "chosen_float rows_as_list", "sorted order", axis=0, largest=0),
        node("OneHot", "choice three zero_one", "hot", axis=-1),
        node("ReduceSum", "hot first", "counts", keepdims=0),
        node("Gather", "x order", "in_order", axis=0),
        node("Split", "in_order counts", "a b c", axis=0),
        node("Mul", "a a", "a2"),
        node("Neg", "b", "b2"),
        node("Concat", "a2 b2 c", "joined", axis=0),
    ]
    weights = helper.make_tensor("weights", TensorProto.FLOAT, [3, 3], np.eye(3, dtype=np.float32).ravel())
    known = [integers("first", 0), integers("three", 3), integers("zero_one", 0, 1), integers("rows_as_list", 6)]
    return model_of(nodes, [value("x", shape=(6, 3))], ["counts", "a", "b", "c", "joined"], [*known, weights])


MODELS: Mapping[str, onnx.ModelProto] = {
    "halves": selected(node("Split", "rows", "y z", axis=0, num_outputs=2), outputs=["y", "z"]),
    "places where a constant of as many elements is smaller": selected(
        node("Shape", "rows", "sizes"),
        node("ConstantOfShape", "sizes", "zeros"),
        node("Greater", "rows zeros", "is_larger"),
        node("NonZero", "is_larger", "y"),
        outputs=["y"],
    ),
    "up to a count": selected(node("Slice", "x first count", "y", "cut"), outputs=["y"]),
    "from a count": selected(node("Slice", "x count most", "y"), outputs=["y"], most=[1 << 62]),
    "around a count": selected(
        node("Slice", "x first count", "y"),
        node("Slice", "x count most", "z"),
        node("Concat", "z y", "w", axis=0),
        outputs=["w"],
        most=[1 << 62],
    ),
    "the last of those that there are": selected(
        node("Slice", "rows back most", "y"), outputs=["y"], back=[-2], most=[99]
    ),
    "all but the last": selected(node("Slice", "rows first back", "y"), outputs=["y"], back=[-1]),
    "backwards": selected(
        node("Slice", "rows most least first step", "y"), outputs=["y"], most=[99], least=[-99], step=[-2]
    ),
    "backwards from the first": selected(
        node("Slice", "rows first least first step", "y"), outputs=["y"], least=[-99], step=[-1]
    ),
    "backwards in nothing": selected(
        node("Slice", "x first first", "nothing"),
        node("Shape", "rows", "number", start=0, end=1),
        node("Slice", "nothing first number first step", "y"),
        outputs=["y"],
        step=[-1],
    ),
    "every second": selected(node("Slice", "rows one most first two", "y"), outputs=["y"], one=[1], most=[99], two=[2]),
    "two axes": selected(
        node("Slice", "rows starts ends axes", "y"), outputs=["y"], starts=[-2, 1], ends=[99, 3], axes=[0, 1]
    ),
    "equal counts are one size": selected(
        node("Slice", "x first count", "y"),
        node("Neg", "x", "less"),
        node("Slice", "less first count", "z"),
        node("Add", "y z", "w"),
        outputs=["w"],
    ),
    "two parts of a count": selected(
        node("Shape", "x", "n", start=0, end=1),
        node("Sub", "n count", "rest"),
        node("Concat", "count rest", "counts", axis=0),
        node("Split", "x counts", "y z", axis=0),
        outputs=["y", "z"],
    ),
    "two parts of a count less one": selected(
        node("Shape", "rows", "number", start=0, end=1),
        node("Sub", "number one", "less"),
        node("Max", "less first", "before"),
        node("Shape", "x", "n", start=0, end=1),
        node("Sub", "n before", "rest"),
        node("Concat", "before rest", "counts", axis=0),
        node("Split", "x counts", "y z", axis=0),
        outputs=["y", "z"],
        one=[1],
    ),
    "experts": experts(),
}
"""Name → a model with parts whose sizes are known at run time only."""

BOUNDS: Mapping[str, Dimension] = {"n": (1, 9)}


@cache
def ours(name: str, backend: str, is_bounded: bool) -> InferenceSession:
    bounds = BOUNDS if is_bounded and name != "experts" else None
    return InferenceSession(MODELS[name], backend=backend, dimensions=bounds, cache=False)


@cache
def theirs(name: str) -> Any:
    return onnxruntime.InferenceSession(MODELS[name].SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=examples(6), deadline=None)
@given(rows=st.integers(1, 9), share=st.sampled_from([0.0, 0.5, 1.0]), seed=st.integers(0, 99))
def test_parts_are_those_of_onnxruntime(name: str, rows: int, share: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((6 if name == "experts" else rows, 3)).astype(np.float32)
    inputs: dict[str, np.ndarray] = {"x": x}
    if name != "experts":
        inputs["keep"] = generator.random(rows) < share
    wanted = theirs(name).run(None, inputs)
    for backend, is_bounded in (("cpu", False), ("cpu", True), ("interpreter", True)):
        for found, expected in zip(ours(name, backend, is_bounded).run(None, inputs), wanted, strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_parts_are_as_those_of_sizes_that_are_numbers(backend: str) -> None:
    """The last ones are smaller, or empty, where onnxruntime takes no such number."""
    thirds = node("Split", "rows", "y z w", axis=0, num_outputs=3)
    model = selected(thirds, outputs=["y", "z", "w"])
    session = InferenceSession(model, backend=backend, dimensions=BOUNDS, cache=False)
    for count in range(6):
        x, keep = np.arange(18, dtype=np.float32).reshape(6, 3), np.arange(6) < count
        part = -(-count // 3)
        expected = [x[:count][place : place + part] for place in (0, part, 2 * part)]
        for found, wanted in zip(session.run(None, {"x": x, "keep": keep}), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_that_do_not_make_up_an_axis_fail_the_call(backend: str) -> None:
    nodes = [
        node("ReduceSum", "x", "total", keepdims=0),
        node("Cast", "total", "whole", to=TensorProto.INT64),
        node("Unsqueeze", "whole first", "one"),
        node("Concat", "one two", "counts", axis=0),
        node("Split", "x counts", "y z", "parts", axis=0),
    ]
    model = model_of(nodes, [value("x", shape=(5,))], ["y", "z"], [integers("first", 0), integers("two", 2)])
    session = InferenceSession(model, backend=backend, cache=False)
    y, z = session.run(None, {"x": np.array([1, 2, 0, 0, 0], np.float32)})
    assert (y.tolist(), z.tolist()) == ([1, 2, 0], [0, 0])
    for wrong in ([1, 1, 0, 0, 0], [2, 2, 0, 0, 0], [-1, 0, 0, 0, 0]):
        with pytest.raises(ExecutionError, match="parts"):
            session.run(None, {"x": np.array(wrong, np.float32)})


def shifted(size: int, first: int, second: int) -> onnx.ModelProto:
    """Parts of `count` + first and second - `count` of an axis, where `count` is how many elements are not 0."""
    nodes = [
        node("NonZero", "x", "places"),
        node("Shape", "places", "count", start=1, end=2),
        node("Add", "count first", "one"),
        node("Sub", "second count", "two"),
        node("Concat", "one two", "counts", axis=0),
        node("Split", "x counts", "y z", "parts", axis=0),
    ]
    known = [integers("first", first), integers("second", second)]
    return model_of(nodes, [value("x", shape=(size,))], ["y", "z"], known, opset=18)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("first", "second"), [(-1, 7), (-2, 8), (1, 5), (2, 4)])
def test_parts_that_may_be_negative_are_checked_by_the_call(first: int, second: int, backend: str) -> None:
    session = InferenceSession(shifted(6, first, second), backend=backend, cache=False)
    for count in range(7):
        x = np.where(np.arange(6) < count, np.arange(1, 7), 0).astype(np.float32)
        if 0 <= count + first <= 6:
            y, z = session.run(None, {"x": x})
            assert (y.tolist(), z.tolist()) == (x[: count + first].tolist(), x[count + first :].tolist())
        else:
            with pytest.raises(ExecutionError, match="parts"):
                session.run(None, {"x": x})


@pytest.mark.parametrize(("first", "second"), [(0, 5), (0, 7), (-7, 13)])
def test_parts_that_never_make_up_an_axis_are_refused(first: int, second: int) -> None:
    with pytest.raises(ModelError, match=r"Split: parts of .* do not make up 6 elements"):
        InferenceSession(shifted(6, first, second), cache=False)


def parted(opset: int, number: int, **attributes: Any) -> onnx.ModelProto:
    """Parts of an axis without their sizes."""
    names = " ".join(f"y{place}" for place in range(number))
    nodes = [node("Split", "x", names, "parts", axis=0, **attributes)]
    return model_of(nodes, [value("x", shape=("n", 3))], names.split(), opset=opset)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bounds", [None, {"n": (1, 9)}, {"n": (4, 5)}], ids=["free", "bounded", "narrow"])
@pytest.mark.parametrize("opset", [2, 11, 13])
def test_parts_of_unknown_sizes_have_to_be_equal(
    opset: int, bounds: Mapping[str, Dimension] | None, backend: str
) -> None:
    model = parted(opset, 2)
    session = InferenceSession(model, backend=backend, dimensions=bounds, cache=False)
    reference: Any = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for found, wanted in zip(session.run(None, {"x": x}), reference.run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(GlowError, match="parts"):
        session.run(None, {"x": np.zeros((5, 3), np.float32)})


@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_of_selected_rows_have_to_be_equal(backend: str) -> None:
    model = selected(node("Split", "rows", "y z", "parts", axis=0), outputs=["y", "z"])
    model.opset_import[0].version = 13
    session = InferenceSession(model, backend=backend, cache=False)
    x = np.arange(18, dtype=np.float32).reshape(6, 3)
    for count in range(7):
        inputs = {"x": x, "keep": np.arange(6) < count}
        if count % 2:
            with pytest.raises(ExecutionError, match="parts"):
                session.run(None, inputs)
            continue
        y, z = session.run(None, inputs)
        np.testing.assert_array_equal(np.concatenate([y, z]), x[:count])
        assert len(y) == len(z)


@pytest.mark.parametrize("dimensions", [{"n": 5}, {"n": (5, 5)}])
def test_elements_that_make_no_equal_parts_are_refused(dimensions: Mapping[str, Dimension]) -> None:
    reason = r"'parts': Split: 5 elements do not make up 2 equal parts \(hint: "
    with pytest.raises(ModelError, match=reason):
        InferenceSession(parted(13, 2), dimensions=dimensions, cache=False)
    session = InferenceSession(parted(18, 2, num_outputs=2), dimensions=dimensions, cache=False)
    y, z = session.run(None, {"x": np.zeros((5, 3), np.float32)})
    assert (len(y), len(z)) == (3, 2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pads", [(-1, 0, -1, 0), (-2, 1, 0, 0), (2, 0, -2, -1), (0, 0, -2, 0)])
def test_borders_cut_off_what_there_is_at_the_call(pads: tuple[int, ...], backend: str) -> None:
    """Negative widths that are more than the fewest elements that there may be: then the call fails."""
    nodes = [node("Pad", "x pads", "y", "pad")]
    model = model_of(nodes, [value("x", shape=("n", 3))], ["y"], [integers("pads", *pads)], opset=18)
    session = InferenceSession(model, backend=backend, dimensions=BOUNDS, cache=False)
    reference: Any = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for rows in (2, 3, 9):
        x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], reference.run(None, {"x": x})[0])
    with pytest.raises(ExecutionError, match="pad"):
        session.run(None, {"x": np.ones((1, 3), np.float32)})


def test_borders_that_cut_off_more_than_there_ever_is_are_refused() -> None:
    nodes = [node("Pad", "x pads", "y", "pad")]
    model = model_of(nodes, [value("x", shape=("n",))], ["y"], [integers("pads", -5, -5)], opset=18)
    with pytest.raises(ModelError, match="Pad cuts off more than"):
        InferenceSession(model, dimensions=BOUNDS, cache=False)


def test_sizes_of_parts_go_by_the_names_of_results() -> None:
    outputs = {output.name: output.shape for output in ours("experts", "cpu", is_bounded=False).get_outputs()}
    assert outputs["a"] == ["a.count", 3]
    assert outputs["c"] == ["c.count", 3]
    assert outputs["joined"] == ["a.count + b.count + c.count", 3]
