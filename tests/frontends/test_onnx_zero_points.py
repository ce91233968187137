"""Products of integers are those of values less their zero points, with any mix of types, zero points and constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from glow_mlir import InferenceSession
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function

Arrays = dict[str, np.ndarray]

TARGETS = ("host", "avx2")


def codes(random: np.random.Generator, *shape: int, low: int = 0, high: int = 256) -> np.ndarray:
    """Values of u8 or i8, by chance, some of which are as far from the middle as possible."""
    kind = random.choice(np.array(["uint8", "int8"]))
    drawn = random.integers(low, high, shape).astype(np.uint8)
    return drawn if kind == "uint8" else (drawn ^ np.uint8(128)).view(np.int8)


def zero_point(random: np.random.Generator, of: np.ndarray, count: int) -> np.ndarray | None:
    """None, one, or one for each of `count` columns."""
    form = random.choice(["none", "middle", "one", "each"])
    if form == "none":
        return None
    if form == "middle":
        return np.asarray(128 if of.dtype == np.uint8 else 0, of.dtype)
    limits = np.iinfo(of.dtype)
    return random.integers(limits.min, limits.max, () if form == "one" else (count,), of.dtype, endpoint=True)


def model_of(
    kind: str, operands: list[np.ndarray | None], inputs: tuple[int, ...], **attributes: Any
) -> tuple[onnx.ModelProto, Arrays]:
    """A model of one operator on operands, of which some are inputs, and the values of these."""
    names = ["" if array is None else f"x{place}" for place, array in enumerate(operands)]
    present = {name: array for name, array in zip(names, operands, strict=True) if array is not None}
    feeds = {f"x{place}": present[f"x{place}"] for place in inputs if f"x{place}" in present}
    node = helper.make_node(kind, names, ["y"], kind, **attributes)
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in feeds.items()
        ],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(array, name) for name, array in present.items() if name not in feeds],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), feeds


def less(array: np.ndarray, zero: np.ndarray | None, line: tuple[int, ...]) -> np.ndarray:
    """Values less their zero points, as i64."""
    offset = np.zeros((), np.int64) if zero is None else zero.astype(np.int64)
    return array.astype(np.int64) - (offset.reshape(line) if offset.ndim else offset)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(24))
def test_a_matrix_product(seed: int, target: str) -> None:
    random = np.random.default_rng(seed)
    rows, depth, columns = (int(random.integers(1, most)) for most in (24, 90, 70))
    batch = (2,) * int(random.integers(2))
    left, right = codes(random, *batch, rows, depth), codes(random, *batch, depth, columns, low=seed % 2 * 90)
    own, other = zero_point(random, left, rows), zero_point(random, right, columns)
    if batch and own is not None and own.ndim:
        own = own[0]
    inputs = [(0,), (0, 1), (0, 2), (0, 1, 2, 3)][seed % 4]
    model, feeds = model_of("MatMulInteger", [left, right, own, other], inputs)
    expected = (less(left, own, (-1, 1)) @ less(right, other, (-1,))).astype(np.int32)
    (found,) = InferenceSession(model, cache=False, target=target).run(None, feeds)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(24))
def test_a_convolution(seed: int, target: str) -> None:
    random = np.random.default_rng(seed)
    groups, depth, each = ((1, 2, 3)[seed % 3], int(random.integers(1, 12)), int(random.integers(1, 20)))
    kernel, stride = int(random.choice([1, 3])), int(random.integers(1, 3))
    image = codes(random, 1, groups * depth, 9, 11)
    filters = codes(random, groups * each, depth, kernel, kernel, low=seed % 2 * 90)
    own, other = zero_point(random, image, 1), zero_point(random, filters, groups * each)
    if own is not None and own.ndim:
        own = own[0]
    inputs = [(0,), (0, 2), (0, 2), (0, 1, 2, 3)][seed % 4]
    window = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": groups}
    model, feeds = model_of("ConvInteger", [image, filters, own, other], inputs, **window)
    wide = [less(image, own, ()), less(filters, other, (-1, 1, 1, 1))]
    plain, given = model_of("Conv", [array.astype(np.float64) for array in wide], (0, 1), **window)
    (sums,) = run_function(import_model(plain), given).values()
    (found,) = InferenceSession(model, cache=False, target=target).run(None, feeds)
    np.testing.assert_array_equal(found, sums.astype(np.int32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("zero", [0, 100, 128, 255])
@pytest.mark.parametrize("kind", ["QLinearMatMul", "QLinearConv"])
def test_a_rounded_product(kind: str, zero: int, target: str) -> None:
    """Scales are powers of two: results are rounded once, to the bit."""
    random, is_matrix = np.random.default_rng(zero), kind == "QLinearMatMul"
    left = random.integers(0, 256, (7, 40) if is_matrix else (1, 5, 8, 9), np.uint8)
    right = random.integers(0, 256, (40, 30) if is_matrix else (17, 5, 3, 3), np.uint8)
    scale, middle = np.float32(0.5), np.asarray(zero, np.uint8)
    operands = [left, scale, np.uint8(117), right, scale, middle, np.float32(1024), np.uint8(99)]
    fields = {} if is_matrix else {"pads": [1, 1, 1, 1], "strides": [1, 2]}
    model, feeds = model_of(kind, [np.asarray(operand) for operand in operands], (0,), **fields)
    (expected,) = run_function(import_model(model), feeds).values()
    (found,) = InferenceSession(model, cache=False, target=target).run(None, feeds)
    np.testing.assert_array_equal(found, expected)
