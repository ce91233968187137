"""Pooling kernels against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execute import Case, check, check_all, check_low, runnable_targets, sample

from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, LpPoolOp, MaxPoolOp, MaxPoolWithIndicesOp, Pool

WINDOWS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "line": ((9,), {"kernel_shape": (3,), "pads": (1, 2)}),
    "uneven": ((8, 9), {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1)}),
    "ceil": ((8, 9), {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "ceil_mode": True}),
    "dilated": ((12, 13), {"kernel_shape": (3, 2), "dilations": (2, 3), "pads": (2, 1, 2, 1)}),
    "dilated_ceil": (
        (12, 13),
        {"kernel_shape": (3, 2), "dilations": (2, 3), "strides": (3, 3), "pads": (1, 1, 1, 1), "ceil_mode": True},
    ),
    "volume": ((4, 5, 6), {"kernel_shape": (2, 2, 3), "strides": (2, 1, 2)}),
}
VARIANTS: list[tuple[type[Pool], dict[str, Any]]] = [
    (MaxPoolOp, {}),
    (AvgPoolOp, {}),
    (AvgPoolOp, {"count_include_pad": True}),
    (LpPoolOp, {}),
]


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(("operator", "variant"), VARIANTS)
def test_windows(operator: type[Pool], variant: dict[str, Any], name: str):
    spatial, window = WINDOWS[name]
    for channels in (3, 24):
        check(operator, sample((2, *spatial, channels)), **window, **variant)


@pytest.mark.parametrize("operator", [MaxPoolOp, AvgPoolOp])
def test_channels_first(operator: type[Pool]):
    spatial, window = WINDOWS["ceil"]
    check(operator, sample((2, 3, *spatial)), layout="channels_first", **window)


@pytest.mark.parametrize("operator", [MaxPoolOp, AvgPoolOp])
@pytest.mark.parametrize("width", [2, 5, 40])
def test_rows(operator: type[Pool], width: int):
    window: dict[str, Any] = {"kernel_shape": (2, 3), "pads": (0, 2, 1, 1)}
    check(operator, sample((2, 3, 4, width)), layout="channels_first", **window)
    check(operator, sample((2, 4, width, 1)), **window)
    check(operator, sample((2, 96, 1)), kernel_shape=(5,), pads=(2, 2))


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize(
    ("operator", "dtype"), [(MaxPoolOp, "f4"), (MaxPoolOp, "u1"), (AvgPoolOp, "f2"), (LpPoolOp, "f8")]
)
def test_every_second_pixel_of_rows(operator: type[Pool], dtype: str, target: str):
    """The last window of a row may end where the input does."""
    window: dict[str, Any] = {"kernel_shape": (2, 3), "strides": (1, 2), "layout": "channels_first", "target": target}
    for width, before in ((5, 3), (70, 0), (70, 1), (131, 2)):
        check(operator, sample((1, 2, 3, width), dtype), pads=(0, before, 1, width % 2), **window)


@pytest.mark.parametrize("dtype", ["f8", "f2", "u1", "i1", "i8"])
def test_element_types(dtype: str):
    check(MaxPoolOp, sample((1, 6, 6, 37), dtype), kernel_shape=(3, 3), pads=(1, 1, 1, 1))


@pytest.mark.parametrize("p", [1, 3, 5])
def test_norms(p: int):
    check(LpPoolOp, sample((1, 6, 6, 5)), kernel_shape=(3, 3), pads=(1, 1, 1, 1), p=p)


@pytest.mark.parametrize("target", runnable_targets())
def test_targets(target: str):
    check(AvgPoolOp, sample((1, 6, 6, 100)), kernel_shape=(3, 3), pads=(1, 1, 1, 1), target=target)


def test_nan_wins():
    x = sample((1, 4, 4, 20))
    x[0, 1, 1, :7] = np.nan
    check(MaxPoolOp, x, kernel_shape=(2, 2))


def test_few_floats_are_compared_as_numbers_first():
    """Infinities of both signs add up to NaN, as a NaN does, which wins from any place; at borders, there are loops."""
    x = sample((1, 6, 6, 6))
    x[0, 2, 2, 0], x[0, 2, 3, 1], x[0, 3, 2, 2], x[0, 3, 3, 3] = (np.nan, -np.nan, np.nan, -np.inf)
    x[0, 2, 2, 4], x[0, 3, 3, 4], x[0, :, :, 5] = (np.inf, -np.inf, -np.inf)
    few = "scalar,costs.unrolled_taps=4"
    windows: list[dict[str, Any]] = [{}, {"strides": (2, 2), "pads": (1, 0, 0, 1)}, {"dilations": (2, 3)}]
    check_all([Case(MaxPoolOp, x, kernel_shape=(2, 2), **window) for window in windows], few)


def test_strided_operands():
    check_low(
        """
        glow_high.placeholder @x : tensor<1x6x6x40xf32> {input}
        glow_high.placeholder @y : tensor<1x5x5x64xf32> {state}
        glow_low.func @main(@x, @y) {
          %x = glow_low.weight @x : memref<1x6x6x40xf32>
          %y = glow_low.weight @y {mutable} : memref<1x5x5x64xf32>
          %a = glow_low.view %x : memref<1x6x6x40xf32> to memref<1x6x6x33xf32, strided<[1440, 240, 40, 1], offset: 7>>
          %b = glow_low.view %y : memref<1x5x5x64xf32> to memref<1x5x5x33xf32, strided<[1600, 320, 64, 1], offset: 20>>
          glow_low.max_pool @out %b, @in %a {kernel_shape = [2, 2]}
        }
        """,
        {"x": sample((1, 6, 6, 40)), "y": sample((1, 5, 5, 64), seed=1)},
    )


@pytest.mark.parametrize("target", runnable_targets())
def test_places_of_maxima(target: str):
    window: dict[str, Any] = {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 1, 1, 0)}
    ties = [np.round(sample((2, 7, 5, 19), dtype)) for dtype in ("f4", "f8", "f2")]
    integers = [sample((2, 7, 5, 19), dtype) for dtype in ("i1", "u1")]
    spoiled = sample((1, 6, 6, 3))
    spoiled[0, 2:4, 2] = np.nan
    images = [*ties, *integers, spoiled, np.full((1, 4, 4, 3), -np.inf, np.float32)]
    turned: dict[str, Any] = {"layout": "channels_first", "column_major": True, "dilations": (2, 1), "ceil_mode": True}
    cases = [Case(MaxPoolWithIndicesOp, x, **window) for x in images]
    counted = [{"by_channel": True}, {"by_channel": True, "column_major": True, "layout": "channels_first"}]
    by_channel = [Case(MaxPoolWithIndicesOp, sample((2, 7, 5, 19)), **properties, **window) for properties in counted]
    check_all([*cases, *by_channel, Case(MaxPoolWithIndicesOp, sample((2, 3, 7, 5)), **turned, **window)], target)
