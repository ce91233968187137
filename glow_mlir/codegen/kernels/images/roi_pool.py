"""The kernel of RoiPool, which takes the largest elements of cells of image regions."""

from __future__ import annotations

import math

from glow_mlir.codegen.access import computed, load, store
from glow_mlir.codegen.builder.nests import Index, linear
from glow_mlir.codegen.builder.types import i32, i64, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.interpolation import size_as
from glow_mlir.codegen.kernels.elements.index_checks import checked
from glow_mlir.codegen.kernels.images.cell_rows import CellKernel, CellRow
from glow_mlir.codegen.selection.kernel import KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.sampling import RoiPoolOp
from glow_mlir.dialects.properties import ints, number
from glow_mlir.support.dataclass import dataclass


@kernel("roi-pool")
class RoiPoolKernel(CellKernel[RoiPoolOp]):
    """A kernel that keeps the largest elements of a cell in its row."""

    name = "roi-pool"

    def emit(self, call: KernelCall[RoiPoolOp]) -> None:
        self.emit_cells(call, _Cells(call, computed(call.one("input").element)).cell)


@dataclass(frozen=True)
class _Cells(CellRow[RoiPoolOp]):
    """Emits the code of one instruction."""

    def cell(self, indices: list[Index]) -> None:
        """Compute all channels of one cell of one region."""
        call, b = self.call, self.call.b
        region, row, column = indices
        source, result = call.one("input"), call.result
        number_ = b.to_int_saturating(self._number(region, 0), i32)
        start = checked(call, b.cast(number_, i64), source.extents[0], False) * source.strides[0]
        top, bottom = self._bounds(region, 0, row, source.extents[1])
        left, right = self._bounds(region, 1, column, source.extents[2])
        self.fill(-math.inf)
        with self.lines(top, bottom) as y, b.loop(left, right) as x:
            self._add(start + y * source.strides[1] + x * source.strides[2])
        has_elements = (top < bottom) & (left < right)
        target = linear(indices, result.strides[:-1])

        def channels(channel: Index, lanes: int) -> None:
            total = self.row(channel).load(vector(self.type, lanes))
            store(b, result, channel * result.strides[-1] + target, b.select(has_elements, total, 0.0))

        self.channels(channels)

    def _number(self, region: Index, column: int) -> Value:
        """Load one of the five numbers of a region."""
        rois = self.call.one("rois")
        return load(self.call.b, rois, linear([region, column], rois.strides), 1, 1)

    def _bounds(self, region: Index, axis: int, cell: Index, size: Index) -> tuple[Value, Value]:
        """Return the range of a cell along an axis, with exclusive end; 0 is the vertical axis."""
        b, op = self.call.b, self.call.op
        scale, cells = float(number(op.spatial_scale)), float(ints(op.output_shape)[axis])
        first, last = (self._rounded(self._number(region, column) * scale) for column in (2 - axis, 4 - axis))
        length = last - first + 1.0
        step = b.select(length >= 1.0, length, 1.0) / cells
        index, limit = b.cast(b.index(cell), self.type), size_as(b, size, length)
        low, high = b.floor(index * step) + first, b.ceil((index + 1.0) * step) + first

        def limited(bound: Value) -> Value:
            # In this order, so that NaN becomes 0.
            inside = b.select(bound > 0.0, b.select(bound < limit, bound, limit), 0.0)
            return b.index(b.cast(inside, i32))

        return limited(low), limited(high)

    def _rounded(self, value: Value) -> Value:
        """Round to the nearest integer, ties away from 0."""
        b = self.call.b
        whole = b.truncate(value)
        part = value - whole
        up, down = b.select(part >= 0.5, whole + 1.0, whole), part <= -0.5
        return b.select(down, whole - 1.0, up)

    def _add(self, offset: Value) -> None:
        """Accumulate one element in all channels."""
        b, source = self.call.b, self.call.one("input")

        def channels(channel: Index, lanes: int) -> None:
            total = self.row(channel).load(vector(self.type, lanes))
            x = load(b, source, channel * source.strides[-1] + offset, 1, lanes)
            self.row(channel).store(b.maximum(x, total))

        self.channels(channels)
