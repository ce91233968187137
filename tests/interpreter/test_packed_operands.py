"""The interpreter takes packed operands apart, and says where one is not packed as it is said to be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packed import in_panels, laid_out

from glow_mlir.constants.layouts import Interleave, filter_panels, matrix_panels
from glow_mlir.errors import ModelError
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

PRODUCT = """
glow_high.placeholder @x : tensor<2x4xf32> {input}
glow_high.placeholder @packed : tensor<1x4x8xf32> {input}
glow_high.placeholder @y : tensor<2x3xf32> {output}
glow_low.func @main(@x, @packed, @y) attributes {target = #glow.target<backend = "cpu">} {
  %x = glow_low.weight @x : memref<2x4xf32>
  %w = glow_low.weight @packed : memref<1x4x8xf32>
  %y = glow_low.weight @y {mutable} : memref<2x3xf32>
  glow_low.matmul @out %y, @in %x, @in %w {packing = {right = {form = "panels", shape = array<i64: 4, 3>, panel = 8}}}
}
"""


def _run(text: str, operand: np.ndarray) -> np.ndarray:
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    results = run_function(parse_module(text, new_context(), "given.mlir"), {"x": x, "packed": operand})
    return results["y"]


def test_packed_operands_are_taken_apart() -> None:
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(_run(PRODUCT, in_panels(matrix, 8)), x @ matrix)


@pytest.mark.parametrize("interleave", [2, 4])
def test_panels_may_be_interleaved_along_the_depth(interleave: int) -> None:
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    found = in_panels(matrix, 8, Interleave(interleave))
    assert found.shape == (1, 4 // interleave, 8, interleave)
    np.testing.assert_array_equal(found[0, 0, :3], matrix[:interleave].T)
    text = PRODUCT.replace("x4x8xf32", f"x{4 // interleave}x8x{interleave}xf32")
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(
        _run(text.replace("panel = 8", f"panel = 8, interleave = {interleave}"), found), x @ matrix
    )


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 2, 4]), st.sampled_from([2, 8]))
def test_interleaved_panels_are_packed_and_unpacked(rows: int, columns: int, count: int, panel: int) -> None:
    matrix = np.arange(rows * columns, dtype=np.int8).reshape(rows, columns)
    layout = matrix_panels(matrix.shape, panel, Interleave(count))
    np.testing.assert_array_equal(layout.unpack(laid_out(layout, matrix)), matrix)
    filters = np.arange(4 * rows * columns, dtype=np.int8).reshape(4, rows, columns)
    layout = filter_panels(filters.shape, panel, 2, Interleave(count))
    np.testing.assert_array_equal(layout.unpack(laid_out(layout, filters)), filters)


@given(st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.sampled_from([0, 128]))
def test_each_run_of_the_depth_fills_cells_of_its_own(runs: int, run: int, columns: int, factor: int) -> None:
    matrix = np.random.default_rng(runs).integers(-128, 128, (runs * run, columns), np.int8)
    layout = matrix_panels(matrix.shape, 8, Interleave(4, run, factor))
    found = laid_out(layout, matrix)
    np.testing.assert_array_equal(layout.unpack(found), matrix)
    cells = found[:, 1:] if factor else found
    assert cells.shape == (-(-columns // 8), runs * -(-run // 4), 8, 4)
    sums = matrix.sum(axis=0, dtype=np.int32)
    np.testing.assert_array_equal(cells.sum(axis=(1, 3), dtype=np.int32).reshape(-1)[:columns], sums)
    if factor:
        first = np.ascontiguousarray(found[:, 0]).view(np.int32).reshape(-1)[:columns]
        np.testing.assert_array_equal(first, factor * sums)


@pytest.mark.parametrize("form", ["nonsense", "panels_transposed", "winograd", "strassen"])
def test_operands_that_are_packed_otherwise_are_refused(form: str) -> None:
    with pytest.raises(ModelError, match=f"the packed 'right' of glow_low.matmul is no '{form}'") as caught:
        _run(PRODUCT.replace('"panels"', f'"{form}"'), np.zeros((1, 4, 8), np.float32))
    assert caught.value.file == "given.mlir:9:3"
