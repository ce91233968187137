"""Gradients of sampling: by the image, and by places that no kink of the weights is near to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradients import Emit, check_gradients, differentiated, gradient_module
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.sampling import DeformColumnsOp, GridSampleOp, RoiAlignOp
from glow_mlir.errors import UnsupportedError

IMAGE = (2, 3, 4, 2)


def drawn(*shape: int, reach: float = 1.0) -> np.ndarray:
    """Numbers around 0."""
    return np.random.default_rng(sum(shape)).uniform(-reach, reach, shape)


def check(image: np.ndarray, grid: np.ndarray, **properties: Any) -> None:
    """Compare the gradients of the squares of what is sampled."""

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(GridSampleOp, values["x"], values["grid"], **properties)
        return emit(MulOp, y, y)

    check_gradients(graph, {"x": image, "grid": grid})


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_grid_sample(mode: str, padding: str, aligned: bool) -> None:
    check(drawn(*IMAGE), drawn(2, 2, 3, 2, reach=1.8), mode=mode, padding=padding, align_corners=aligned)


@pytest.mark.parametrize("padding", ["zeros", "reflection"])
def test_nearest_has_no_slope_by_places(padding: str) -> None:
    check(drawn(*IMAGE), drawn(2, 2, 2, 2, reach=1.4), mode="nearest", padding=padding)


@pytest.mark.parametrize("axes", [1, 3])
def test_grid_sample_of_lines_and_volumes(axes: int) -> None:
    check(drawn(1, *(3,) * axes, 2), drawn(1, *(2,) * axes, axes, reach=1.2))


@pytest.mark.parametrize(("groups", "is_masked"), [(1, False), (2, True)])
def test_deform_columns(groups: int, is_masked: bool) -> None:
    window = {"kernel_shape": (2, 2), "strides": (1, 2), "pads": (1, 0, 0, 1), "dilations": (2, 1)}
    inputs = {"x": drawn(1, 3, 4, 2), "offset": drawn(1, 2, 2, groups * 8)}
    if is_masked:
        inputs["mask"] = drawn(1, 2, 2, groups * 4)

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        operands = (values["x"], values["offset"], values.get("mask"))
        y = emit(DeformColumnsOp, *operands, offset_group=groups, **window)
        return emit(MulOp, y, y)

    check_gradients(graph, inputs)


REGIONS = np.array([[0.1, 0.3, 2.2, 2.9], [0.5, 0.2, 3.4, 1.1], [-2.0, 1.0, 5.0, 1.2]])


def regions(values: dict[str, SSAValue], emit: Emit, **properties: Any) -> SSAValue:
    """The squares of the cells of regions."""
    operands = (values["x"], values["rois"], values["images"])
    y = emit(RoiAlignOp, *operands, output_shape=(2, 3), **properties)
    return emit(MulOp, y, y)


@pytest.mark.parametrize(("samples", "half_pixel"), [(1, True), (2, False)])
def test_roi_align(samples: int, half_pixel: bool) -> None:
    inputs = {"x": drawn(*IMAGE), "rois": REGIONS, "images": np.array([1, 0, 1])}

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        return regions(values, emit, sampling_ratio=samples, half_pixel=half_pixel, spatial_scale=0.8)

    check_gradients(graph, inputs, ["x"])


@pytest.mark.parametrize("properties", [{"mode": "max", "sampling_ratio": 1}, {}])
def test_regions_without_gradient_are_refused(properties: dict[str, Any]) -> None:
    inputs = {"x": drawn(*IMAGE), "rois": REGIONS, "images": np.array([1, 0, 1])}
    module = gradient_module(lambda emit, values: regions(values, emit, **properties), inputs, ["x"])
    with pytest.raises(UnsupportedError, match="sampling_ratio"):
        differentiated(module)
