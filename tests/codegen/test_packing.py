"""Layouts are the same, packed by machine code or by numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from emitted import TARGETS, aligned, compiled
from emulators import machine_for
from execute import Case, module_of
from packed import laid_out
from xdsl.dialects.builtin import i8
from xdsl.ir import Attribute

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.partition import Partition
from glow_mlir.codegen.builder.types import f32, f64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box
from glow_mlir.codegen.kernels.products.dot_products import dot_group_product
from glow_mlir.codegen.kernels.products.pack import emit_packing
from glow_mlir.codegen.kernels.products.tiles import tile_for
from glow_mlir.codegen.selection.kernel import Operand
from glow_mlir.constants.layouts import (
    Interleave,
    depthwise_filters,
    filter_panels,
    gate_blocks,
    grouped_panels,
    matrix_panels,
    winograd_panels,
)
from glow_mlir.constants.tiled_layout import TiledLayout
from glow_mlir.constants.winograd import TileForm
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_low.memory import AllocOp, buffer_type
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function

PARTS = 3
"""Into how many parts packing is cut."""

SIZES = [(5, 7), (3, 8), (2, 3), (1, 1), (6, 37), (33, 150)]
"""Depth and columns: panels that are whole, in part, or both."""


def packed_by_code(name: str, layout: TiledLayout, plain: np.ndarray, element: Attribute) -> np.ndarray:
    """What machine code for a target makes of an operand, in parts; what it leaves alone is 1 in each byte."""
    shapes = (layout.shape, plain.shape)

    def body(b: Builder, arguments: list[Value]) -> None:
        *pointers, part = arguments
        buffers = [AllocOp.of(buffer_type(shape, element)).result for shape in shapes]
        packed, source = (Operand(*pair) for pair in zip(pointers, buffers, strict=True))
        emit_packing(b, layout, packed, Box.all_of(source), Partition(part, PARTS))

    found = np.ones(layout.shape, plain.dtype)
    found.view(np.uint8)[...] = 1
    found = aligned(found)
    function = compiled(PRESETS[name], 2, 1, body)
    for part in range(PARTS):
        function(found, aligned(plain), part)
    return found


def numbers(*shape: int, element: Attribute = f32) -> np.ndarray:
    return np.random.default_rng(0).integers(-100, 100, shape).astype(numpy_dtype(element))


@pytest.mark.parametrize("element", [f32, f64, i8], ids=str)
@pytest.mark.parametrize(("depth", "columns"), SIZES)
@pytest.mark.parametrize("name", TARGETS)
def test_panels(name: str, depth: int, columns: int, element: Attribute) -> None:
    """Matrices as they are stored, alone and in groups, and filters of images with channels together and apart."""
    plain, filters = numbers(depth, columns, element=element), numbers(2 * columns, 2, 3, depth, element=element)
    several = numbers(3, depth, columns, element=element)
    for operand, layout in [
        (several, grouped_panels(several.shape, 8)),
        (several.swapaxes(1, 2), grouped_panels((3, columns, depth), 8, transposed=True)),
        (plain, matrix_panels(plain.shape, 8)),
        (plain.T, matrix_panels((columns, depth), 8, transposed=True)),
        (filters, filter_panels(filters.shape, 8, 2)),
        (filters, filter_panels(filters.shape, 8, by_channel=True)),
    ]:
        found = packed_by_code(name, layout, np.ascontiguousarray(operand), element)
        np.testing.assert_array_equal(found, laid_out(layout, operand))


@pytest.mark.parametrize("name", TARGETS)
def test_depthwise_filters_and_gates(name: str) -> None:
    filters, weights = numbers(13, 3, 2, 1), numbers(13, 52)
    found = packed_by_code(name, depthwise_filters(filters.shape), filters, f32)
    np.testing.assert_array_equal(found, laid_out(depthwise_filters(filters.shape), filters))
    for together in (1, 2, 4):
        layout = gate_blocks(weights.shape, together, 8)
        np.testing.assert_array_equal(packed_by_code(name, layout, weights, f32), laid_out(layout, weights))


def interleave_of(name: str, run: int) -> Interleave | None:
    """How the products of bytes on a target read runs of the depth; `None` where it has no instruction for them."""
    target = PRESETS[name]
    for count in (4, 16):
        for sums in (0, 128):
            try:
                dot_group_product(i8, found := Interleave(count, run, sums), target)
            except LookupError:
                continue
            return found
    return None


CELL_TARGETS = [name for name in TARGETS if interleave_of(name, 1) is not None]


def test_some_targets_have_cells() -> None:
    assert "avx2" in CELL_TARGETS or "neon" in CELL_TARGETS


@pytest.mark.parametrize(("depth", "columns"), [*SIZES, (40, 70)])
@pytest.mark.parametrize("name", CELL_TARGETS)
def test_cells(name: str, depth: int, columns: int) -> None:
    """Columns that there are, of matrices and of filters, whose runs are lines of the kernel."""
    plain, filters = numbers(depth, columns, element=i8), numbers(2 * columns, 2, 3, depth, element=i8)
    several = numbers(3, depth, columns, element=i8)
    panel = dot_group_product(i8, interleave_of(name, 1) or Interleave(), PRESETS[name]).tile(PRESETS[name]).panel
    cases: list[tuple[np.ndarray, int, Callable[[Interleave], TiledLayout]]] = [
        (plain, depth, lambda of: matrix_panels(plain.shape, panel, of)),
        (np.ascontiguousarray(plain.T), depth, lambda of: matrix_panels((columns, depth), panel, of, transposed=True)),
        (several, depth, lambda of: grouped_panels(several.shape, panel, of)),
        (filters, 3 * depth, lambda of: filter_panels(filters.shape, panel, 2, of)),
        (filters, 3, lambda of: filter_panels(filters.shape, panel, 1, of, by_channel=True)),
    ]
    for operand, run, make in cases:
        interleave = interleave_of(name, run)
        assert interleave is not None
        layout = make(interleave)
        found, wanted = packed_by_code(name, layout, operand, i8), laid_out(layout, operand)
        np.testing.assert_array_equal(layout.unpack(found), operand)
        count = layout.sizes["n"] % panel
        np.testing.assert_array_equal(found[..., : count or panel, :], wanted[..., : count or panel, :])


@pytest.mark.parametrize("tile", [TileForm(2, 2), TileForm(4, 2, 2)], ids=str)
@pytest.mark.parametrize("name", TARGETS)
def test_winograd(name: str, tile: TileForm) -> None:
    panel = tile_for(PRESETS[name], f32).panel
    filters = numbers(panel + panel // 2, 3, 3, 16)
    layout = winograd_panels(filters.shape, panel, tile)
    found = layout.unpack(packed_by_code(name, layout, filters, f32))
    np.testing.assert_allclose(found, filters, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("left", [np.uint8, np.int8])
@pytest.mark.parametrize("target", ["neon-dotprod", "cortex-m55"])
def test_operands_of_a_call_on_other_machines(target: str, left: type[np.generic]) -> None:
    """
    Dot groups behind a row of sums, which shift the left bytes to the other sign; filters in one group and in two.
    """
    machine, random, info = machine_for(target), np.random.default_rng(0), np.iinfo(np.dtype(left).name)
    rows, image = (random.integers(info.min, info.max, shape, left, endpoint=True) for shape in ((9, 37), (1, 7, 7, 6)))
    matrix, filters, halves = (
        random.integers(-128, 127, shape, np.int8, endpoint=True) for shape in ((37, 50), (20, 3, 3, 6), (20, 3, 3, 3))
    )
    module, inputs = module_of(
        Case(MatMulOp, rows, matrix),
        Case(MatMulOp, rows, np.ascontiguousarray(matrix.T), transpose_right=True),
        Case(ConvOp, image, filters, None),
        Case(ConvOp, image, halves, None, group=2),
    )
    wanted = run_function(module.clone(), inputs)
    found = machine.run(Compilation(module, target=target).artifact(), inputs).outputs
    for name, sums in wanted.items():
        np.testing.assert_array_equal(found[name], sums)
