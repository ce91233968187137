"""Operations of StableHLO on bits, integers, and conversions, against numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from stablehlo_programs import check, signature_of, type_of

INTEGERS = [np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")]


def numbers(dtype: np.dtype[np.integer], count: int = 30) -> np.ndarray:
    """Integers of all sizes, with both limits and small ones."""
    limits = np.iinfo(dtype)
    drawn = np.random.default_rng(0).integers(limits.min, limits.max, count, dtype, endpoint=True)
    return np.concatenate([drawn, np.array([limits.min, limits.max, 0, 1, 2], dtype)])


def one(name: str, *operands: np.ndarray, result: np.ndarray, properties: str = "") -> str:
    """The text of one operation on all arguments."""
    listed = ", ".join(f"%{number}" for number in range(len(operands)))
    return f'%r = "{name}"({listed}) {properties}: {signature_of(operands, [result])}'


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_bits_are_counted(dtype: np.dtype[np.integer]) -> None:
    values, width = numbers(dtype), 8 * dtype.itemsize
    digits = [np.binary_repr(int(value) % (1 << width), width) for value in values]
    ones = np.array([text.count("1") for text in digits], dtype)
    zeros = np.array([len(text) - len(text.lstrip("0")) for text in digits], dtype)
    check(one("stablehlo.popcnt", values, result=ones), [values], [ones])
    check(one("stablehlo.count_leading_zeros", values, result=zeros), [values], [zeros])


@pytest.mark.parametrize("other", ["uint8", "int16", "float32", "float64", "uint64", "float16"])
def test_bits_are_those_of_other_types_with_the_lowest_first(other: str) -> None:
    values = np.random.default_rng(0).integers(0, 1 << 30, (3, 2), np.uint32)
    found = values.view(other)
    size = np.dtype(other).itemsize
    shape = (3, 2, 4 // size) if size < 4 else (3, 2) if size == 4 else (3,)
    expected = found.reshape(shape)
    check(one("stablehlo.bitcast_convert", values, result=expected), [values], [expected])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_divisions_by_zero_and_of_the_smallest_integer_are_those_of_xla(dtype: np.dtype[np.integer]) -> None:
    values = numbers(dtype)
    divisors = np.random.default_rng(1).permutation(values)
    divisors[::3] = 0
    if dtype.kind == "i":
        divisors[1::3] = -1
    quotients, rests = [], []
    for value, divisor in zip(values.tolist(), divisors.tolist(), strict=True):
        size = abs(value) // abs(divisor) if divisor else 0
        quotient = -1 if not divisor else -size if (value < 0) != (divisor < 0) else size
        quotients.append(quotient)
        rests.append(value if not divisor else value - quotient * divisor)
    for name, found in (("divide", quotients), ("remainder", rests)):
        expected = np.array([np.array(item % (1 << 64), np.uint64) for item in found]).astype(dtype)
        check(one(f"stablehlo.{name}", values, divisors, result=expected), [values, divisors], [expected])


def test_a_power_with_a_negative_exponent_is_zero_unless_the_base_is_one() -> None:
    base = np.array([-2, -1, -1, 0, 1, 3, 3, -3, 0], np.int32)
    exponent = np.array([-1, -3, -2, -1, -5, -1, 4, 3, 0], np.int32)
    expected = np.array([0, -1, 1, 0, 1, 0, 81, -27, 1], np.int32)
    check(one("stablehlo.power", base, exponent, result=expected), [base, exponent], [expected])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_the_upper_half_of_products(dtype: np.dtype[np.integer]) -> None:
    left = numbers(dtype)
    right = np.random.default_rng(2).permutation(left)
    products = [int(one) * int(other) >> 8 * dtype.itemsize for one, other in zip(left, right, strict=True)]
    expected = np.array(products, dtype)
    check(one("chlo.mulhi", left, right, result=expected), [left, right], [expected])


@pytest.mark.parametrize(("bits", "like"), [((5, 10), np.float16), ((8, 7), ml_dtypes.bfloat16)], ids=["f16", "bf16"])
def test_precision_is_reduced_to_that_of_other_types(bits: tuple[int, int], like: type) -> None:
    values = np.array([1.0, -1.0009, 3.14159, 65519.0, 65521.0, 1e-3, -0.0, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(over="ignore"):
        expected = values.astype(like).astype(np.float32)
    properties = f"<{{exponent_bits = {bits[0]} : i32, mantissa_bits = {bits[1]} : i32}}> "
    body = one("stablehlo.reduce_precision", values, result=expected, properties=properties)
    check(body, [values], [expected])


@pytest.mark.parametrize(("element", "low", "high"), [("i4", -8, 7), ("ui4", 0, 15)])
def test_floats_saturate_in_integers_of_four_bits(element: str, low: int, high: int) -> None:
    values = np.array([-300.0, -8.6, -1.5, 0.9, 7.9, 16.0, 1e9, np.nan], np.float32)
    expected = np.clip(np.trunc(np.nan_to_num(values)), low, high).astype(np.float32) + np.float32(0)
    narrow = f"tensor<{values.size}x{element}>"
    body = f"""%n = stablehlo.convert %0 : ({type_of(values)}) -> {narrow}
%r = stablehlo.convert %n : ({narrow}) -> {type_of(values)}"""
    check(body, [values], [expected])


def test_the_next_float_in_the_direction_of_another() -> None:
    values = np.array([1.0, 1.0, 0.0, -0.0, np.inf, 1e-45, 2.0, np.nan], np.float32)
    targets = np.array([2.0, 0.0, 1.0, -1.0, 0.0, 0.0, 2.0, 1.0], np.float32)
    expected = np.nextafter(values, targets)
    check(one("chlo.next_after", values, targets, result=expected), [values, targets], [expected])
