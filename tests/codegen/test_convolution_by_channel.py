"""Convolutions that read an image whose channels lie apart, as ONNX has them, through a view."""

from __future__ import annotations

import pytest
from execute import check_low, runnable_targets, sample

HEAD = """
glow_high.placeholder @x : tensor<2x{channels}x9x11xf32> {{input}}
glow_high.placeholder @f : tensor<5x3x2x{depth}xf32> {{input}}
glow_high.placeholder @y : tensor<2x{height}x{width}x5xf32> {{output}}
"""
FUNCTION = """
glow_low.func @main(@x, @f, @y) {{
  %x = glow_low.weight @x : memref<2x{channels}x9x11xf32>
  %f = glow_low.weight @f : memref<5x3x2x{depth}xf32>
  %y = glow_low.weight @y {{mutable}} : memref<2x{height}x{width}x5xf32>
  %v = glow_low.view %x : memref<2x{channels}x9x11xf32>
    to memref<2x9x11x{channels}xf32, strided<[{image}, 11, 1, 99]>>
  glow_low.conv @out %y, @in %v, @in %f {{strides = [{stride}, {stride}]}}
}}
"""


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("target", runnable_targets())
def test_convolution_by_channel(target: str, channels: int, stride: int) -> None:
    sizes = {
        "channels": channels,
        "depth": channels,
        "stride": stride,
        "height": 6 // stride + 1,
        "width": 9 // stride + 1,
        "image": channels * 99,
    }
    text = (HEAD + FUNCTION).format(**sizes)
    check_low(text, {"x": sample((2, channels, 9, 11)), "f": sample((5, 3, 2, channels))}, target)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("target", runnable_targets())
def test_constant_filter(target: str, stride: int) -> None:
    """The filter is packed at compile time."""
    sizes = {"channels": 3, "depth": 3, "stride": stride, "height": 6 // stride + 1, "width": 9 // stride + 1}
    values = sample((5, 3, 2, 3)).tolist()
    text = (HEAD + FUNCTION).format(**sizes, image=297)
    text = text.replace("glow_high.placeholder @f : tensor<5x3x2x3xf32> {input}", "").replace("@x, @f, @y", "@x, @y")
    constant = f"glow_high.constant @f : tensor<5x3x2x3xf32> {{value = dense<{values}> : tensor<5x3x2x3xf32>}}"
    check_low(constant + text, {"x": sample((2, 3, 9, 11))}, target)
