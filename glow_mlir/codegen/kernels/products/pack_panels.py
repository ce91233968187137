"""Packing of matrices in panels at run time, as `glow_mlir/constants/layouts.py` has them."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import steps_of
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.types import f32, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.copies import Box, copy_box
from glow_mlir.codegen.kernels.products.gemm import emit_panels
from glow_mlir.codegen.kernels.products.tiles import Columns, Tile, tile_for
from glow_mlir.dialects.element_types import bit_width, is_float


def emit_pack_panels(
    b: Builder,
    packed: Value,
    matrix: Value,
    n: Index,
    k: Index,
    row_pitch: Index,
    *,
    element: Attribute = f32,
    tile: Tile | None = None,
    share: Partition = ALL,
) -> None:
    """
    Emit the packing of a matrix at run time, as `layouts.matrix_panels` has it.

    `matrix` points to `[k, n]`; its rows are `row_pitch` elements apart. `packed` has `ceil(n / panel) * k * panel`
    elements. Vectors of the last panel without a column are not written. Shares divide the panels.
    """
    tile = tile or tile_for(b.target, element)
    zero = b.constant(0.0, vector(element, tile.lanes))

    def rows(columns: Columns) -> None:
        with b.loop(0, k) as row:
            target = columns.weights.at(row * tile.panel, element)
            source = matrix.at(row * row_pitch + columns.start, element)
            for v in range(columns.vectors):
                _copy_vector(b, target, source, v, columns, tile, element, zero)

    emit_panels(b, packed, n, k, tile, element, rows, share)


def _copy_vector(
    b: Builder, target: Value, source: Value, v: int, columns: Columns, tile: Tile, element: Attribute, zero: Value
) -> None:
    """Copy one vector of a row of a panel; lanes after the last column become zero."""
    start = v * tile.lanes
    address = target.at(start, element)
    if not columns.partial:
        address.store(source.at(start, element).load(zero.type))
    elif tile.lanes == 1:
        value = b.either(
            b.index(columns.count) > start, lambda: [source.at(start, element).load(element)], lambda: [zero]
        )
        address.store(value[0])
    else:
        left = columns.count - start
        mask = b.mask(left, tile.lanes, bit_width(element))
        address.store(b.load_masked(source.at(start, element), zero.type, mask))


def emit_pack_transposed(
    b: Builder,
    packed: Box,
    matrix: Box,
    n: Index,
    k: Index,
    *,
    tile: Tile | None = None,
    share: Partition = ALL,
) -> None:
    """
    Emit the packing of a transposed matrix `[n, k]` with the strides of `matrix`, as `emit_pack_panels` does for
    `[k, n]`; squares are transposed in registers. Only operand and offset of `packed` are used.

    Columns after the last one become zero in the vectors that hold columns, in all of them if their number is only
    known at run time: results computed from them are never stored, but products of what memory happens to hold may be
    denormal, which takes many times as long.
    """
    element = packed.operand.element
    tile = tile or tile_for(b.target, element)
    panel, (pitch, _) = tile.panel, matrix.strides
    whole, rest = n // panel, n % panel

    def clear(number: Index, columns: Index) -> None:
        first, last = 0, tile.vectors
        if isinstance(columns, int):
            first, last = columns // tile.lanes, steps_of(columns, tile.lanes)
        address = packed.operand.pointer.at(packed.offset + number * (k * panel), element)
        with b.loop(0, k) as row:
            for v in range(first, last):
                address.at(row * panel + v * tile.lanes, element).store(b.constant(0.0, vector(element, tile.lanes)))

    def pack(number: Index, columns: Index) -> None:
        target = replace(packed, strides=(1, panel), offset=packed.offset + number * (k * panel))
        source = replace(matrix, offset=matrix.offset + number * (panel * pitch))
        copy_box(b, (columns, k), target, source)

    panels = steps_of(n, panel)
    if whole != 0:
        with b.loop(*share.within(panels, 0, whole)) as number:
            pack(number, panel)
    if rest != 0:
        with b.loop(*share.within(panels, whole, 1)), b.when(rest > 0):
            if is_float(element):
                clear(whole, rest)
            pack(whole, rest)
