"""Scales and zero points: 0 is exact, ends of ranges have codes, powers of two are such."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glow_mlir.dialects.quant import parameters_of
from glow_mlir.options.quantization import SCHEMAS
from glow_mlir.quantization.schemas import NO_SCALE, POWER_OF_TWO, Uniform, uniform_of
from glow_mlir.quantization.weights import quantize_bias, quantize_weights

NUMBERS = st.floats(-(2.0**120), 2.0**120, width=32)
RANGES = st.tuples(NUMBERS, NUMBERS).map(sorted)
BITS = st.sampled_from([8, 16])
WITH_SIGN = [schema for schema in SCHEMAS if schema != "asymmetric"]


@given(schema=st.sampled_from(SCHEMAS), bits=BITS, ends=RANGES)
def test_zero_is_exact_and_ends_are_within_a_step(schema: str, bits: int, ends: list[float]) -> None:
    uniform = uniform_of(schema, bits, *ends)
    assert uniform.least <= uniform.zero_point <= uniform.most
    assert uniform.dequantize(uniform.quantize(np.zeros(1)))[0] == 0.0
    numbers = np.array(ends)
    reached = uniform.dequantize(uniform.quantize(numbers))
    assert (np.abs(reached - numbers) <= uniform.scale * (1 + 1e-6)).all()


@given(schema=st.sampled_from(SCHEMAS), bits=BITS, ends=RANGES)
def test_types_say_the_same_in_f32(schema: str, bits: int, ends: list[float]) -> None:
    uniform = uniform_of(schema, bits, *ends)
    type_ = uniform.type()
    type_.verify()
    assert parameters_of(type_) == (uniform.scale, uniform.zero_point)
    assert (type_.least.data, type_.most.data, type_.storage.width.data) == (uniform.least, uniform.most, bits)
    assert uniform.scale == float(np.float32(uniform.scale))


@given(schema=st.sampled_from(WITH_SIGN), bits=BITS, ends=RANGES)
def test_symmetric_schemas_have_no_zero_point(schema: str, bits: int, ends: list[float]) -> None:
    assert uniform_of(schema, bits, *ends).zero_point == 0


@given(bits=BITS, ends=RANGES)
def test_scales_by_shift_are_the_next_powers_of_two(bits: int, ends: list[float]) -> None:
    plain, found = uniform_of("symmetric", bits, *ends), uniform_of(POWER_OF_TWO, bits, *ends)
    assert math.frexp(found.scale)[0] == 0.5
    assert plain.scale <= found.scale < 2 * plain.scale


@given(bits=BITS, high=st.floats(0, 2.0**60, width=32))
def test_integers_without_a_sign_are_for_what_is_never_negative(bits: int, high: float) -> None:
    schema = "symmetric-with-uint8"
    assert not uniform_of(schema, bits, 0.0, high).is_signed
    assert uniform_of(schema, bits, -1.0, high).is_signed
    assert uniform_of("symmetric", bits, 0.0, high).least == 0


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_has_no_range_has_glow_s_scale(schema: str) -> None:
    plain = schema != POWER_OF_TWO
    assert uniform_of(schema, 8, 0.0, 0.0).scale == (NO_SCALE if plain else 0.125)


def test_the_nudged_zero_point_of_a_known_range() -> None:
    """As Glow's and gemmlowp's rules have it; of f32, the scale is a little more than 2 / 255."""
    assert uniform_of("asymmetric", 8, -1.0, 1.0) == Uniform(8, False, 0, 255, float(np.float32(2 / 255)), 127)
    assert uniform_of("asymmetric", 8, 1.0, 3.0).zero_point == 0
    assert uniform_of("asymmetric", 8, -3.0, -1.0).zero_point == 255


@given(
    seed=st.integers(0, 1000),
    schema=st.sampled_from(SCHEMAS),
    bits=BITS,
    channels=st.integers(1, 5),
    per_channel=st.booleans(),
)
def test_weights_are_within_half_a_step(seed: int, schema: str, bits: int, channels: int, per_channel: bool) -> None:
    generator = np.random.default_rng(seed)
    sizes = generator.exponential(9, (channels, 1, 1))
    weights = (generator.standard_normal((channels, 2, 3)) * sizes).astype(np.float32)
    weights[0] *= generator.integers(0, 2)
    found = quantize_weights(weights, (channels, 1, 1) if per_channel else (), schema, bits)
    most = 2 ** (bits - 1) - 1
    assert found.quantized.dtype == np.dtype(f"int{bits}")
    assert np.abs(found.quantized.astype(int)).max() <= most
    assert found.scales.shape == ((channels, 1, 1) if per_channel else ())
    rounded = np.abs(weights) * 1e-6  # Scales and numbers are f32.
    assert (np.abs(found.numbers() - weights) <= found.scales * 0.5 + rounded).all()
    if schema == POWER_OF_TWO:
        assert set(np.frexp(found.scales[found.scales != np.float32(NO_SCALE)])[0]) <= {0.5}


def test_a_bias_that_does_not_fit_has_a_wider_scale() -> None:
    bias = np.array([1.0, -3.0], np.float32)
    fitting = quantize_bias(bias, np.array([1e-3, 1e-3]), "symmetric", 32)
    np.testing.assert_array_equal(fitting.quantized, [1000, -3000])
    wider = quantize_bias(bias, np.array([1e-12, 1e-12]), "symmetric", 32)
    np.testing.assert_allclose(wider.numbers(), bias, rtol=1e-6)
    np.testing.assert_array_equal(quantize_bias(bias, np.array([1e-3, 1e-3]), "symmetric", 8).quantized, [42, -127])
