"""Special functions, normalization, einsum and quantization of StableHLO and CHLO, against numpy and Python."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from stablehlo_programs import check, results_of, signature_of, type_of

GENERATOR = np.random.default_rng(0)


def each(function: Callable[[float], float], values: np.ndarray) -> np.ndarray:
    """A function of each element."""
    return np.array([function(value) for value in values.tolist()]).astype(values.dtype)


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "erfc": math.erfc,
    "lgamma": math.lgamma,
    "square": lambda x: x * x,
    "digamma": lambda x: (math.lgamma(x + 1e-5) - math.lgamma(x - 1e-5)) / 2e-5,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_chlo(name: str) -> None:
    values = np.linspace(0.3, 6.0, 20).astype(np.float32)
    body = f'%r = "chlo.{name}"(%0) : {signature_of([values], [values])}'
    check(body, [values], [each(FUNCTIONS[name], values)], 2e-5)


def test_digamma_at_poles_and_infinity() -> None:
    values = np.array([0.0, -0.0, -1.0, np.inf, np.nan, 1.0])
    expected = np.array([np.nan, np.nan, np.nan, np.inf, np.nan, -0.5772156649015329])
    check(f'%r = "chlo.digamma"(%0) : {signature_of([values], [values])}', [values], [expected], 1e-12)


@pytest.mark.parametrize("name", ["sign", "round_nearest_afz"])
def test_zeros_keep_their_sign(name: str) -> None:
    values = np.array([0.0, -0.0, -0.4, 1.0, -1.0, np.nan], np.float32)
    expected = np.array([0.0, -0.0, -1.0 if name == "sign" else -0.0, 1.0, -1.0, np.nan], np.float32)
    (found,) = results_of(f"%r = stablehlo.{name} %0 : {type_of(values)}", [values], [values])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[:5]), np.signbit(expected[:5]))


def test_the_inverse_of_the_error_function() -> None:
    expected = np.linspace(-2.5, 2.5, 11)
    values = each(math.erf, expected)
    check(f'%r = "chlo.erf_inv"(%0) : {signature_of([values], [values])}', [values], [expected], 1e-9)


def test_zeta_and_derivatives_of_digamma() -> None:
    order, values = np.array([1.0, 2.0, 3.0, 1.0]), np.array([1.0, 1.0, 1.0, 0.5])
    zeta_3 = 1.2020569031595942
    expected = np.array([math.pi**2 / 6, -2 * zeta_3, math.pi**4 / 15, math.pi**2 / 2])
    body = f'%r = "chlo.polygamma"(%0, %1) : {signature_of([order, values], [expected])}'
    check(body, [order, values], [expected], 1e-10)
    body = f'%r = "chlo.zeta"(%0, %1) : {signature_of([order, values], [expected])}'
    powers = np.array([2.0, 3.0, 1.0, 0.5])
    check(body, [powers, values], [np.array([math.pi**2 / 6, zeta_3, math.inf, math.nan])], 1e-10)


def test_angles_in_all_quadrants_and_with_signs_of_zero() -> None:
    y = np.array([1, 1, -1, -1, 0.0, -0.0, 0.0, -0.0, np.inf, 1, np.nan], np.float32)
    x = np.array([1, -1, 1, -1, 1, 1, -1, -1, -np.inf, np.nan, 1], np.float32)
    check(f"%r = stablehlo.atan2 %0, %1 : {type_of(y)}", [y, x], [np.arctan2(y, x)], 1e-6)


def test_operands_of_chlo_broadcast_by_their_last_axes_or_by_named_ones() -> None:
    left, right = GENERATOR.standard_normal((3, 4)), GENERATOR.standard_normal(3)
    body = f"""%r = "chlo.broadcast_subtract"(%0, %1) <{{broadcast_dimensions = array<i64: 0>}}>
 : {signature_of([left, right], [left])}"""
    check(body, [left, right], [left - right[:, None]])
    last = GENERATOR.standard_normal(4)
    body = f"""%r = "chlo.broadcast_compare"(%0, %1) <{{comparison_direction = #chlo<comparison_direction GT>}}>
 : {signature_of([left, last], [left > last])}"""
    check(body, [left, last], [left > last])


BATCH, GRADIENT = (GENERATOR.standard_normal((4, 3, 5)) for _ in range(2))
SCALE, OFFSET = GENERATOR.standard_normal((2, 3))
MEAN, VARIANCE = BATCH.mean((0, 2)), BATCH.var((0, 2))
PROPERTIES = "<{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>"


def along(vector: np.ndarray) -> np.ndarray:
    """A vector along the axis of the features."""
    return vector.reshape(1, 3, 1)


NORMALIZED = (BATCH - along(MEAN)) / np.sqrt(along(VARIANCE) + 1e-3)


def test_normalization_of_batches_for_inference() -> None:
    operands = [BATCH, SCALE, OFFSET, MEAN, VARIANCE]
    body = f"""%r = "stablehlo.batch_norm_inference"(%0, %1, %2, %3, %4) {PROPERTIES}
 : {signature_of(operands, [BATCH])}"""
    check(body, operands, [NORMALIZED * along(SCALE) + along(OFFSET)], 1e-6)


def test_normalization_of_batches_for_training() -> None:
    operands, expected = [BATCH, SCALE, OFFSET], [NORMALIZED * along(SCALE) + along(OFFSET), MEAN, VARIANCE]
    body = f"""%r:3 = "stablehlo.batch_norm_training"(%0, %1, %2) {PROPERTIES} : {signature_of(operands, expected)}"""
    check(body, operands, expected, 1e-6)


def test_the_gradient_of_normalization() -> None:
    of_scale, of_offset = (GRADIENT * NORMALIZED).sum((0, 2)), GRADIENT.sum((0, 2))
    shared = (along(of_offset) + NORMALIZED * along(of_scale)) / 20
    of_batch = (GRADIENT - shared) * along(SCALE / np.sqrt(VARIANCE + 1e-3))
    operands, expected = [BATCH, SCALE, MEAN, VARIANCE, GRADIENT], [of_batch, of_scale, of_offset]
    body = f"""%r:3 = "stablehlo.batch_norm_grad"(%0, %1, %2, %3, %4) {PROPERTIES}
 : {signature_of(operands, expected)}"""
    check(body, operands, expected, 1e-5)


def test_einsum() -> None:
    left, right = GENERATOR.standard_normal((3, 4)), GENERATOR.standard_normal((4, 5))
    expected = (left @ right).T.copy()
    body = f"""%r = "stablehlo.einsum"(%0, %1) <{{einsum_config = "ab,bc->ca"}}>
 : {signature_of([left, right], [expected])}"""
    check(body, [left, right], [expected], 1e-12)
    body = f"""%r = "stablehlo.unary_einsum"(%0) <{{einsum_config = "ab->b"}}>
 : {signature_of([left], [left.sum(0)])}"""
    check(body, [left], [left.sum(0)], 1e-12)


@pytest.mark.parametrize(
    ("type_", "scales", "zero_points", "limits"),
    [
        ("!quant.uniform<i8:f32, 0.05:3>", [0.05], [3], (-128, 127)),
        ("!quant.uniform<u8:f32:1, {0.05:128, 0.1:127, 0.02:128}>", [0.05, 0.1, 0.02], [128, 127, 128], (0, 255)),
    ],
    ids=["one scale", "a scale for each channel"],
)
def test_quantization(type_: str, scales: list[float], zero_points: list[int], limits: tuple[int, int]) -> None:
    values = (3 * GENERATOR.standard_normal((4, 3))).astype(np.float32)
    scale = np.array(scales, np.float32)
    codes = np.clip(np.round(values / scale) + zero_points, *limits)
    expected = ((codes - zero_points) * scale).astype(np.float32)
    quantized = f"tensor<4x3x{type_}>"
    body = f"""%q = stablehlo.uniform_quantize %0 : ({type_of(values)}) -> {quantized}
%r = stablehlo.uniform_dequantize %q : ({quantized}) -> {type_of(values)}"""
    check(body, [values], [expected], 1e-7)
