"""Kernels of reductions, positions, running totals and of the k largest, against the interpreter."""

from __future__ import annotations

from execute import check_low, sample


def test_strided_operands():
    check_low(
        """
        glow_high.placeholder @x : tensor<9x40xf32> {input}
        glow_high.placeholder @y : tensor<9x3xf32> {state}
        glow_high.placeholder @z : tensor<40xi64> {output}
        glow_low.func @main(@x, @y, @z) {
          %x = glow_low.weight @x : memref<9x40xf32>
          %y = glow_low.weight @y {mutable} : memref<9x3xf32>
          %z = glow_low.weight @z {mutable} : memref<40xi64>
          %a = glow_low.view %x : memref<9x40xf32> to memref<9x33xf32, strided<[40, 1], offset: 7>>
          %t = glow_low.view %x : memref<9x40xf32> to memref<40x9xf32, strided<[1, 40]>>
          %b = glow_low.view %y : memref<9x3xf32> to memref<9xf32, strided<[3], offset: 1>>
          glow_low.reduce_sum @out %b, @in %a {axes = [1], keepdims = false}
          glow_low.arg_max @out %z, @in %t {axis = 1, keepdims = false}
        }
        """,
        {"x": sample((9, 40)), "y": sample((9, 3))},
    )
