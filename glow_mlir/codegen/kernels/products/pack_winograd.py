"""
The transform of filters for Winograd's algorithm at run time, as `glow_mlir/constants/layouts.py` has them.

    for each panel of filters {
        move its taps to the end of its weights, as [tap][channel][filter of the panel]
        for each vector of a tap: compute its weights
    }
"""

from __future__ import annotations

import math

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import f32, index_type, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box, move_box
from glow_mlir.codegen.kernels.products.gemm import emit_panels
from glow_mlir.codegen.kernels.products.tiles import Columns, tile_for
from glow_mlir.codegen.kernels.products.winograd_transforms import emit_product
from glow_mlir.codegen.selection.kernel import Operand
from glow_mlir.constants.winograd import TAPS, TileForm
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class FilterTransform(SharedFunction):
    """
    The function that computes the weights `[weight][step]` of a panel from its taps `[tap][step]`, which are stored
    where the last weights belong. A step is a number of rows with `row` contiguous elements each.
    """

    lanes: int
    row: int
    form: TileForm

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        return [("weights", ptr), ("step", index_type)]

    @property
    def readable(self) -> str:
        """A readable name of the function."""
        return f"winograd.filter.{self.form.height}x{self.form.width}.{self.form.stride}"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        lines, pixels = self.form.weights
        found, columns = (b.stack(f32, count) for count in (lines * pixels * self.row, lines * TAPS * self.lanes))
        with b.loop(0, given["step"], self.row) as start:
            row = given["weights"].at(start, f32)
            # The weights of a row only overwrite taps of the same row, which have been read.
            taps = row.at(given["step"] * (lines * pixels - TAPS**2), f32)
            with b.loop(0, self.row, self.lanes) as lane:
                self._transform(b, taps.at(lane, f32), given["step"], found.at(lane, f32), columns)
            # Writing weight after weight for one vector would use only few cache sets.
            with b.loop(0, lines * pixels) as weight, b.loop(0, self.row, self.lanes) as lane:
                value = found.at(weight * self.row + lane, f32).load(vector(f32, self.lanes))
                row.at(weight * given["step"] + lane, f32).store(value)

    def _transform(self, b: Builder, taps: Value, step: Value, weights: Value, buffer: Value) -> None:
        """Transform one vector of all taps: the columns into the buffer, then its lines."""
        (lines, pixels), type_ = self.form.weights, vector(f32, self.lanes)
        vertical, horizontal = self.form.axes
        with b.loop(0, TAPS) as x:
            column = taps.at(x * step, f32)
            values = [column.at(step * (y * TAPS), f32).load(type_) for y in range(TAPS)]
            for y, value in enumerate(emit_product(b, vertical.filter, values)):
                buffer.at((x + y * TAPS) * self.lanes, f32).store(value)
        with b.loop(0, lines) as y:
            row = buffer.at(y * (TAPS * self.lanes), f32)
            values = [row.at(x * self.lanes, f32).load(type_) for x in range(TAPS)]
            target = weights.at(y * (pixels * self.row), f32)
            for x, value in enumerate(emit_product(b, horizontal.filter, values)):
                target.at(x * self.row, f32).store(value)


def emit_pack_winograd(b: Builder, packed: Operand, filters: Box, form: TileForm, share: Partition = ALL) -> None:
    """
    Emit the transform of filters `[O, 3, 3, C]` at run time, as `layouts.winograd_panels` has them.

    Columns after the last filter are unspecified. Shares divide the panels.
    """
    tile, (count, *_, channels) = tile_for(b.target, f32), filters.operand.shape
    depth, size = TAPS**2 * channels, math.prod(form.weights) * channels

    def panel(columns: Columns) -> None:
        behind = (size - depth) * tile.panel
        target = Box(packed, (1, tile.panel), columns.start * size + behind)
        source = Box(filters.operand, (depth, 1), columns.start * depth + filters.offset)
        move_box(b, (columns.count, depth), target, source)
        FilterTransform(tile.lanes, tile.panel, form).call(b, weights=columns.weights, step=channels * tile.panel)

    emit_panels(b, packed.pointer, count, size, tile, f32, panel, share)
