"""Kernels that move elements between places known when compiling, against the interpreter."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from execute import check, check_low, runnable_targets, sample

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.transposition_order import Walk
from glow_mlir.dialects.glow_high import data_movement as ops

EVERYTHING = ["f4", "f8", "f2", "i8", "i4", "i2", "i1", "u1", "u2", "u4", "u8", "?"]


@pytest.mark.parametrize("dtype", EVERYTHING)
def test_transpose_element_types(dtype: str):
    for shape, permutation in (((33, 70), (1, 0)), ((2, 3, 17), (0, 2, 1)), ((2, 17, 19, 3), (0, 3, 1, 2))):
        check(ops.TransposeOp, sample(shape, dtype), permutation=permutation)


@pytest.mark.parametrize("target", runnable_targets())
def test_transpose_permutations(target: str):
    for permutation in itertools.permutations(range(3)):
        check(ops.TransposeOp, sample((9, 10, 35)), permutation=permutation, target=target)


@pytest.mark.parametrize("shape", [(1030, 37), (133, 1024), (131, 512), (140, 256), (64, 2048)])
def test_transposes_in_several_blocks(shape: tuple[int, int]):
    check(ops.TransposeOp, sample(shape), permutation=(1, 0))
    check(ops.TransposeOp, sample((2, *shape), "i1"), permutation=(0, 2, 1))


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


@pytest.mark.parametrize("size", range(1, 12))
def test_transpose_edges(size: int):
    check(ops.TransposeOp, sample((size, 19)), permutation=(1, 0))


@pytest.mark.parametrize("dtype", EVERYTHING)
def test_concat(dtype: str):
    check(ops.ConcatOp, [sample((2, 3, 5), dtype), sample((2, 1, 5), dtype, 1)], axis=1)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_concat_axes(axis: int):
    check(ops.ConcatOp, [sample((2, 3, 21), seed=seed) for seed in range(3)], axis=axis)


def test_slice():
    check(ops.SliceOp, sample((9, 40)), starts=(1, 2), ends=(8, 39))
    check(ops.SliceOp, sample((9, 40)), starts=(8, 39), ends=(-1, -1), steps=(-2, -1))
    check(ops.SliceOp, sample((9, 40), "u1"), starts=(0, 0), ends=(9, 40), steps=(2, 3))
    check(ops.SliceOp, sample((4, 5)), starts=(1, 1), ends=(1, 3))


@pytest.mark.parametrize("dtype", ["f4", "f2", "u1", "?"])
def test_pad_with_a_value(dtype: str):
    for value in (None, np.array(3).astype(dtype)):
        check(ops.PadOp, sample((3, 4, 17), dtype), value, pads=(1, 0, 3, 2, 1, 0))


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_pad_with_elements(mode: str):
    check(ops.PadOp, sample((3, 4, 17)), pads=(1, 0, 3, 2, 1, 0), mode=mode)
    check(ops.PadOp, sample((3,)), pads=(7, 5), mode=mode)
    check(ops.PadOp, sample((1, 9, 9, 5), "i8"), pads=(0, 1, 2, 0, 0, 2, 1, 0), mode=mode)
    check(ops.PadOp, sample((1, 2)), pads=(2, 0, 1, 3), mode=mode)


def test_expand():
    for given, shape in (((3, 1), (2, 3, 40)), ((1, 40), (2, 3, 40)), ((), (2, 3)), ((1,), (1,))):
        check(ops.ExpandOp, sample(given), shape=shape)


def test_tile():
    check(ops.TileOp, sample((3, 5)), repeats=(2, 3))
    check(ops.TileOp, sample((3, 5), "?"), repeats=(1, 4))
    check(ops.TileOp, sample((3, 5)), repeats=(0, 4))


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
