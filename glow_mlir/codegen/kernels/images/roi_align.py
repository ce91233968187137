"""The kernel of RoiAlign, which pools regions of images into cells."""

from __future__ import annotations

import math

from glow_mlir.codegen.access import computed, load, read_index, store
from glow_mlir.codegen.builder.nests import Index, linear
from glow_mlir.codegen.builder.types import i32, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.interpolation import size_as
from glow_mlir.codegen.kernels.elements.index_checks import checked
from glow_mlir.codegen.kernels.images.cell_rows import CellKernel, CellRow
from glow_mlir.codegen.selection.kernel import KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.sampling import RoiAlignOp
from glow_mlir.dialects.properties import flag, integer, ints, number, text
from glow_mlir.support.dataclass import dataclass

FEW_SAMPLES = 16
"""Up to this number of samples of a cell along an axis, all are computed, even outside of the image."""

_ROUNDING = 2.0**-20
"""The largest relative error of a coordinate after a few operations in f32."""


@kernel("roi-align")
class RoiAlignKernel(CellKernel[RoiAlignOp]):
    """A kernel that accumulates the samples of a cell in its row."""

    name = "roi-align"

    def emit(self, call: KernelCall[RoiAlignOp]) -> None:
        self.emit_cells(call, _Cells(call, computed(call.one("input").element)).cell)


@dataclass(frozen=True)
class _Axis:
    """One axis of a region: its start, the length of a cell, and the number of samples of a cell."""

    start: Value
    step: Value
    count: Value


@dataclass(frozen=True)
class _Samples:
    """The range of samples of a cell along one axis that may be in the image; `end` is exclusive."""

    first: Value
    end: Value


@dataclass(frozen=True)
class _Sample:
    """The two elements around one sample along one axis, their weights, and whether the sample is in the image."""

    elements: tuple[Value, Value]
    weights: tuple[Value, Value]
    inside: Value


@dataclass(frozen=True)
class _Cells(CellRow[RoiAlignOp]):
    """Emits the code of one instruction."""

    def cell(self, indices: list[Index]) -> None:
        """Compute all channels of one cell of one region."""
        call, b = self.call, self.call.b
        region, row, column = indices
        source = call.one("input")
        batch_indices = call.one("batch_indices")
        image = checked(
            call, read_index(b, batch_indices, linear([region], batch_indices.strides)), source.extents[0], False
        )
        start = image * source.strides[0]
        rows, columns = self._axis(region, 0), self._axis(region, 1)
        is_mean = text(self.call.op.mode) == "avg"
        self.fill(0.0 if is_mean else -math.inf)
        lines, pixels = self._near(rows, row, source.extents[1]), self._near(columns, column, source.extents[2])
        with self.lines(lines.first, lines.end) as y:
            vertical = self._sample(rows, row, y, source.extents[1])
            with b.loop(pixels.first, pixels.end) as x:
                horizontal = self._sample(columns, column, x, source.extents[2])
                self._add(start, vertical, horizontal, is_mean)
        if not is_mean:
            with b.when(_are_fewer(lines, rows) | _are_fewer(pixels, columns)):
                self.channels(self._outside)
        self._store(indices, rows, columns, is_mean)

    def _axis(self, region: Index, axis: int) -> _Axis:
        """Return an axis of a region; 0 is the vertical axis, 1 the horizontal axis."""
        b, rois, op = self.call.b, self.call.one("rois"), self.call.op
        scale, half = float(number(op.spatial_scale)), flag(op.half_pixel)
        low, high = (
            load(b, rois, linear([region, column], rois.strides), 1, 1) * scale - (0.5 if half else 0.0)
            for column in (1 - axis, 3 - axis)
        )
        length = high - low if half else b.max(high - low, 1.0)
        step = length / float(ints(op.output_shape)[axis])
        ratio = integer(op.sampling_ratio)
        count = b.index(ratio) if ratio else b.index(b.to_int_saturating(b.max(b.ceil(step), 0.0), i32))
        return _Axis(low, step, count)

    def _near(self, axis: _Axis, cell: Index, size: Index) -> _Samples:
        """
        Return the samples of a cell that may be in an image of a given size along an axis.

        So the time for a region is limited by the size of the image. The range has some more samples, since coordinates
        are rounded. It has all samples if they are few or coincide.
        """
        b = self.call.b
        every = [b.index(0), axis.count]
        if 0 < integer(self.call.op.sampling_ratio) <= FEW_SAMPLES:
            return _Samples(*every)

        def near() -> list[Value]:
            apart = axis.step / b.cast(axis.count, self.type)
            start = axis.start + b.cast(b.index(cell), self.type) * axis.step
            ends = [(border - start) / apart - 0.5 for border in (b.constant(-1.0, self.type), size_as(b, size, start))]
            slack = (b.fabs(ends[0]) + b.fabs(ends[1])) * _ROUNDING + 2.0
            first = b.max(b.index(b.to_int_saturating(b.min(*ends) - slack, i32)), 0)
            end = b.index(b.to_int_saturating(b.max(*ends) + slack, i32))
            coincide = apart.eq(0.0)
            found = (b.min(first, axis.count), b.min(end, axis.count))
            return [b.select(coincide, whole, some) for whole, some in zip(every, found, strict=True)]

        return _Samples(*b.either(axis.count > FEW_SAMPLES, near, lambda: every))

    def _sample(self, axis: _Axis, cell: Index, sample: Value, size: Index) -> _Sample:
        """Return the elements around a sample of a cell."""
        b = self.call.b
        position, count = b.cast(sample, self.type), b.cast(axis.count, self.type)
        coordinate = axis.start + b.cast(b.index(cell), self.type) * axis.step + (position + 0.5) * axis.step / count
        inside = (coordinate >= -1.0) & (coordinate <= size_as(b, size, coordinate))
        x = b.min(b.max(coordinate, 0.0), size_as(b, size - 1, coordinate))
        before = b.floor(x)
        low = b.index(b.cast(before, i32))
        fraction = x - before
        return _Sample((low, b.min(low + 1, size - 1)), (1.0 - fraction, fraction), inside)

    def _add(self, start: Value, rows: _Sample, columns: _Sample, is_mean: bool) -> None:
        """Accumulate one sample in all channels; a sample outside of the image is 0."""
        b, source = self.call.b, self.call.one("input")
        inside = rows.inside & columns.inside
        corners = [
            (y * source.strides[1] + x * source.strides[2] + start, b.select(inside, v * w, 0.0))
            for y, v in zip(rows.elements, rows.weights, strict=True)
            for x, w in zip(columns.elements, columns.weights, strict=True)
        ]

        def channels(channel: Index, lanes: int) -> None:
            total = self.row(channel).load(vector(self.type, lanes))
            for offset, weight in corners:
                x = load(b, source, channel * source.strides[-1] + offset, 1, lanes)
                total = b.fma(x, weight, total) if is_mean else b.maximum(x * weight, total)
            self.row(channel).store(total)

        with b.when(inside):
            self.channels(channels)
        if not is_mean:
            with b.when(~inside):
                self.channels(self._outside)

    def _outside(self, channel: Index, lanes: int) -> None:
        """Accumulate 0, a sample outside of the image, in some channels."""
        total = self.row(channel).load(vector(self.type, lanes))
        self.row(channel).store(self.call.b.max(total, 0.0))

    def _store(self, indices: list[Index], rows: _Axis, columns: _Axis, is_mean: bool) -> None:
        """Store the result of a cell; 0 if the region has no samples."""
        b, result = self.call.b, self.call.result
        count = b.cast(rows.count, self.type) * b.cast(columns.count, self.type)
        divisor = b.max(count, 1.0)
        target = linear(indices, result.strides[:-1])

        def channels(channel: Index, lanes: int) -> None:
            total = self.row(channel).load(vector(self.type, lanes))
            value = total / divisor if is_mean else b.select(count > 0.0, total, 0.0)
            store(b, result, channel * result.strides[-1] + target, value)

        self.channels(channels)


def _are_fewer(samples: _Samples, axis: _Axis) -> Value:
    """Whether some samples along an axis are certainly outside of the image."""
    return (samples.first > 0) | (samples.end < axis.count)
