"""Gradients of pooling: windows that overlap and such that do not, what padding counts as, equal elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from gradients import Emit, check_gradients, differentiated, gradient_module, run_machine_code
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, Images, LpPoolOp, MaxPoolOp, MaxPoolWithIndicesOp
from glow_mlir.interpreter.machine import run_function

WINDOWS: dict[str, Mapping[str, Any]] = {
    "overlapping": {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1)},
    "apart": {"kernel_shape": (2, 3), "strides": (2, 3)},
    "gaps between": {"kernel_shape": (1, 2), "strides": (2, 3), "pads": (0, 1, 0, 1)},
    "cut at the end": {"kernel_shape": (2, 2), "strides": (2, 2), "ceil_mode": True},
    "overlapping, cut at the end": {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1,) * 4, "ceil_mode": True},
    "one window": {"kernel_shape": (5, 6)},
    "large": {"kernel_shape": (4, 3), "strides": (1, 2), "pads": (0, 1, 1, 0)},
    "dilated, gaps between": {"kernel_shape": (2, 2), "strides": (3, 1), "dilations": (2, 3), "pads": (1, 0, 0, 1)},
    "channels first": {"kernel_shape": (2, 2), "strides": (2, 2), "layout": "channels_first"},
    "channels first, overlapping": {"kernel_shape": (3, 3), "strides": (2, 1), "layout": "channels_first"},
}

SHAPE = (2, 5, 6, 2)


def distinct(shape: tuple[int, ...]) -> np.ndarray:
    """Numbers that are far from each other, and from 0, in random order."""
    count = int(np.prod(shape))
    numbers = (np.arange(count) - count / 2 + 0.25) / count
    return np.random.default_rng(count).permutation(numbers).reshape(shape)


def check(kind: type[Images], properties: Mapping[str, Any]) -> None:
    """Compare the gradient of the squares of what a pool gives."""
    first = properties.get("layout") == "channels_first"

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(kind, values["x"], **properties)
        return emit(MulOp, y, y)

    check_gradients(graph, {"x": distinct((2, 2, 5, 6) if first else SHAPE)})


@pytest.mark.parametrize("case", WINDOWS)
def test_max_pool(case: str) -> None:
    check(MaxPoolOp, WINDOWS[case])


@pytest.mark.parametrize("case", WINDOWS)
def test_avg_pool(case: str) -> None:
    check(AvgPoolOp, WINDOWS[case])


@pytest.mark.parametrize("case", ["overlapping", "overlapping, cut at the end", "gaps between"])
def test_avg_pool_that_counts_padding(case: str) -> None:
    check(AvgPoolOp, {**WINDOWS[case], "count_include_pad": True})


@pytest.mark.parametrize(("case", "p"), [("overlapping", 1), ("overlapping", 2), ("cut at the end", 3)])
def test_lp_pool(case: str, p: int) -> None:
    check(LpPoolOp, {**WINDOWS[case], "p": p})


@pytest.mark.parametrize(("case", "counting"), [("overlapping", "column_major"), ("channels first", "by_channel")])
def test_max_pool_with_indices(case: str, counting: str) -> None:
    check(MaxPoolWithIndicesOp, WINDOWS[case])
    check(MaxPoolWithIndicesOp, {**WINDOWS[case], counting: True})


@pytest.mark.parametrize("kind", [MaxPoolOp, AvgPoolOp])
def test_dilations_and_other_ranks(kind: type[Images]) -> None:
    properties = {"kernel_shape": (2,), "strides": (1,), "dilations": (2,), "pads": (1, 1)}

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(kind, values["x"], **properties)
        return emit(MulOp, y, y)

    check_gradients(graph, {"x": distinct((2, 6, 2))})


@pytest.mark.parametrize("strides", [(1, 2), (1, 1)], ids=["apart", "overlapping"])
def test_of_equal_elements_the_first_has_all(strides: tuple[int, int]) -> None:
    x = np.array([[3.0, 3.0, 1.0, 3.0]]).reshape(1, 1, 4, 1)

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        return emit(MaxPoolOp, values["x"], kernel_shape=(1, 2), strides=strides)

    module = differentiated(gradient_module(graph, {"x": x}, ["x"]))
    expected = [1.0, 0.0, 0.0, 1.0] if strides == (1, 2) else [1.0, 1.0, 0.0, 1.0]
    for results in (run_function(module, {"x": x}), run_machine_code(module, {"x": x})):
        assert results["dx"].ravel().tolist() == expected


def test_norm_of_zeros_has_no_slope() -> None:
    x = np.zeros((1, 2, 2, 1))

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        return emit(LpPoolOp, values["x"], kernel_shape=(2, 2))

    module = differentiated(gradient_module(graph, {"x": x}, ["x"]))
    assert not run_function(module, {"x": x})["dx"].any()


def test_second_derivative() -> None:
    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(AvgPoolOp, values["x"], kernel_shape=(3, 3), strides=(1, 2), pads=(1, 1, 1, 1), count_include_pad=True)
        slope = emit(GradientOp, emit(MulOp, y, emit(MulOp, y, y)), None, [values["x"]])
        return emit(MulOp, slope, slope)

    check_gradients(graph, {"x": distinct(SHAPE)}, rtol=1e-4)
