"""
Depthwise convolution, one filter per channel: vectors run over channels, a tile is a few pixels of two lines.

One function per kind of tile computes all channels of a tile. For each vector of channels it goes through the input
pixels of the tile, line by line: each is loaded once and multiplied for every output of the tile that uses it. Two
lines share their reads from the L2 cache, whose bandwidth limits most shapes. A depth multiplier above 1 is a grouped
convolution (`convolution.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.bodies import Epilogue, ExtraOperand, write_masked
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import index_type, ptr, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.clipped_store import Grid, clips_numbers, store_clipped
from glow_mlir.codegen.kernels.products.convolution import ConvShape, moved
from glow_mlir.codegen.kernels.products.depthwise_dot_groups import DotGroupSums, LineGroups, depthwise_dot
from glow_mlir.codegen.kernels.products.dot_products import DotProduct
from glow_mlir.codegen.kernels.products.gemm import emit_row_tiles
from glow_mlir.codegen.kernels.products.output_pixels import Offsets
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.tile_store import ExtraKind
from glow_mlir.codegen.math.half import loaded_as, to_accumulators
from glow_mlir.dialects.element_types import bit_width, is_integer
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class DepthwiseKernel(SharedFunction):
    """
    A variant of the tile function.

    A tile is `rows` lines of `pixels` outputs. The filter has `slices` two-dimensional slices of `height` x `width`
    elements. Neighbouring outputs read inputs `strides` pixels apart, neighbouring filter elements read inputs
    `dilations` pixels apart. If `whole`, the number of channels is a multiple of the lanes.
    """

    dot: DotProduct
    lanes: int
    rows: int
    pixels: int
    slices: int
    height: int
    width: int
    strides: tuple[int, int]
    dilations: tuple[int, int]
    whole: bool
    bias: bool
    epilogue: Epilogue | None
    extras: tuple[ExtraKind, ...]

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        moving = [index for index, extra in enumerate(self.extras) if extra.moves]
        return [
            ("output", ptr),
            ("input", ptr),
            ("weights", ptr),
            ("bias", ptr),
            *((name, index_type) for name in ("channels", "input_step", "input_line", "output_step", "output_line")),
            *((f"slice{index}", index_type) for index in range(1, self.slices)),
            *((f"extra{index}", ptr) for index in range(len(self.extras))),
            *((f"extra_step{index}", index_type) for index in moving),
            *((f"extra_line{index}", index_type) for index in moving),
        ]

    @property
    def elements(self) -> int:
        """How many elements a filter has."""
        return self.slices * self.height * self.width

    @property
    def element(self) -> Attribute:
        """The element type of the accumulators."""
        return self.dot.accumulators

    @property
    def output_element(self) -> Attribute:
        """The element type of the output."""
        return self.element if self.epilogue is None else self.epilogue.element

    @property
    def readable(self) -> str:
        """A readable name of the function."""
        tile, filter_ = f"{self.rows}x{self.pixels}", f"{self.slices}x{self.height}x{self.width}"
        strides, dilations = ("x".join(map(str, pair)) for pair in (self.strides, self.dilations))
        return f"depthwise.{self.dot.readable}.{tile}.{filter_}.s{strides}.d{dilations}"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        channels, lanes = given["channels"], self.lanes
        whole = channels if self.whole else channels // lanes * lanes
        with b.loop(0, whole, lanes) as channel:
            _Channels(b, self, given, channel, None).run()
        if not self.whole:
            with b.when(whole < channels):
                mask = b.mask(channels - whole, lanes, bit_width(self.element))
                _Channels(b, self, given, whole, mask).run()


@dataclass(frozen=True)
class _Channels:
    """One vector of channels, from `channel` on, of every pixel of a tile; channels outside `mask` do not exist."""

    b: Builder
    kernel: DepthwiseKernel
    given: dict[str, Value]
    channel: Value
    mask: Value | None

    def run(self) -> None:
        """Compute and store."""
        kernel = self.kernel
        type_ = vector(kernel.element, kernel.lanes)
        start = self._read(self.given["bias"], kernel.element) if kernel.bias else self.b.constant(0.0, type_)
        accumulators = [[start] * kernel.pixels for _ in range(kernel.rows)]
        if kernel.dot.group > 1:
            self._dot_groups(start, accumulators)
        for index in range(kernel.slices if kernel.dot.group == 1 else 0):
            source = self._source(index)
            if kernel.elements <= kernel_costs(self.b.target).depthwise_elements:
                self._slice(index, source, accumulators)
            else:
                accumulators = self._looped_slice(index, source, accumulators)
        clips_at = None if kernel.epilogue is None else kernel.epilogue.clips_at
        totals = [total for line in accumulators for total in line]
        if clips_at is not None and clips_numbers(self.b, totals, clips_at):
            given, first = self.given, self.given["output"].at(self.channel, kernel.output_element)
            steps = given["output_line"], given["output_step"]
            store_clipped(self.b, totals, Grid(first, kernel.rows, kernel.pixels, *steps), clips_at)
            return
        for row, line in enumerate(accumulators):
            for pixel, total in enumerate(line):
                self._store(row, pixel, total)

    def _source(self, index: int) -> Value:
        """The first input of a slice of the filter."""
        offset = self.given[f"slice{index}"] if index else 0
        return self.given["input"].at(offset, self.kernel.dot.memory)

    def _load(self, pointer: Value, element: Attribute, offset: Index = 0) -> Value:
        """Load channels."""
        type_, in_memory = vector(loaded_as(element), self.kernel.lanes), loaded_as(element)
        address = pointer.at(self.channel + offset, in_memory)
        return address.load(type_) if self.mask is None else self.b.load_masked(address, type_, self.mask)

    def _read(self, pointer: Value, element: Attribute, offset: Index = 0) -> Value:
        """Load channels, converted to the accumulator type."""
        return to_accumulators(self.b, self._load(pointer, element, offset), element, self.kernel.element)

    def _dot_groups(self, start: Value, accumulators: list[list[Value]]) -> None:
        """Add the products of all slices by dot groups of input lines to accumulators that begin with `start`."""
        kernel, given, dot = self.kernel, self.given, self.kernel.dot
        lines = LineGroups(kernel.rows, kernel.height, kernel.strides[0], kernel.dilations[0], dot.group)
        slices: list[DotGroupSums] = []
        for index in range(kernel.slices):

            def source(line: int, position: int, first: Value = self._source(index)) -> Value:
                return self._load(first, dot.left, given["input_line"] * line + given["input_step"] * position)

            def filter_(line: int, x: int, first: int = index * kernel.height) -> Value:
                return self._load(given["weights"], dot.right, given["channels"] * ((first + line) * kernel.width + x))

            columns = kernel.pixels, kernel.width, kernel.strides[1], kernel.dilations[1]
            slices.append(DotGroupSums(self.b, dot, lines, *columns, source, filter_, {}))
        starts = [found for each in slices if (found := each.start()) is not None]
        start = functools.reduce(operator.add, starts, start)
        for line in accumulators:
            line[:] = [start] * len(line)
        for each in slices:
            each.add(accumulators)

    def _slice(self, index: int, source: Value, accumulators: list[list[Value]]) -> None:
        """Add the products of one slice of the filter, input line by input line: each pixel is loaded once."""
        kernel = self.kernel
        users: dict[int, list[tuple[int, int]]] = {}
        for row in range(kernel.rows):
            for y in range(kernel.height):
                users.setdefault(row * kernel.strides[0] + y * kernel.dilations[0], []).append((row, y))
        for line, pairs in sorted(users.items()):
            filter_ = {y: self._filter_line(index * kernel.height + y) for _, y in pairs}
            start = source.at(self.given["input_line"] * line, kernel.dot.memory)
            self._line(start, [(accumulators[row], filter_[y]) for row, y in pairs])

    def _filter_line(self, line: int) -> list[Value]:
        first, width = self.given["weights"], self.kernel.width
        element = self.kernel.dot.right
        return [self._read(first, element, self.given["channels"] * (line * width + x)) for x in range(width)]

    def _line(self, source: Value, users: list[tuple[list[Value], list[Value]]]) -> None:
        """Add the products of an input line to the rows of the tile that use it, each with its line of the filter."""
        kernel = self.kernel
        takers: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(kernel.pixels):
            for x in range(kernel.width):
                takers.setdefault(pixel * kernel.strides[1] + x * kernel.dilations[1], []).append((pixel, x))
        for position, pairs in sorted(takers.items()):
            value = self._read(source, kernel.dot.left, self.given["input_step"] * position)
            for accumulators, elements in users:
                for pixel, x in pairs:
                    accumulators[pixel] = kernel.dot.multiply_add(self.b, (value,), (elements[x],), accumulators[pixel])

    def _looped_slice(self, index: int, source: Value, accumulators: list[list[Value]]) -> list[list[Value]]:
        """
        Add the products of one slice of a large filter, in loops over its lines and blocks of their columns.

        Some products are summed at a time, and then their sums.
        """
        kernel = self.kernel
        totals = [total for line in accumulators for total in line]
        most = kernel_costs(self.b.target).depthwise_elements
        group = min(kernel.height, max(1, most // kernel.width))
        whole = kernel.height // group * group
        with self.b.loop(0, whole, group, carried=totals) as groups:
            groups.set(*self._lines(index, source, (groups.index, groups.index + group), groups.values))
        totals = groups.results
        if whole < kernel.height:
            totals = self._lines(index, source, (whole, kernel.height), totals)
        found = iter(totals)
        return [[next(found) for _ in line] for line in accumulators]

    def _lines(self, index: int, source: Value, span: tuple[Index, Index], totals: Sequence[Value]) -> Sequence[Value]:
        """Add the sum of the products of some lines of a slice of the filter."""
        b, kernel, given, costs = self.b, self.kernel, self.given, kernel_costs(self.b.target)
        is_wide = kernel.width > costs.depthwise_elements
        block = costs.depthwise_columns if is_wide else kernel.width
        blocks, rest = divmod(kernel.width, block)
        none = [b.constant(0, vector(kernel.element, kernel.lanes))] * len(totals)
        with b.loop(*span, carried=totals if is_wide else none) as lines:
            start = source.at(given["input_line"] * kernel.dilations[0] * lines.index, kernel.dot.memory)
            first = (lines.index + index * kernel.height) * kernel.width
            if is_wide:
                step = given["input_step"] * kernel.dilations[1]
                with b.loop(0, blocks * block, block, carried=lines.values) as columns:
                    moved_start = start.at(step * columns.index, kernel.dot.memory)
                    sums = self._columns(moved_start, first + columns.index, block, none)
                    columns.set(*map(operator.add, columns.values, sums))
                sums = columns.results
                if rest:
                    start = start.at(step * (blocks * block), kernel.dot.memory)
                    last = self._columns(start, first + blocks * block, rest, none)
                    sums = list(map(operator.add, sums, last))
            else:
                sums = self._columns(start, first, block, lines.values)
            lines.set(*sums)
        return lines.results if is_wide else list(map(operator.add, totals, lines.results))

    def _columns(self, source: Value, first: Index, count: int, totals: Sequence[Value]) -> list[Value]:
        """
        Add the products of some columns of a line of the filter, from its element `first` on, to all rows of the tile.

        An element of the filter is loaded where the first pixel needs it, and kept until the last one has used it.
        """
        kernel, given = self.kernel, self.given
        found, elements = list(totals), dict[int, Value]()
        takers: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(kernel.pixels):
            for x in range(count):
                takers.setdefault(pixel * kernel.strides[1] + x * kernel.dilations[1], []).append((pixel, x))
        for position, pairs in sorted(takers.items()):
            for _, x in pairs:
                if x not in elements:
                    elements[x] = self._read(given["weights"], kernel.dot.right, given["channels"] * (first + x))
            for row in range(kernel.rows):
                offset = given["input_line"] * (row * kernel.strides[0]) + given["input_step"] * position
                value = self._read(source, kernel.dot.left, offset)
                for pixel, x in pairs:
                    at = row * kernel.pixels + pixel
                    found[at] = kernel.dot.multiply_add(self.b, (value,), (elements[x],), found[at])
        return found

    def _store(self, row: int, pixel: int, total: Value) -> None:
        """Pass one vector of channels of a pixel through the epilogue and store it."""
        b, kernel, given = self.b, self.kernel, self.given
        offset = given["output_line"] * row + given["output_step"] * pixel + self.channel
        if kernel.epilogue is None:
            write_masked(b, total, given["output"].at(offset, kernel.element), self.mask)
            return
        starts: list[Index] = [
            given[f"extra_line{index}"] * row + given[f"extra_step{index}"] * pixel if kind.moves else 0
            for index, kind in enumerate(kernel.extras)
        ]
        extras = [kind.extra(given[f"extra{index}"]) for index, kind in enumerate(kernel.extras)]
        offsets = [start if extra.spread else self.channel + start for start, extra in zip(starts, extras, strict=True)]
        steps = [1, *(extra.strides[-1] for extra in extras)]
        kernel.epilogue.store(b, given["output"], extras, [offset, *offsets], steps, total, self.mask)


def emit_depthwise(
    b: Builder, operands: ProductOperands, shape: ConvShape, *, images: Partition = ALL, lines: Partition = ALL
) -> None:
    """
    Emit a depthwise convolution: `shape` has one channel and one filter per group, and as many groups as channels.

    The weights are `[*kernel, C]` as `layouts.depthwise_filters` has them, the bias has C elements. The rest is as for
    `emit_conv`. Shares are of the images, and of the first of several spatial axes. Raises `ValueError` for a shape of
    another kind.
    """
    if shape.channels != 1 or shape.filters != 1:
        raise ValueError("a depthwise convolution has one channel and one filter per group")
    flat, extras = _planar(shape), operands.extras
    dot = depthwise_dot(operands.dot, b.target, math.prod(flat.kernel))
    lanes = b.target.vector_width(dot.accumulators)
    rows, pixels = _tile(b.target, dot, flat)
    kernel = DepthwiseKernel(
        dot=dot,
        lanes=lanes,
        rows=rows,
        pixels=pixels,
        slices=math.prod(flat.kernel[:-2]),
        height=flat.kernel[-2],
        width=flat.kernel[-1],
        strides=(flat.strides[-2], flat.strides[-1]),
        dilations=(flat.dilations[-2], flat.dilations[-1]),
        whole=shape.groups % lanes == 0,
        bias=operands.bias is not None,
        epilogue=operands.epilogue,
        extras=tuple(ExtraKind(extra.element, any(extra.strides[-3:-1]), extra.spread) for extra in extras),
    )
    # The input offset of each slice of the filter; the first is 0.
    arguments: dict[str, Index] = {f"slice{i}": offset for i, offset in enumerate(_slice_offsets(flat)) if i}
    flat_extras = tuple(_planar_extra(extra, shape) for extra in extras)
    nest = _Nest(b, operands, kernel, flat, flat_extras, arguments, lines)
    with b.loop(*images.of(flat.batch)) as image:
        origin = tuple(image * extra.strides[0] for extra in flat_extras)
        nest.axis(0, image * flat.input_image, (image * flat.output_image, *origin))


def _tile(target: Target, dot: DotProduct, shape: ConvShape) -> tuple[int, int]:
    """The lines of a tile, and their pixels."""
    costs = kernel_costs(target)
    rows, pixels = costs.depthwise_lines, costs.depthwise_pixels
    if target.vector_width(dot.accumulators) == 1 and is_integer(dot.accumulators):
        return min(rows, costs.core_depthwise_lines), min(pixels, costs.core_depthwise_pixels)
    if dot.group == 1:
        return rows, pixels
    # Rows share the groups of their lines, and pixels those of a line whose filter has several columns.
    width = shape.outputs[-1] if isinstance(shape.outputs[-1], int) else pixels
    own = 1 if shape.kernel[-1] == 1 else min(pixels, max(1, width))
    return rows * pixels // own, own


def _planar(shape: ConvShape) -> ConvShape:
    """Return the same convolution with at least two spatial axes."""
    if len(shape.outputs) > 1:
        return shape
    return dataclasses.replace(
        shape,
        outputs=(1, *shape.outputs),
        kernel=(1, *shape.kernel),
        input_pitches=(0, *shape.input_pitches),
        output_pitches=(0, *shape.output_pitches),
        strides=(1, *shape.strides),
        dilations=(1, *shape.dilations),
    )


def _planar_extra(extra: ExtraOperand, shape: ConvShape) -> ExtraOperand:
    """Return an extra operand over the axes of a convolution with at least two spatial axes."""
    if len(shape.outputs) > 1:
        return extra
    return dataclasses.replace(extra, strides=(extra.strides[0], 0, *extra.strides[1:]))


@dataclass(frozen=True)
class _Nest:
    """The state shared by the loops of one convolution."""

    b: Builder
    operands: ProductOperands
    kernel: DepthwiseKernel
    shape: ConvShape
    extras: tuple[ExtraOperand, ...]
    arguments: dict[str, Index]
    share: Partition
    """The share of the steps along the first axis."""

    def axis(self, axis: int, source: Index, target: Offsets) -> None:
        """Loop over the spatial axes from `axis` on; `source` and `target` are offsets of the first pixel."""
        shape = self.shape
        count = shape.outputs[axis]
        begin, end = self.share.of(count) if axis == 0 and isinstance(count, int) else (0, count)
        if axis == len(shape.outputs) - 2:
            lines = functools.partial(self.lines, source, target)
            emit_row_tiles(self.b, begin, end - begin, self.kernel.rows, lines)
            return
        with self.b.loop(begin, end) as step:
            self.axis(axis + 1, *self._moved(source, target, step, axis))

    def lines(self, source: Index, target: Offsets, line: Index, rows: int) -> None:
        """Cut some lines into tiles."""
        body = functools.partial(self.tile, *self._moved(source, target, line, -2), rows)
        emit_row_tiles(self.b, 0, self.shape.outputs[-1], self.kernel.pixels, body)

    def _moved(self, source: Index, target: Offsets, index: Index, axis: int) -> tuple[Index, Offsets]:
        """Move the offsets of a pixel by `index` steps along a spatial axis."""
        shape, axis = self.shape, axis % len(self.shape.outputs)
        step = shape.strides[axis] * shape.input_pitches[axis]
        return index * step + source, moved(shape, self.extras, target, index, axis)

    def tile(self, source: Index, target: Offsets, rows: int, pixel: Index, pixels: int) -> None:
        """Call the tile function for some pixels of some lines."""
        shape, operands = self.shape, self.operands
        start, (output, *offsets) = self._moved(source, target, pixel, -1)
        extras: dict[str, Index] = {}
        for index, (extra, offset) in enumerate(zip(self.extras, offsets, strict=True)):
            extras[f"extra{index}"] = extra.pointer.at(offset, extra.element)
            extras[f"extra_line{index}"], extras[f"extra_step{index}"] = extra.strides[-3:-1]
        dataclasses.replace(self.kernel, rows=rows, pixels=pixels).call(
            self.b,
            output=operands.out.at(output, self.kernel.output_element),
            input=operands.inp.at(start, self.kernel.dot.memory),
            weights=operands.weights,
            bias=operands.bias_at(0),
            channels=shape.groups,
            input_step=shape.input_pitches[-1],
            input_line=shape.input_pitches[-2],
            output_step=shape.output_pitches[-1],
            output_line=shape.output_pitches[-2],
            **self.arguments,
            **extras,
        )


def _slice_offsets(shape: ConvShape) -> list[Index]:
    """Return the input offset of each slice of the filter, in the order of the weights."""
    offsets: list[Index] = [0]
    for size, dilation, pitch in zip(shape.kernel[:-2], shape.dilations, shape.input_pitches, strict=False):
        offsets = [offset + pitch * (dilation * index) for offset in offsets for index in range(size)]
    return offsets
