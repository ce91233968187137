"""ONNX's operators that move elements, in the forms that they took, against ONNX's reference implementation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from node_cases import cases_of, check_case
from onnx import numpy_helper
from onnx_models import model_of
from onnx_models import node as make_node
from single_node import SingleNode, assert_equal

from glow_mlir.dialects.glow_high.data_movement import ConcatOp
from glow_mlir.errors import GlowWarning, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model

CONSTANT_OPERANDS: Mapping[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
"""Operands that fix shapes, and for that have to be constants."""


@pytest.mark.parametrize("name", cases_of(("Compress", "NonZero", "Unique")))
def test_data_that_fixes_a_shape_may_be_constant(name: str) -> None:
    check_case(name, CONSTANT_OPERANDS)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def scalar(number: float, dtype: str = "int64") -> np.ndarray:
    return np.array(number, dtype)


def counted(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def node(kind: str, *operands: np.ndarray | None, opset: int, **attributes: Any) -> SingleNode:
    outputs = attributes.pop("outputs", 1)
    constant = CONSTANT_OPERANDS.get(kind, ())
    return SingleNode(kind, operands, opset, attributes, outputs, constant)


IMAGE = counted(2, 8, 4, 6)
VERSIONS: list[SingleNode] = [
    node("Slice", IMAGE, opset=9, starts=[1, -3], ends=[2**31, -1], axes=[3, 1]),
    node("Slice", IMAGE, opset=7, starts=[0, 2, 1], ends=[1, 5, 9]),
    node("Slice", IMAGE, ints(-1, 0), ints(-(2**40), 2**40), ints(1, 3), ints(-2, 4), opset=10),
    node("Slice", IMAGE, ints(-1).astype(np.int32), ints(-9).astype(np.int32), ints(2).astype(np.int32), opset=13),
    node("Slice", IMAGE, ints(5), ints(2), ints(1), opset=13),
    node("Split", IMAGE, opset=7, axis=1, outputs=2),
    node("Split", IMAGE, opset=11, axis=-1, split=[1, 2, 3], outputs=3),
    node("Split", IMAGE, ints(3, 5), opset=13, axis=1, outputs=2),
    node("Split", IMAGE, opset=18, axis=1, num_outputs=3, outputs=3),
    node("Squeeze", counted(1, 3, 1), opset=7, axes=[0]),
    node("Squeeze", counted(1, 3, 1), opset=12, axes=[-1, 0]),
    node("Squeeze", counted(1, 3, 1), opset=13),
    node("Unsqueeze", counted(3, 4), opset=7, axes=[0, 3]),
    node("Unsqueeze", counted(3, 4), opset=11, axes=[-1, -3]),
    node("Unsqueeze", counted(3, 4), ints(-1, 0), opset=13),
    node("Pad", IMAGE, opset=7, pads=[0, 0, 1, 2, 0, 1, 0, 3], value=2.5),
    node("Pad", IMAGE, opset=7, pads=[0, 0, 1, 2, 0, 1, 0, 3], mode="edge"),
    node("Pad", IMAGE, ints(0, 0, 1, 2, 0, 0, 3, 5), scalar(-7, "float32"), opset=11),
    node("Pad", counted(2, 3, dtype="int8"), ints(1, 2), np.array([9], np.int8), ints(-1), opset=18),
    node("Pad", IMAGE, ints(0, 0, 3, 2, 0, 0, 3, 5), opset=13, mode="reflect"),
    node("Pad", IMAGE, ints(0, 0, 7, 2, 0, 0, 3, 13), opset=19, mode="wrap"),
    node("Upsample", IMAGE, np.array([1, 1, 2, 3], np.float32), opset=9, mode="nearest"),
    node("Expand", counted(3, 1), ints(2, 1, 6), opset=8),
    node("Expand", counted(3, 4), ints(3, 1), opset=13),
    node("Tile", counted(2, 3), ints(2, 1), opset=7),
    node("Gather", IMAGE, ints(1, 3, 0), opset=7, axis=1),
    node("Gather", IMAGE, np.array([[-1, 2], [0, -3]], np.int32), opset=13, axis=-1),
    node("Gather", IMAGE, scalar(-2, "int64"), opset=11, axis=2),
    node("ScatterElements", counted(3, 3), np.array([[1, -1, 2]]), counted(1, 3), opset=11, axis=1),
    node("ScatterND", counted(4, 2), np.array([[1], [3]]), counted(2, 2), opset=11),
    node("GatherND", IMAGE, np.array([[1, 3], [0, -1]]), opset=11),
    node("GatherND", IMAGE, np.array([[[1], [3]], [[0], [-1]]]), opset=12, batch_dims=1),
    node("OneHot", ints(3, -1, 9, -4), scalar(4, "float32"), np.array([2, 5], np.int32), opset=9),
    node("OneHot", counted(2, 3), scalar(4, "int64"), np.array([0, 1], np.float32), opset=11, axis=1),
    node("DepthToSpace", IMAGE, opset=7, blocksize=2),
    node("DepthToSpace", IMAGE, opset=11, blocksize=2, mode="CRD"),
    node("SpaceToDepth", IMAGE, opset=7, blocksize=2),
    node("EyeLike", counted(3, 4), opset=9, k=-1, dtype=11),
    *[node("EyeLike", counted(200, 300), opset=9, k=k) for k in (-199, 0, 7)],
    *[node("EyeLike", counted(*shape), opset=9, k=3, dtype=7) for shape in ((5, 4000), (4000, 5))],
    node("Compress", IMAGE, np.array([False, True, True]), opset=9, axis=1),
    node("Compress", counted(2, 3), np.array([False, True, True, False, True]), opset=9),
    node("Shape", IMAGE, opset=7),
    node("Shape", IMAGE, opset=15, start=-3, end=-1),
    node("Size", IMAGE, opset=7),
    node("Range", scalar(1, "float32"), scalar(2, "float32"), scalar(0.25, "float32"), opset=11),
    node("Range", scalar(3, "int64"), scalar(20001, "int64"), scalar(2, "int64"), opset=11),
    node("Range", scalar(5, "float64"), scalar(-9000, "float64"), scalar(-0.3, "float64"), opset=11),
    *[
        node("Range", *(scalar(number, kind) for number in numbers), opset=11)
        for kind, numbers in (
            ("int16", (-20000, 20480, 1)),
            ("int32", (2**31 - 1, -(2**31), -100003)),
            ("float32", (-7, 30000, 1)),
            ("float32", (0.1, 2000, 0.1)),
            ("float32", (2**24 - 50, 2**24 + 20000, 1)),
        )
    ],
    node("ConstantOfShape", ints(2, 0, 3), opset=9),
    node("ReverseSequence", counted(4, 3), ints(0, 4, 2), opset=10),
    node("Flatten", IMAGE, opset=11, axis=-1),
    node("Flatten", IMAGE, opset=9, axis=0),
    node("Reshape", IMAGE, ints(0, -1, 3), opset=7),
    node("Reshape", np.zeros((0, 3), np.float32), ints(3, 0), opset=14, allowzero=1),
    node("Trilu", counted(3, 4), scalar(-1, "int64"), opset=14, upper=0),
    node("NonZero", np.array([[1, 0], [1, 1]], np.float32), opset=9),
    node("Unique", np.array([2, 1, 2, 3], np.float32), opset=11, sorted=0, outputs=4),
]


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: f"{case.kind}-{case.opset}")
def test_version_against_reference(case: SingleNode) -> None:
    assert_equal(case.by_us(), case.by_reference())


FLEXIBLE: list[Callable[[np.ndarray], SingleNode]] = [
    lambda x: node("Slice", x, ints(2), ints(-9), ints(1), ints(-1), opset=13),
    lambda x: node("Pad", x, ints(1, 0, 0, 2), x[0, 0], opset=21),
    lambda x: node("Pad", x, ints(1, 0, 0, 2), opset=21, mode="edge"),
    lambda x: node("Concat", x, x, opset=13, axis=1),
    lambda x: node("Transpose", x, opset=13),
    lambda x: node("Expand", x, ints(2, 2, 3), opset=13),
    lambda x: node("Tile", x, ints(2, 2), opset=13),
    lambda x: node("Gather", x, ints(1, 0, 1), opset=13, axis=1),
    lambda x: node("GatherElements", x, np.array([[0, -1], [2, 1]]), opset=13, axis=1),
    lambda x: node("GatherND", x, np.array([[1, 2]]), opset=13),
    lambda x: node("ScatterElements", x, np.array([[0, 2]]), x[:1, :2], opset=18, axis=1),
    lambda x: node("ScatterND", x, np.array([[1, 2]]), x[0, 1:2], opset=18),
    lambda x: node("Resize", x, None, None, ints(4, 3), opset=19),
    lambda x: node("Trilu", x, opset=14),
    lambda x: node("OneHot", ints(1, 0), scalar(3, "int64"), x[0, :2], opset=11),
    lambda x: node("Where", x > 2, x, x[:, :1], opset=9),
]
"""Nodes for operands of any element type."""

INTEGERS = [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)]
DTYPES = ["float32", "float64", "float16", "bool", *INTEGERS]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", FLEXIBLE, ids=lambda make: make(counted(2, 3)).kind)
def test_every_element_type(make: Callable[[np.ndarray], SingleNode], dtype: str) -> None:
    x = (counted(2, 3) * (5 if dtype.startswith(("u", "f")) else -5)).astype(dtype)
    case = make(x)
    if dtype == "bool" and case.kind in ("OneHot", "Resize"):
        pytest.skip("the reference computes with the values, which numpy refuses for truth values")
    assert_equal(case.by_us(), case.by_reference())


SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@settings(max_examples=examples(60))
@given(shape=SHAPES, data=st.data())
def test_slices(shape: list[int], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(-len(shape), len(shape) - 1), unique_by=lambda axis: axis % len(shape)))
    bound, step = st.integers(-6, 6), st.integers(-3, 3).filter(bool)
    operands = [ints(*(data.draw(kind) for _ in axes)) for kind in (bound, bound, step)]
    case = node("Slice", counted(*shape), operands[0], operands[1], ints(*axes), operands[2], opset=13)
    # ONNX's reference slices as numpy does, which the standard does not where a start lies in front of the axis.
    assert_equal(case.by_us(), case.by_onnxruntime())


@settings(max_examples=examples(60))
@given(shape=SHAPES, mode=st.sampled_from(["constant", "edge", "reflect", "wrap"]), data=st.data())
def test_pads(shape: list[int], mode: str, data: st.DataObject) -> None:
    pads = [data.draw(st.integers(0, 5)) for _ in range(2 * len(shape))]
    value = scalar(3, "float32") if mode == "constant" else None
    case = node("Pad", counted(*shape), ints(*pads), value, opset=19, mode=mode)
    assert_equal(case.by_us(), case.by_reference())


@settings(max_examples=examples(40))
@given(shape=SHAPES, data=st.data(), reduction=st.sampled_from(["none", "add", "mul", "max", "min"]))
def test_elements_by_index(shape: list[int], data: st.DataObject, reduction: str) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    taken = [data.draw(st.integers(1, size)) for size in shape]
    taken[axis] = data.draw(st.integers(1, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    indices = rng.integers(-shape[axis], shape[axis], taken)
    gathered = node("GatherElements", counted(*shape), indices, opset=13, axis=axis)
    assert_equal(gathered.by_us(), [np.take_along_axis(*aligned(counted(*shape), indices, axis), axis)])
    updates = rng.standard_normal(taken).astype(np.float32)
    scattered = node("ScatterElements", counted(*shape), indices, updates, opset=18, axis=axis, reduction=reduction)
    assert_equal(scattered.by_us(), scattered.by_reference())


def aligned(x: np.ndarray, indices: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The part of `x` that numpy needs, since it wants equal sizes but for the axis."""
    part = [slice(size) for size in indices.shape]
    part[axis] = slice(None)
    return x[tuple(part)], indices


@settings(max_examples=examples(60))
@given(data=st.data())
def test_resizing(data: st.DataObject) -> None:
    draw = data.draw
    shape = [1, *(draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 3))))]
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    rules = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": draw(st.sampled_from(rules))}
    if mode == "nearest":
        words = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        attributes["nearest_mode"] = draw(st.sampled_from(words))
    else:
        attributes |= {"exclude_outside": draw(st.booleans()), "antialias": draw(st.booleans())}
    if draw(st.booleans()):
        sizes = ints(1, *(draw(st.integers(1, 9)) for _ in shape[1:]))
        case = node("Resize", counted(*shape), None, None, sizes, opset=19, **attributes)
    else:
        scales = np.array([1, *(draw(st.sampled_from([0.5, 0.75, 1.0, 1.5, 2.0, 3.0])) for _ in shape[1:])], np.float32)
        if 0 in np.floor(np.array(shape) * scales):
            return
        case = node("Resize", counted(*shape), None, scales, opset=19, **attributes)
    assert_equal(case.by_us(), case.by_reference(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(1, 1, 2, 3), (1, 1, 1.5, 2.3), (1, 1, 0.6, 0.5), (1, 1, 0.6, 2.0)])
@pytest.mark.parametrize(("kind", "opset"), [("Upsample", 9), ("Resize", 10)])
def test_old_resizing_against_onnxruntime(kind: str, opset: int, scales: Sequence[float], mode: str) -> None:
    if kind == "Upsample" and min(scales) < 1:
        pytest.skip("Upsample does not shrink")
    case = node(kind, counted(1, 2, 5, 7), np.array(scales, np.float32), opset=opset, mode=mode)
    fixed = SingleNode(kind, case.operands, opset, case.attributes, constant=(1,))
    assert_equal(fixed.by_us(), case.by_onnxruntime(), atol=1e-5)


@pytest.mark.parametrize("scales", [(1, 1, 2, 3), (1, 1, 0.6, 2.0)])
def test_coordinates_of_tensorflow_against_onnxruntime(scales: Sequence[float]) -> None:
    attributes: dict[str, Any] = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}
    operands = [counted(1, 2, 5, 7), np.zeros(0, np.float32), np.array(scales, np.float32)]
    fixed = SingleNode("Resize", operands, 11, attributes, constant=(1, 2))
    assert_equal(fixed.by_us(), SingleNode("Resize", operands, 11, attributes).by_onnxruntime())
    later = SingleNode("Resize", operands, 19, attributes, constant=(1, 2))
    with pytest.warns(GlowWarning, match="opset 19 has no coordinates 'tf_half_pixel_for_nn'"):
        found = later.by_us()
    assert_equal(found, SingleNode("Resize", operands, 19, attributes).by_onnxruntime())


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("kind", ["Range", "EyeLike"])
def test_long_numbers_that_nodes_read_are_constants(kind: str, is_read: bool) -> None:
    """Only what is returned as it is takes less time to compute than to copy; nodes on constants can be folded."""
    bounds = {"Range": (ints(0), ints(20000), ints(1)), "EyeLike": (counted(200, 300),)}[kind]
    weights = [numpy_helper.from_array(bound.squeeze(), f"w{number}") for number, bound in enumerate(bounds)]
    names = " ".join(each.name for each in weights)
    nodes = [make_node(kind, names, "y"), *([make_node("Neg", "y", "z")] if is_read else [])]
    module = import_model(model_of(nodes, [], ["z" if is_read else "y"], weights))
    assert any(isinstance(op, ConcatOp) for op in module.walk()) == (not is_read)


def test_scatter_against_onnxruntime() -> None:
    case = node("Scatter", counted(3, 3), np.array([[1, 0, 2]]), counted(1, 3), opset=9, axis=0)
    assert_equal(case.by_us(), case.by_onnxruntime())


def test_negative_pads_cut_off() -> None:
    (cropped,) = node("Pad", IMAGE, opset=10, pads=[0, 0, 1, -1, 0, -2, 0, 3]).by_us()
    assert_equal([cropped], [np.pad(IMAGE[:, :-2, :, 1:], [(0, 0), (0, 0), (1, 0), (0, 3)])])


def test_a_run_time_operand_that_fixes_no_shape_is_accepted() -> None:
    for case in (
        SingleNode("Pad", [counted(2, 3), ints(1, 1, 0, 0), scalar(4, "float32")], 13, constant=(1,)),
        SingleNode("Trilu", [counted(3, 4), scalar(1, "int64")], 14),
        SingleNode("OneHot", [ints(1, 2), scalar(3, "int64"), counted(2)], 11, constant=(1,)),
        SingleNode("Gather", [counted(3, 4), ints(-1)], 13),
    ):
        assert_equal(case.by_us(), case.by_reference())


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (SingleNode("Reshape", [counted(2, 3), ints(6)], 13), "the shape of Reshape depends on an input"),
        (SingleNode("Slice", [counted(2, 3), ints(0), ints(1)], 13), "the start of Slice depends on an input"),
        (SingleNode("Tile", [counted(2, 3), ints(1, 1)], 13), "the number of copies of Tile depends on an input"),
        (SingleNode("Split", [counted(2, 3), ints(1, 1)], 13, outputs=2), "the sizes of Split depends on an input"),
    ],
    ids=lambda item: item.kind if isinstance(item, SingleNode) else "",
)
def test_a_run_time_operand_that_fixes_a_shape_is_refused(case: SingleNode, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        case.by_us()


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (node("Reshape", counted(2, 3), ints(4), opset=13), "4 elements, the input 6"),
        (node("Squeeze", counted(2, 3), ints(0), opset=13), "axis 0 has size 2, not 1"),
        (node("Unsqueeze", counted(2, 3), ints(0, 0), opset=13), "name an axis twice"),
        (node("Transpose", counted(2, 3), opset=13, perm=[0, 0]), "is no permutation of 2 axes"),
        (node("Gather", counted(2, 3), ints(0), opset=13, axis=2), "axis 2 is out of range for rank 2"),
        (node("Split", counted(2, 3), ints(1, 5), opset=13, outputs=2), "do not make up 2 elements"),
        (node("Split", counted(3), ints(1, 1, 1), opset=13, outputs=2), "2 outputs cannot take 3 parts"),
        (node("Split", counted(3), opset=11, split=[1, 2], outputs=3), "3 outputs cannot take 2 parts"),
        (node("Pad", counted(2, 3), ints(-1, -2, -2, 0), opset=13), "cuts off more than"),
        (node("Expand", counted(2, 3), ints(2, 4), opset=13), "do not broadcast"),
        (node("Concat", counted(2, 3), counted(3, 2), opset=13, axis=0), "differ outside axis 0"),
        (node("ScatterND", counted(4), np.array([[1]]), counted(2), opset=18), r"updates must have shape \(1,\)"),
    ],
    ids=lambda item: item.kind if isinstance(item, SingleNode) else "",
)
def test_a_contradictory_node_is_refused(case: SingleNode, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        case.by_us()
