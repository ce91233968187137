"""Every elementwise ONNX operator, on every element type it takes, computes what ONNX's reference does."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import defs, helper
from single_node import SingleNode, assert_equal

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.frontends.onnx.operators import elementwise
from glow_mlir.frontends.onnx.operators.operator_map import PLAIN_OPERATORS
from glow_mlir.ir.registry import IMPORTERS

MODULE = elementwise.__name__
NEWEST = defs.onnx_opset_version()
ATTRIBUTES: Mapping[str, tuple[dict[str, Any], ...]] = {
    "BitShift": ({"direction": "LEFT"}, {"direction": "RIGHT"}),
    "Celu": ({}, {"alpha": 2.0}),
    "Elu": ({}, {"alpha": 0.5}),
    "Gelu": ({}, {"approximate": "tanh"}),
    "HardSigmoid": ({}, {"alpha": 0.5, "beta": 0.25}),
    "IsInf": ({}, {"detect_negative": 0}, {"detect_positive": 0}, {"detect_negative": 0, "detect_positive": 0}),
    "LeakyRelu": ({}, {"alpha": 0.3}),
    "Mod": ({}, {"fmod": 1}),
    "Selu": ({}, {"alpha": 2.0, "gamma": 0.5}),
    "Shrink": ({}, {"lambd": 1.5, "bias": 1.5}),
    "Swish": ({}, {"alpha": 0.5}),
    "ThresholdedRelu": ({}, {"alpha": 0.5}),
}
"""Attributes to try; operators that are not listed have none."""
NONE: tuple[dict[str, Any], ...] = ({},)
PLAIN = [row.kind for row in PLAIN_OPERATORS.values() if issubclass(row.operator, Elementwise)]
OPERATORS = [*PLAIN, "BitShift", "Clip", "Max", "Mean", "Min", "Sum", "Swish"]
OPERAND_COUNTS = {"Clip": 3, "Max": 3, "Mean": 3, "Min": 3, "Sum": 3}


def accepted(kind: str) -> list[str]:
    """The element types of ours that the newest version of an operator takes as its first operand."""
    schema = defs.get_schema(kind, NEWEST)
    position = 1 if kind == "Where" else 0
    names = {str(name)[len("tensor(") : -1] for name in schema.inputs[position].types}
    numpy_names = {{"float": "float32", "double": "float64"}.get(name, name) for name in names}
    # tests/codegen/test_bfloat16.py compares bfloat16, for which the reference rounds otherwise.
    return sorted(numpy_names & set(ELEMENT_TYPES) - {"bfloat16"})


CASES = [
    pytest.param(kind, element, attributes, id="-".join([kind, element, *map(str, attributes.values())]))
    for kind in OPERATORS
    for element in accepted(kind)
    for attributes in ATTRIBUTES.get(kind, NONE)
]


def sample(rng: np.random.Generator, element: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values of an element type: random ones, and all special ones in random places."""
    dtype = np.dtype(element)
    size = int(np.prod(shape))
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "f":
        tiny = np.finfo(dtype).smallest_subnormal
        special = np.array(
            [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 1.0, -1.0, tiny, 80.0, -80.0], dtype
        )
        values = (rng.standard_normal(size) * 3).astype(dtype)
    else:
        info = np.iinfo(dtype)
        special = np.array([info.min, info.max, 0, 1, info.max // 2], dtype)
        values = rng.integers(max(info.min, -9), 10, size).astype(dtype)
    places = rng.choice(size, min(size // 2, special.size), replace=False)
    values[places] = rng.permutation(special)[: places.size]
    return values.reshape(shape)


def operands_of(kind: str, element: str, rng: np.random.Generator) -> list[np.ndarray]:
    if kind == "PRelu":
        return [sample(rng, element, (2, 5, 7)), sample(rng, element, (5, 1))]
    if kind == "Clip":
        low, high = sorted(rng.integers(0, 5, 2))
        return [sample(rng, element, (6, 7)), np.array(low, element), np.array(high, element)]
    if kind == "Where":
        return [rng.random((5, 1, 3)) < 0.5, sample(rng, element, (7, 3)), sample(rng, element, (5, 7, 1))]
    if kind == "BitShift":
        values = sample(rng, element, (6, 7))
        return [values, rng.integers(0, values.dtype.itemsize * 8 + 2, (7,)).astype(element)]
    if kind == "Pow":
        left, right = sample(rng, element, (5, 1, 7)), sample(rng, element, (4, 1))
        # Numpy refuses to raise integers to negative powers; a test below says what we do.
        return [left, right if left.dtype.kind == "f" else np.maximum(right, 0)]
    if kind == "Shrink" and np.dtype(element).itemsize == 8:
        # Beyond 2⁵³ the result does not fit f64, and what the reference then does is luck.
        return [np.clip(sample(rng, element, (6, 8)), 0 if element[0] == "u" else -(2**53), 2**53)]
    if kind == "Mean":
        # The reference adds in place, so that its first operand has to have the shape of the result.
        return [sample(rng, element, shape) for shape in ((5, 4, 7), (4, 1), (5, 1, 7))]
    count = OPERAND_COUNTS.get(kind) or len(defs.get_schema(kind, NEWEST).inputs)
    shapes = [(5, 1, 7), (4, 1), (5, 4, 7)][:count] if count > 1 else [(6, 8)]
    return [sample(rng, element, shape) for shape in shapes]


@pytest.mark.parametrize(("kind", "element", "attributes"), CASES)
def test_operator(kind: str, element: str, attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(zlib.crc32(f"{kind} {element}".encode()))
    node = SingleNode(kind, operands_of(kind, element, rng), NEWEST, attributes)
    # Every step of an operator rounds to its type, the reference rounds now and then in a wider one.
    half = element == "float16"
    assert_equal(node.by_us(), node.by_reference(), rtol=2e-2 if half else 1e-5, atol=1e-3 if half else 1e-6)


def test_all_elementwise_importers_are_covered() -> None:
    elsewhere = {"BitCast", "Cast", "CastLike"}
    found = {name for (_, name, _), importer in IMPORTERS.all().items() if importer.__module__ == MODULE}
    assert found | set(PLAIN) == set(OPERATORS) | elsewhere


def test_integers_to_negative_powers_are_reciprocals_truncated() -> None:
    base = np.array([2, 1, -1, -1, 0, -3], np.int32)
    node = SingleNode("Pow", [base, np.array([-1, -5, -3, -2, -1, -1], np.int32)], NEWEST)
    assert_equal(node.by_us(), [np.array([0, 1, -1, 1, 0, 0], np.int32)])


@pytest.mark.parametrize("exponent", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("base", ["float32", "float64", "int32", "int64"])
def test_powers_of_mixed_types(base: str, exponent: str) -> None:
    left, right = np.array([1, 2, 3, 7], base), np.array([0, 1, 2, 3], exponent)
    node = SingleNode("Pow", [left, right], NEWEST)
    assert_equal(node.by_us(), node.by_reference())


ELEMENTS = [
    "bool",
    "float16",
    "float32",
    "float64",
    "int16",
    "int32",
    "int64",
    "int8",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]


@pytest.mark.parametrize("source", ELEMENTS)
@pytest.mark.parametrize("wanted", ELEMENTS)
def test_casts(source: str, wanted: str) -> None:
    dtype = np.dtype(wanted)
    low, high = (0, 100) if "u" in wanted or "u" in source or "bool" in (source, wanted) else (-100, 100)
    values = (np.linspace(low, high, 41) * (1 if dtype.kind == "f" else 0.97)).astype(source)
    node = SingleNode("Cast", [values], 21, {"to": helper.np_dtype_to_tensor_dtype(dtype)})
    assert_equal(node.by_us(), [values.astype(dtype)])


@pytest.mark.parametrize("wanted", ["int8", "int32", "int64", "uint8", "uint16", "uint64"])
def test_casts_from_float_saturate(wanted: str) -> None:
    # ONNX leaves it open what becomes of values that do not fit.
    info = np.iinfo(wanted)
    values = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -0.9, 0.9], np.float32)
    node = SingleNode("Cast", [values], 21, {"to": helper.np_dtype_to_tensor_dtype(np.dtype(wanted))})
    assert_equal(node.by_us(), [np.array([0, info.max, info.min, info.max, info.min, 0, 0], wanted)])


def test_casts_between_integers_wrap() -> None:
    values = np.array([-1, 300, -300, 2**31 - 1], np.int32)
    for target in ("int8", "uint8", "uint32", "int64", "uint64"):
        node = SingleNode("Cast", [values], 21, {"to": helper.np_dtype_to_tensor_dtype(np.dtype(target))})
        assert_equal(node.by_us(), [values.astype(target)])


def test_cast_like_takes_the_type_of_its_second_operand() -> None:
    node = SingleNode("CastLike", [np.array([1.5, -2.5], np.float32), np.zeros(1, np.int64)], 21)
    assert_equal(node.by_us(), [np.array([1, -2], np.int64)])


def test_division_by_the_integer_zero_is_zero() -> None:
    # ONNX leaves it undefined; the machine must not trap.
    x, y = np.array([5, -5, 0], np.int32), np.zeros(3, np.int32)
    for kind, opset in (("Div", 14), ("Mod", 13)):
        assert_equal(SingleNode(kind, [x, y], opset).by_us(), [np.zeros(3, np.int32)])


def test_the_smallest_integer_divided_by_minus_one_wraps() -> None:
    x, y = np.array([-(2**31)], np.int32), np.array([-1], np.int32)
    assert_equal(SingleNode("Div", [x, y], 14).by_us(), [x])
    assert_equal(SingleNode("Mod", [x, y], 13).by_us(), [np.zeros(1, np.int32)])


def test_limits_of_a_clip_are_attributes_up_to_opset_10() -> None:
    x = np.array([-3, -1, 0, 2, 9, np.nan], np.float32)
    for attributes in ({}, {"min": -1.0}, {"max": 2.0}, {"min": -1.0, "max": 2.0}):
        node = SingleNode("Clip", [x], 7, attributes)
        assert_equal(node.by_us(), node.by_reference())


def test_zeros_and_remainders_keep_their_signs() -> None:
    x, y = np.array([4, -4, 0, -0.0], np.float32), np.array([2, 2, -2, 2], np.float32)
    (floored,) = SingleNode("Mod", [x, y], 28).by_us()
    (truncated,) = SingleNode("Mod", [x, y], 28, {"fmod": 1}).by_us()
    assert np.signbit(floored).tolist() == [False, False, True, False]
    assert np.signbit(truncated).tolist() == np.signbit(np.fmod(x, y)).tolist()
