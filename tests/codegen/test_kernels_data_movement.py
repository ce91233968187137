"""Kernels that move elements between places known when compiling, against the interpreter."""

from __future__ import annotations

from dataclasses import replace

from execute import check_low, sample

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.transposition_order import Walk


def test_walks_of_transposes():
    """Few sets want whole lines, many sets long blocks; lines on pages of their own want blocks that write several."""
    machine = PRESETS["avx2"]
    assert Walk.of(machine, 8, 4, into=64, out_of=1024, moved=0) == Walk(16, 16)
    assert Walk.of(machine, 8, 4, into=256, out_of=256, moved=0) == Walk(16, 64)
    assert Walk.of(machine, 8, 4, into=1024, out_of=1024, moved=0) == Walk(8, 128)
    assert Walk.of(machine, 8, 4, into=1024, out_of=64, moved=0) == Walk(8, 1024)
    assert Walk.of(machine, 8, 4, into=256, out_of=256, moved=machine.l3_bytes + 1) == Walk(8, 128)
    assert Walk.of(machine, 8, 8, into=64, out_of=512, moved=0) == Walk(8, 8)
    wide_lines = replace(machine, line_bytes=128, page_bytes=8192)
    assert Walk.of(wide_lines, 8, 4, into=64, out_of=1024, moved=0) == Walk(32, 64)


def test_strided_operands():
    check_low(
        """
        glow_high.placeholder @x : tensor<19x40xf32> {input}
        glow_high.placeholder @y : tensor<40x50xf32> {state}
        glow_low.func @main(@x, @y) {
          %x = glow_low.weight @x : memref<19x40xf32>
          %y = glow_low.weight @y {mutable} : memref<40x50xf32>
          %a = glow_low.view %x : memref<19x40xf32> to memref<19x33xf32, strided<[40, 1], offset: 7>>
          %b = glow_low.view %y : memref<40x50xf32> to memref<33x19xf32, strided<[50, 1], offset: 151>>
          %c = glow_low.view %y : memref<40x50xf32> to memref<19x33xf32, strided<[1, 50], offset: 25>>
          %t = glow_low.view %x : memref<19x40xf32> to memref<33x19xf32, strided<[1, 40], offset: 7>>
          glow_low.copy @out %b, @in %t
          glow_low.copy @out %c, @in %a
        }
        """,
        {"x": sample((19, 40)), "y": sample((40, 50))},
    )
