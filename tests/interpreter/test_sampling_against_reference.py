"""Sampling of images computes what ONNX's reference implementation does."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from single_node import SingleNode, assert_equal


@settings(max_examples=40)
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
