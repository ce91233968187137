"""Fourier transforms compute what ONNX's reference implementation does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from single_node import SingleNode, assert_equal


@settings(max_examples=examples(40))
@given(
    data=st.data(),
    shape=st.lists(st.integers(2, 5), min_size=2, max_size=3).map(tuple),
    opset=st.sampled_from([17, 20]),
    inverse=st.booleans(),
    onesided=st.booleans(),
)
def test_dft(data: st.DataObject, shape: tuple[int, ...], opset: int, inverse: bool, onesided: bool) -> None:
    parts = 2 if inverse else 1 if onesided else data.draw(st.sampled_from([1, 2]))
    x = np.random.default_rng(len(shape)).normal(size=(*shape, parts))
    axis = data.draw(st.integers(-len(shape) - 1, -2))
    length = data.draw(st.none() | st.integers(2, 7))
    attributes: dict[str, Any] = {"inverse": int(inverse), "onesided": int(onesided)}
    operands = [x, None if length is None else np.array(length, np.int64)]
    if opset == 17:
        attributes["axis"] = axis + len(shape) + 1
    else:
        operands.append(np.array(axis, np.int64))
    node = SingleNode("DFT", operands, opset, attributes, constant=(1, 2))
    assert_equal(node.by_us(), node.by_reference())


@pytest.mark.parametrize(("step", "length", "window"), [(4, 8, 8), (3, 5, None), (2, 8, 8), (5, 4, 4)])
@pytest.mark.parametrize("parts", [1, 2])
def test_stft(step: int, length: int, window: int | None, parts: int) -> None:
    generator = np.random.default_rng(step)
    operands = [
        generator.normal(size=(2, 22, parts)).astype(np.float32),
        np.array(step, np.int64),
        None if window is None else generator.normal(size=window).astype(np.float32),
        np.array(length, np.int64),
    ]
    node = SingleNode("STFT", operands, 17, {"onesided": int(parts == 1)}, constant=(1, 3))
    assert_equal(node.by_us(), node.by_reference(), atol=1e-4)


@pytest.mark.parametrize(("bands", "length", "rate"), [(8, 16, 8192), (40, 400, 16000), (3, 64, 22050)])
def test_mel_weight_matrix(bands: int, length: int, rate: int) -> None:
    operands = [np.array(bands), np.array(length), np.array(rate), np.array(20.0), np.array(rate / 2.0)]
    node = SingleNode("MelWeightMatrix", operands, 17, constant=range(5))
    assert_equal(node.by_us(), node.by_reference())
