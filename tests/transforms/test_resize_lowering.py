"""The lowering of resizing preserves its meaning, up to rounding between the axes."""

from __future__ import annotations

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from single_operator import lower_operator, run_operator, single_operator

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high.resize import COORDINATES, ROUNDINGS, ResizeOp


def assert_preserved(x: np.ndarray, **properties: AttributeValue) -> None:
    module, op = single_operator(ResizeOp, [x], **properties)
    (before,) = run_operator(module, [x])
    assert isinstance(op, ResizeOp)
    lower_operator(module, op)
    (after,) = run_operator(module, [x])
    assert after.dtype == before.dtype
    assert after.shape == before.shape
    # Integers are interpolated in f32, so that a half may be rounded the other way.
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4 if x.dtype.kind == "f" else 1)


SIZES = st.lists(st.integers(1, 6), min_size=3, max_size=3)


@settings(max_examples=examples(60))
@given(
    before=SIZES,
    after=SIZES,
    mode=st.sampled_from(["linear", "cubic"]),
    coordinates=st.sampled_from(COORDINATES),
    exclude_outside=st.booleans(),
    antialias=st.booleans(),
    dtype=st.sampled_from(["float32", "float64", "uint8", "int32"]),
)
def test_interpolation(
    before: list[int],
    after: list[int],
    mode: str,
    coordinates: str,
    exclude_outside: bool,
    antialias: bool,
    dtype: str,
) -> None:
    x = (np.random.default_rng(0).random(before) * 100).astype(dtype)
    roi = [0.0, 0.25, -0.5, 1.0, 0.75, 1.5]
    assert_preserved(
        x,
        shape=after,
        mode=mode,
        coordinates=coordinates,
        exclude_outside=exclude_outside,
        antialias=antialias,
        extrapolation=7.0,
        roi=roi,
    )


@pytest.mark.parametrize("dtype", ["float32", "bool", "int8", "uint64"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_nearest_elements(coordinates: str, rounding: str, dtype: str) -> None:
    x = (np.arange(30).reshape(1, 5, 6) % 7).astype(dtype)
    roi = [0.0, 0.25, -0.5, 1.0, 0.75, 1.5]
    assert_preserved(x, shape=(1, 7, 4), rounding=rounding, coordinates=coordinates, extrapolation=1.0, roi=roi)


def test_scales_that_are_no_ratio_of_sizes_count() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 6)
    assert_preserved(x, shape=(1, 4), scales=[1.0, 0.7], mode="linear", coordinates="half_pixel_symmetric")
