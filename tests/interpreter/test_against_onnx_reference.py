"""Reductions, normalization and transposed convolution compute what ONNX's reference implementation does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import defs
from single_node import SingleNode, assert_equal

NEWEST = defs.onnx_opset_version()
REDUCTIONS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
AXES_ARE_OPERAND: dict[str, int] = {"Sum": 13}
"""The opset version from which on a reduction takes its axes as an operand, if not 18."""

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def axes_of(data: st.DataObject, rank: int) -> list[int]:
    """Some axes, each counted from either side."""
    chosen = data.draw(st.sets(st.integers(0, rank - 1), min_size=1))
    return [axis - rank if data.draw(st.booleans()) else axis for axis in sorted(chosen)]


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Random numbers, none of which is near zero or large."""
    values = np.random.default_rng(seed).uniform(1, 3, shape)
    return (values * (1 if dtype[0] == "f" else 2)).astype(dtype)


@settings(max_examples=examples(100))
@given(
    data=st.data(),
    name=st.sampled_from(REDUCTIONS),
    shape=shapes,
    dtype=st.sampled_from(["float32", "float64", "int32", "int64"]),
    opset=st.sampled_from([7, 11, 13, 18, 20, NEWEST]),
    keepdims=st.booleans(),
)
def test_reductions(
    data: st.DataObject, name: str, shape: tuple[int, ...], dtype: str, opset: int, keepdims: bool
) -> None:
    if name.startswith("Log"):
        # The reference refuses integers here, though opset 18 still lists them.
        dtype = {"int32": "float32", "int64": "float64"}.get(dtype, dtype)
    attributes: dict[str, Any] = {"keepdims": int(keepdims)}
    axes = axes_of(data, len(shape)) if data.draw(st.booleans()) else None
    operands = [numbers(shape, dtype)]
    if opset >= AXES_ARE_OPERAND.get(name, 18):
        if axes is None:
            attributes["noop_with_empty_axes"] = int(data.draw(st.booleans()))
        else:
            operands.append(np.array(axes, np.int64))
    elif axes is not None:
        # Before opset 11 an axis counted from the back is not allowed, though we take it.
        attributes["axes"] = [axis % len(shape) for axis in axes]
    node = SingleNode(f"Reduce{name}", operands, opset, attributes, constant=(1,))
    # Of integers the reference gives 64-bit sums, and means as floats.
    assert_equal(node.by_us(), [result.astype(dtype) for result in node.by_reference()])


@settings(max_examples=examples(60))
@given(
    data=st.data(),
    kind=st.sampled_from(["CumSum", "CumProd"]),
    shape=shapes,
    dtype=st.sampled_from(["float32", "float64", "int32", "int64"]),
    exclusive=st.booleans(),
    reverse=st.booleans(),
)
def test_running_totals(
    data: st.DataObject, kind: str, shape: tuple[int, ...], dtype: str, exclusive: bool, reverse: bool
) -> None:
    axis = np.array(data.draw(st.integers(-len(shape), len(shape) - 1)), np.int64)
    attributes = {"exclusive": int(exclusive), "reverse": int(reverse)}
    x = numbers(shape, dtype)
    node = SingleNode(kind, [x, axis], 26, attributes, constant=(1,))
    assert_equal(node.by_us(), node.by_reference())


def test_the_first_of_equal_elements_comes_first() -> None:
    x = np.array([1, 3, 3, 1, 3], np.float32)
    for largest, wanted in ((1, [1, 2, 4, 0]), (0, [0, 3, 1, 2])):
        node = SingleNode("TopK", [x, np.array([4])], 11, {"largest": largest}, outputs=2, constant=(1,))
        assert node.by_us()[1].tolist() == wanted


def test_nan_is_an_extreme() -> None:
    x = np.array([1, np.nan, 3, np.nan], np.float32)
    assert SingleNode("ArgMax", [x], 13).by_us()[0].tolist() == [1]
    assert SingleNode("ArgMin", [x], 13, {"select_last_index": 1}).by_us()[0].tolist() == [3]
    assert np.isnan(SingleNode("ReduceMax", [x], 13).by_us()[0])
    assert np.isnan(SingleNode("ReduceMin", [x], 13).by_us()[0])


def test_integer_means_truncate() -> None:
    x = np.array([[-1, -2], [1, 2]], np.int32)
    node = SingleNode("ReduceMean", [x], 13, {"axes": [1], "keepdims": 0})
    assert node.by_us()[0].tolist() == [-1, 1]


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax", "Hardmax"])
@settings(max_examples=examples(30))
@given(data=st.data(), shape=shapes, opset=st.sampled_from([7, 11, 12, 13, 21]))
def test_softmax_and_its_kin(kind: str, data: st.DataObject, shape: tuple[int, ...], opset: int) -> None:
    axis = data.draw(st.integers(0 if opset < 11 else -len(shape), len(shape) - 1))
    x = np.random.default_rng(3).standard_normal(shape, np.float32)
    node = SingleNode(kind, [x], opset, {"axis": axis})
    # The reference has no form for opsets below 13, where all axes from the given one on are one.
    assert_equal(node.by_us(), node.by_reference() if opset >= 13 else node.by_onnxruntime())


def test_softmax_does_not_overflow() -> None:
    x = np.array([[1e30, 1e30, 0], [-1e30, -1e30, -np.inf], [500, 499, 0]], np.float32)
    node = SingleNode("Softmax", [x], 13)
    assert_equal(node.by_us(), node.by_reference())
    # The reference takes the logarithm of numbers that are already 0.
    (logarithms,) = SingleNode("LogSoftmax", [x], 13).by_us()
    assert_equal([logarithms[2]], [np.array([-0.3132617, -1.3132617, -500.3132617], np.float32)])


@settings(max_examples=examples(40))
@given(data=st.data(), shape=shapes, bias=st.booleans(), outputs=st.sampled_from([1, 2, 3]))
def test_layer_normalization(data: st.DataObject, shape: tuple[int, ...], bias: bool, outputs: int) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    inner = shape[axis % len(shape) :]
    operands = [numbers(shape), numbers(inner, seed=4), *([numbers(inner, seed=5)] if bias else [])]
    node = SingleNode("LayerNormalization", operands, 17, {"axis": axis, "epsilon": 0.01}, outputs)
    assert_equal(node.by_us(), node.by_reference()[:outputs], rtol=1e-4, atol=1e-4)


REFERENCE_IS_WRONG = {
    ("BatchNormalization", 7): "it fails with an internal error",
    ("BatchNormalization", 9): "it takes the statistics of the batch, as in training",
    ("GlobalLpPool", 7): "there is none",
}
"""Operators, by opset version, that onnxruntime checks instead."""
IMAGE = (6, 6, 3, 4)
"""As many images as channels: the reference of LRN confuses the two."""
CHANNELS = [numbers((6,), seed=6), numbers((6,), seed=7), numbers((6,), seed=8), numbers((6,), seed=9)]


@pytest.mark.parametrize(
    ("kind", "operands", "opset", "attributes"),
    [
        ("BatchNormalization", CHANNELS, 7, {}),
        ("BatchNormalization", CHANNELS, 9, {"epsilon": 0.1}),
        ("BatchNormalization", CHANNELS, 15, {}),
        ("InstanceNormalization", CHANNELS[:2], 7, {"epsilon": 0.1}),
        ("GroupNormalization", CHANNELS[:2], 21, {"num_groups": 3}),
        ("GroupNormalization", CHANNELS[:2], NEWEST, {"num_groups": 6, "epsilon": 0.1}),
        ("LRN", [], 7, {"size": 3}),
        ("LRN", [], 13, {"size": 4, "alpha": 0.5, "beta": 0.6, "bias": 2.0}),
        ("LRN", [], 13, {"size": 13, "alpha": 0.5}),
        ("LpNormalization", [], 7, {"axis": 1, "p": 1}),
        ("LpNormalization", [], 22, {"axis": -1}),
        ("MeanVarianceNormalization", [], 9, {}),
        ("MeanVarianceNormalization", [], 13, {"axes": [1, 2]}),
        ("GlobalAveragePool", [], 7, {}),
        ("GlobalMaxPool", [], 22, {}),
        ("GlobalLpPool", [], 7, {"p": 1}),
        ("GlobalLpPool", [], 7, {"p": 3}),
        ("Dropout", [], 7, {"ratio": 0.3}),
        ("Dropout", [], 12, {}),
    ],
)
def test_normalization(kind: str, operands: list[np.ndarray], opset: int, attributes: dict[str, Any]) -> None:
    node = SingleNode(kind, [numbers(IMAGE), *operands], opset, attributes)
    wanted = node.by_onnxruntime() if (kind, opset) in REFERENCE_IS_WRONG else node.by_reference()
    assert_equal(node.by_us(), wanted, rtol=1e-4, atol=1e-4)


def test_group_normalization_of_opset_18_has_a_scale_for_each_group() -> None:
    x, scale, bias = numbers(IMAGE), numbers((3,), seed=1), numbers((3,), seed=2)
    old = SingleNode("GroupNormalization", [x, scale, bias], 18, {"num_groups": 3})
    new = SingleNode("GroupNormalization", [x, scale.repeat(2), bias.repeat(2)], 21, {"num_groups": 3})
    assert_equal(old.by_us(), new.by_us())


def test_what_has_no_norm_stays_zero() -> None:
    x = np.array([[0, 0], [3, 4]], np.float32)
    assert_equal(SingleNode("LpNormalization", [x], 7).by_us(), [np.array([[0, 0], [0.6, 0.8]], np.float32)])


@pytest.mark.parametrize(("opset", "mask"), [(7, np.float32), (10, np.bool_), (13, np.bool_)])
def test_a_dropout_drops_nothing(opset: int, mask: type[np.generic]) -> None:
    x = numbers(IMAGE)
    node = SingleNode("Dropout", [x], opset, outputs=2)
    assert_equal(node.by_us(), [x, np.ones(IMAGE, mask)])


@settings(max_examples=examples(60))
@given(data=st.data())
def test_transposed_convolution(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))

    def each(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in range(rank)]

    size, kernel, strides, dilations = each(1, 3), each(1, 3), each(1, 3), each(1, 2)
    group, channels, outputs = data.draw(st.sampled_from([(1, 2, 3), (2, 4, 2)]))
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": group}
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(size, strides, kernel, dilations, strict=True)]
    mode = data.draw(st.sampled_from(["pads", "SAME_UPPER", "SAME_LOWER", "VALID", "output_shape"]))
    if mode == "pads":
        # Something has to be left.
        front = [data.draw(st.integers(0, (length - 1) // 2)) for length in reach]
        attributes["pads"] = [*front, *front]
        attributes["output_padding"] = [data.draw(st.integers(0, s - 1)) for s in strides]
    elif mode == "output_shape":
        attributes["output_shape"] = [data.draw(st.integers(1, length)) for length in reach]
    elif mode == "VALID" or all(length >= n * s for length, n, s in zip(reach, size, strides, strict=True)):
        # Where windows leave gaps, SAME would take off less than nothing: runtimes differ.
        attributes["auto_pad"] = mode
    rng = np.random.default_rng(10)
    operands = [
        rng.standard_normal((2, channels, *size), np.float32),
        rng.standard_normal((channels, outputs, *kernel), np.float32),
        rng.standard_normal((outputs * group,), np.float32),
    ]
    node = SingleNode("ConvTranspose", operands, 11, attributes)
    assert_equal(node.by_us(), node.by_onnxruntime(), rtol=1e-4, atol=1e-4)
