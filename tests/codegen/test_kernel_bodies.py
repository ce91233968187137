"""Epilogues and prologues of kernels beside the matrix ones: reductions, pools, pointwise convolutions."""

from __future__ import annotations

import pytest
from execute import check_low, runnable_targets, sample

MAPS = "[affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>]"
BODY = """
  ^bb0(%sum: f32, %other: f32):
    %total = arith.addf %sum, %other : f32
    %abs = math.absf %total : f32
    glow_low.yield %abs, %total : f32, f32
  }
"""
FUNCTION = """
glow_high.placeholder @x : tensor<{source}xf32> {{input}}
glow_high.placeholder @r : tensor<{result}xf32> {{input}}
glow_high.placeholder @y : tensor<{result}xf32> {{output}}
glow_high.placeholder @z : tensor<{result}xf32> {{output}}
glow_low.func @main(@x, @r, @y, @z) {{
  %x = glow_low.weight @x : memref<{source}xf32>
  %r = glow_low.weight @r : memref<{result}xf32>
  %y = glow_low.weight @y {{mutable}} : memref<{result}xf32>
  %z = glow_low.weight @z {{mutable}} : memref<{result}xf32>
  {instruction} epilogue(@out %z, @in %r) {maps} {{ {body}
}}
"""

INSTRUCTIONS = {
    "reduce over pixels": ("2x5x6x19", "2x1x1x19", "glow_low.reduce_mean @out %y, @in %x {axes = [1, 2]}"),
    "reduce over channels": ("2x5x6x19", "2x5x6x1", "glow_low.reduce_max @out %y, @in %x {axes = [3]}"),
    "max pool": ("2x6x7x19", "2x5x6x19", "glow_low.max_pool @out %y, @in %x {kernel_shape = [2, 2]}"),
    "avg pool": ("2x6x8x5", "2x3x4x5", "glow_low.avg_pool @out %y, @in %x {kernel_shape = [2, 2], strides = [2, 2]}"),
}


@pytest.mark.parametrize("name", list(INSTRUCTIONS))
@pytest.mark.parametrize("target", runnable_targets())
def test_epilogue_with_two_targets(target: str, name: str) -> None:
    source, result, instruction = INSTRUCTIONS[name]
    text = FUNCTION.format(source=source, result=result, instruction=instruction, maps=MAPS, body=BODY)
    shapes = [[int(size) for size in shape.split("x")] for shape in (source, result)]
    check_low(text, {"x": sample(shapes[0]), "r": sample(shapes[1], seed=1)}, target)


PROLOGUE = """
glow_high.placeholder @x : tensor<2x{rows}x{columns}x{channels}xf32> {{input}}
glow_high.placeholder @s : tensor<{channels}xf32> {{input}}
glow_high.placeholder @f : tensor<20x1x1x{channels}xf32> {{input}}
glow_high.placeholder @r : tensor<2x{height}x5x20xf32> {{input}}
glow_high.placeholder @y : tensor<2x{height}x5x20xf32> {{output}}
glow_high.placeholder @m : tensor<2x1x1x{channels}xf32> {{output}}
glow_low.func @main(@x, @s, @f, @r, @y, @m) {{
  %x = glow_low.weight @x : memref<2x{rows}x{columns}x{channels}xf32>
  %s = glow_low.weight @s : memref<{channels}xf32>
  %f = glow_low.weight @f : memref<20x1x1x{channels}xf32>
  %r = glow_low.weight @r : memref<2x{height}x5x20xf32>
  %y = glow_low.weight @y {{mutable}} : memref<2x{height}x5x20xf32>
  %m = glow_low.weight @m {{mutable}} : memref<2x1x1x{channels}xf32>
  glow_low.conv @out %y, @in %x, @in %f {{strides = {strides}}} prologue(@in %s)
      [affine_map<(d0, d1, d2, d3) -> (d3)>] {{
  ^bb0(%e: f32, %factor: f32):
    %0 = arith.mulf %e, %factor : f32
    glow_low.yield %0 : f32
  }} epilogue(@in %r) [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>] {{
  ^bb0(%sum: f32, %other: f32):
    %1 = arith.addf %sum, %other : f32
    glow_low.yield %1 : f32
  }}
  glow_low.reduce_sum @out %m, @in %x {{axes = [1, 2]}} prologue(@in %s) [affine_map<(d0, d1, d2, d3) -> (d3)>] {{
  ^bb0(%a: f32, %b: f32):
    %2 = arith.mulf %a, %b : f32
    glow_low.yield %2 : f32
  }}
}}
"""


@pytest.mark.parametrize(("height", "channels"), [(1, 3), (4, 16), (45, 37)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("target", runnable_targets())
def test_prologue_and_epilogue(target: str, strides: tuple[int, int], height: int, channels: int) -> None:
    """One block of lines, several, and a last one that is shorter; of every pixel, or of some."""
    rows, columns = height * strides[0], 5 * strides[1] - (strides[1] > 1)
    text = PROLOGUE.format(height=height, channels=channels, rows=rows, columns=columns, strides=list(strides))
    image, result = (2, rows, columns, channels), (2, height, 5, 20)
    shapes = {"x": image, "s": (channels,), "f": (20, 1, 1, channels), "r": result}
    check_low(text, {name: sample(shape) for name, shape in shapes.items()}, target)
