"""Calibrations against what they promise: least errors among their candidates, and tails that they cut off."""

from __future__ import annotations

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from glow_mlir.options.quantization import CALIBRATIONS, SCHEMAS
from glow_mlir.quantization.calibration import STEPS, calibrated, divergence, mean_squared_error
from glow_mlir.quantization.histogram import Histogram
from glow_mlir.quantization.schemas import Uniform, uniform_of


def histogram_of(numbers: np.ndarray) -> Histogram:
    """The histogram of an array."""
    histogram = Histogram()
    histogram.add(numbers)
    return histogram


def reach(uniform: Uniform) -> float:
    """The largest number that a code stands for."""
    return float(uniform.dequantize(np.array(uniform.most)))


def with_outliers(seed: int = 0) -> np.ndarray:
    """Numbers of a normal distribution, and two that are far from it."""
    generator = np.random.default_rng(seed)
    numbers = generator.standard_normal(100_000).astype(np.float32)
    numbers[::50_000] = 100.0
    return numbers


@settings(max_examples=examples(30), deadline=None)
@given(
    seed=st.integers(0, 999),
    schema=st.sampled_from(SCHEMAS),
    calibration=st.sampled_from(CALIBRATIONS),
    bits=st.sampled_from([8, 16]),
)
def test_every_calibration_gives_codes_of_any_histogram(seed: int, schema: str, calibration: str, bits: int) -> None:
    generator = np.random.default_rng(seed)
    scale, shift = generator.choice([0.0, 1e-30, 1.0, 1e30]), generator.choice([0.0, -3.0, 3.0])
    numbers = ((generator.standard_normal(generator.integers(1, 50)) + shift) * scale).astype(np.float32)
    found = calibrated(histogram_of(numbers), calibration, schema, bits)
    widest = uniform_of(schema, bits, float(numbers.min()), float(numbers.max()))
    assert found.scale <= widest.scale
    found.type().verify()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_min_max_has_the_whole_range(schema: str) -> None:
    assert reach(calibrated(histogram_of(with_outliers()), "min-max", schema, 8)) >= 99.0


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("calibration", ["percentile", "kl", "mse"])
def test_the_others_cut_off_what_is_rare_and_far(calibration: str, schema: str) -> None:
    most = 64.0 if calibration != "mse" else 96.0  # Two numbers weigh more the further off they are.
    assert 2.0 < reach(calibrated(histogram_of(with_outliers()), calibration, schema, 8)) < most


@pytest.mark.parametrize("calibration", ["kl", "mse"])
def test_even_numbers_keep_the_whole_range(calibration: str) -> None:
    numbers = np.linspace(-1, 1, 100_000, dtype=np.float32)
    assert reach(calibrated(histogram_of(numbers), calibration, "symmetric", 8)) > 0.95


def test_mse_is_the_least_that_the_numbers_themselves_have() -> None:
    numbers = with_outliers()
    found = calibrated(histogram_of(numbers), "mse", "symmetric", 8)

    def error(uniform: Uniform) -> float:
        return float(((uniform.dequantize(uniform.quantize(numbers)) - numbers.astype(np.float64)) ** 2).mean())

    low, high = float(numbers.min()), float(numbers.max())
    limits = [high * step / STEPS for step in range(1, STEPS + 1)]
    candidates = [uniform_of("symmetric", 8, max(low, -limit), min(high, limit)) for limit in limits]
    assert error(found) <= min(map(error, candidates)) * 1.01
    histogram = histogram_of(numbers)
    assert mean_squared_error(histogram, histogram.centers(), found) == pytest.approx(error(found), rel=0.01)


def test_divergence_of_codes_that_tell_all_bins_apart_is_nothing() -> None:
    """256 numbers, each with a code of its own; half of the range leaves half of them at its ends."""
    histogram = histogram_of(np.arange(-127, 128, dtype=np.float32).repeat(3))
    centers = histogram.centers()
    exact = divergence(histogram, centers, uniform_of("symmetric", 8, -127.0, 127.0))
    cut = divergence(histogram, centers, uniform_of("symmetric", 8, -64.0, 64.0))
    assert exact == pytest.approx(0.0, abs=1e-6)
    assert cut > 0.1
