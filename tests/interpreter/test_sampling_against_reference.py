"""Sampling of images computes what ONNX's reference implementation does."""

from __future__ import annotations

import numpy as np
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from single_node import SingleNode, assert_equal


@settings(max_examples=examples(40))
@given(
    data=st.data(),
    mode=st.sampled_from(["linear", "nearest", "cubic"]),
    padding=st.sampled_from(["zeros", "border", "reflection"]),
    aligned=st.booleans(),
    sizes=st.lists(st.integers(2, 4), min_size=1, max_size=2),
)
def test_grid_sample(data: st.DataObject, mode: str, padding: str, aligned: bool, sizes: list[int]) -> None:
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = generator.normal(size=(2, 2, *sizes)).astype(np.float32)
    places = (2, *data.draw(st.lists(st.integers(1, 3), min_size=len(sizes), max_size=len(sizes))), len(sizes))
    grid = generator.uniform(-2, 2, places).astype(np.float32)
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": int(aligned)}
    node = SingleNode("GridSample", [x, grid], 20, attributes)
    assert_equal(node.by_us(), node.by_reference(), atol=1e-5)


@settings(max_examples=examples(20))
@given(
    mode=st.sampled_from(["avg", "max"]),
    coordinates=st.sampled_from(["half_pixel", "output_half_pixel"]),
    ratio=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_roi_align(mode: str, coordinates: str, ratio: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    corners = generator.uniform(-2, 12, (3, 4)).astype(np.float32)
    corners[:, 2:] += corners[:, :2]
    operands = [generator.normal(size=(2, 3, 8, 10)).astype(np.float32), corners, np.array([0, 1, 1])]
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": coordinates,
        "sampling_ratio": ratio,
        "spatial_scale": 0.5,
        "output_height": 2,
        "output_width": 3,
    }
    node = SingleNode("RoiAlign", operands, 16, attributes)
    assert_equal(node.by_us(), node.by_reference(), atol=1e-4)


@settings(max_examples=examples(15))
@given(
    groups=st.sampled_from([1, 2]),
    offset_groups=st.sampled_from([1, 2]),
    stride=st.integers(1, 2),
    pad=st.integers(0, 1),
    dilation=st.integers(1, 2),
    masked=st.booleans(),
)
def test_deform_conv(groups: int, offset_groups: int, stride: int, pad: int, dilation: int, masked: bool) -> None:
    generator = np.random.default_rng(stride)
    outputs = [(size + 2 * pad - dilation - 1) // stride + 1 for size in (4, 5)]

    def normal(*shape: int) -> np.ndarray:
        return generator.normal(size=shape).astype(np.float32)

    offset = normal(2, offset_groups * 4 * 2, *outputs)
    mask = normal(2, offset_groups * 4, *outputs) if masked else None
    operands = [normal(2, 4, 4, 5), normal(2, 4 // groups, 2, 2), offset, normal(2), mask]
    attributes = {
        "group": groups,
        "offset_group": offset_groups,
        "strides": [stride] * 2,
        "pads": [pad] * 4,
        "dilations": [dilation] * 2,
        "kernel_shape": [2, 2],
    }
    node = SingleNode("DeformConv", operands, 19, attributes)
    assert_equal(node.by_us(), node.by_reference(), atol=1e-4)
