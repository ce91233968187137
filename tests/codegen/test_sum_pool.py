"""Sums of windows of codes in machine code: those of the interpreter, on every target that this machine can run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execute import Case, check, check_all, runnable_targets

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.pooling import SumPoolOp
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.support.dtypes import named_dtype

RANDOM = np.random.default_rng(7)
LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(1 << 15), (1 << 15) - 1), "uint16": (0, (1 << 16) - 1)}
"""Element type → its first and last code."""


def codes(*shape: int, dtype: str = "uint8") -> np.ndarray:
    """Codes of the whole range of a type, with many at its ends."""
    least, most = LIMITS[dtype]
    found = RANDOM.integers(least, most + 1, shape)
    found[0, :2] = most
    found[0, 2:4] = least
    return found.astype(dtype)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("dtype", LIMITS)
def test_windows(dtype: str, target: str) -> None:
    windows: list[dict[str, Any]] = [
        {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1)},
        {"kernel_shape": (3, 2), "dilations": (2, 3), "pads": (2, 1, 2, 1)},
        {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "ceil_mode": True},
    ]
    check_all([Case(SumPoolOp, codes(2, 8, 9, c, dtype=dtype), **w) for c in (1, 3, 45, 100) for w in windows], target)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_sums_of_more_codes_than_16_bits_hold(dtype: str, target: str) -> None:
    """A window of 256 largest codes just fits; of more, or of longer lines, parts are summed in 32 bits."""
    sizes = [(16, 16), (17, 20), (4, 300), (300, 2)]
    images: list[np.ndarray] = [
        np.full((1, *size, 21), limit, named_dtype(dtype)) for size in sizes for limit in LIMITS[dtype]
    ]
    check_all([Case(SumPoolOp, image, kernel_shape=image.shape[1:3]) for image in images], target)


def test_channels_first_and_volumes() -> None:
    check(SumPoolOp, codes(2, 5, 9, 40), kernel_shape=(3, 2), pads=(1, 1, 1, 0), layout="channels_first")
    check(SumPoolOp, codes(1, 6, 5, 4, 7, dtype="int8"), kernel_shape=(2, 3, 2), strides=(2, 1, 1))


ZERO_POINTS = """
!q = !quant.uniform<{storage}:f32, 0.5:{zero}>
glow_high.constant @multiplier : tensor<f32> {{value = dense<0.03> : tensor<f32>}}
glow_high.func @main(%x: tensor<1x7x8x{channels}x!q>) -> (tensor<1x4x4x{channels}xi32>, tensor<1x4x4x{channels}xi8>) {{
  %s = glow_high.sum_pool %x {{kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 0]}}
    : tensor<1x4x4x{channels}xi32>
  %m = glow_high.get @multiplier : tensor<f32>
  %y = glow_high.rescale %s, %m {{to = i8}} : tensor<1x4x4x{channels}xi8>
  glow_high.return %s, %y
}}
"""


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize(("storage", "zero"), [("i8", -7), ("u8", 131), ("i8", 0)])
def test_padding_adds_nothing_whatever_the_zero_point(storage: str, zero: int, target: str) -> None:
    """Each channel count: vectors alone, with a masked rest, and less than a vector."""
    for channels in (2, 7, 19, 64):
        module = parse_module(ZERO_POINTS.format(storage=storage, zero=zero, channels=channels), new_context())
        inputs = {"x": codes(1, 7, 8, channels, dtype="int8" if storage == "i8" else "uint8")}
        expected = InferenceSession(module, backend="interpreter").run(None, inputs)
        found = InferenceSession(module, target=target, cache=False).run(None, inputs)
        padded = np.pad(inputs["x"].astype(np.int32) - zero, ((0, 0), (1, 1), (1, 0), (0, 0)))
        np.testing.assert_array_equal(found[0][0, 0, 0], padded[0, :3, :3].sum(axis=(0, 1)))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
