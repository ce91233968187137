"""
Convolution with 3x3 filters by Winograd's algorithm, F(2x2, 3x3) or F(4x4, 3x3); see `glow_mlir.winograd`.

    for each block of tiles {
        input transform of all channels, into `inputs` [point][tile][channel]
        for each panel of filters {
            for each point: matrix product, into `products` [point][tile][filter of the panel]
            output transform, bias and epilogue
        }
    }

The transforms are functions that all layers share, apart from the epilogue. A tile that reaches beyond the input is
first copied into a patch filled up with zeros; of one that reaches beyond the output, only what exists is stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from glow_mlir.codegen.bodies import Epilogue, Plane
from glow_mlir.codegen.builder import Builder
from glow_mlir.codegen.kernels.convolution import ConvShape
from glow_mlir.codegen.kernels.gemm import Columns, GemmOptions, emit_blocks, emit_gemm, emit_panels
from glow_mlir.codegen.kernels.image_tiles import GRID, STEPS, TileOutput, Tiles, plane_arguments, plane_kinds
from glow_mlir.codegen.kernels.tiles import tile_for
from glow_mlir.codegen.kernels.winograd_transforms import emit_product
from glow_mlir.codegen.shared_function import SharedFunction
from glow_mlir.codegen.target import Target, element_bits
from glow_mlir.codegen.types import f32, i64, ptr, vector
from glow_mlir.codegen.value import Index, Value
from glow_mlir.winograd import POINTS, TAPS, transforms

PADDING = 16
"""Elements between the points of a buffer: the same tile of all points would else meet in few lines of the cache."""

BLOCK_TILES = 24
"""
Tiles of a block: as many as let the weights be read seldom, and few enough that their inputs stay near. From 18 to 144
tiles the time of a layer changes by 5 %.
"""

TRANSFORMING = 14
"""
To how many products the transforms compare: for each channel, and for each filter, at each point of a tile. Measured
as about 9; the rest is a margin, for loops around small products.
"""

READING = 8
"""To how many products the time compares that it takes to read one element of the filters from memory."""


def tile_outputs(
    target: Target, element: Attribute, extents: Sequence[int], batch: int, channels: int, filters: int
) -> int | None:
    """
    Outputs of a line of the tiles for images of `extents`; `None` where the plain kernel is faster.

    Costs are counted in products, for each channel and filter. There is one for each point of a tile, or for each
    output and element of the filter; points have to be transformed, and filters read. Transforms go by whole vectors of
    channels and of filters.
    """
    lanes = target.vector_width(element)
    if channels % lanes or filters % lanes:
        return None
    work = 1 + TRANSFORMING / channels + TRANSFORMING / filters
    costs: dict[int | None, float] = {None: TAPS**2 * (batch * math.prod(extents) + READING)}
    for outputs in POINTS:
        costs[outputs] = (outputs + TAPS - 1) ** 2 * (count_tiles(outputs, extents, batch) * work + READING)
    return min(costs, key=costs.__getitem__)


def count_tiles(outputs: int, extents: Sequence[int], batch: int) -> int:
    """How many tiles cover the output images."""
    return batch * math.prod(-(-extent // outputs) for extent in extents)


@dataclass(frozen=True)
class Blocking:
    """How a convolution is cut into tiles and blocks: `tiles` of all images, `block` of them at once."""

    outputs: int
    tiles: int
    block: int
    channels: int
    panel: int

    @property
    def points(self) -> int:
        """Points of a tile."""
        return (self.outputs + TAPS - 1) ** 2

    @property
    def input_step(self) -> int:
        """Elements from one point to the next in the transformed input."""
        return self.block * self.channels + PADDING

    @property
    def product_step(self) -> int:
        """Elements from one point to the next in the products."""
        return self.block * self.panel + PADDING

    def scratch(self) -> list[tuple[int, ...]]:
        """The shapes of the buffers that `emit_winograd` works in: inputs, products, and the patch."""
        inputs = (self.points, self.input_step)
        products = (self.points, self.product_step)
        return [inputs, products, (self.points, self.channels)]


def blocking(
    target: Target, element: Attribute, outputs: int, extents: Sequence[int], batch: int, channels: int
) -> Blocking:
    """How to cut a convolution with output images of `extents` and that many input channels."""
    tiles = count_tiles(outputs, extents, batch)
    return Blocking(outputs, tiles, min(tiles, BLOCK_TILES), channels, tile_for(target, element).panel)


@dataclass(frozen=True)
class InputTransform(SharedFunction):
    """The function that transforms the input of a block of tiles."""

    element: Attribute
    lanes: int
    outputs: int

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        numbers = (*GRID, *STEPS, "height", "width", "channels", "point_step")
        return [*((name, ptr) for name in ("points", "input", "patch")), *((name, i64) for name in numbers)]

    @property
    def readable(self) -> str:
        """What the function is called."""
        return f"winograd.input.{self.outputs}"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        line = b.stack(self.element, (self.outputs + TAPS - 1) ** 2 * self.lanes)
        with b.loop(0, given["count"]) as index:
            start, line_step, pixel_step = self._source(b, given, index)
            target = given["points"].at(index * given["channels"], self.element)
            with b.loop(0, given["channels"], self.lanes) as channel:
                source, points = start.at(channel, self.element), target.at(channel, self.element)
                self._transform(b, source, line_step, pixel_step, points, given["point_step"], line)

    def _source(self, b: Builder, given: dict[str, Value], index: Value) -> list[Value]:
        """Where the input of a tile begins, and its steps from line to line and from pixel to pixel."""
        size = self.outputs + TAPS - 1
        image, y, x = Tiles(b, given, self.outputs).place(index)
        offset = image * given["image_step"] + y * given["line_step"] + x * given["pixel_step"]
        source = given["input"].at(offset, self.element)
        height, width = b.min(given["height"] - y, size), b.min(given["width"] - x, size)
        channels = given["channels"]

        def patch() -> list[Value]:
            zero = b.constant(0.0, vector(self.element, self.lanes))
            with b.loop(0, channels * (size * size), self.lanes) as place:
                given["patch"].at(place, self.element).store(zero)
            with b.loop(0, height) as line, b.loop(0, width) as pixel:
                read = source.at(line * given["line_step"] + pixel * given["pixel_step"], self.element)
                written = given["patch"].at((line * size + pixel) * channels, self.element)
                with b.loop(0, channels, self.lanes) as channel:
                    written.at(channel, self.element).store(read.at(channel, self.element).load(zero.type))
            return [given["patch"], channels * size, channels]

        whole = (height >= size) & (width >= size)
        return b.either(whole, lambda: [source, given["line_step"], given["pixel_step"]], patch)

    def _transform(
        self, b: Builder, source: Value, line_step: Value, pixel_step: Value, points: Value, step: Value, buffer: Value
    ) -> None:
        """Transform one vector of channels of a tile: its columns into the buffer, then the lines of that."""
        matrix = transforms(self.outputs).input
        size, type_ = len(matrix), vector(self.element, self.lanes)
        with b.loop(0, size) as x:
            column = source.at(x * pixel_step, self.element)
            values = [column.at(line_step * y, self.element).load(type_) for y in range(size)]
            for y, value in enumerate(emit_product(b, matrix, values)):
                buffer.at((x + y * size) * self.lanes, self.element).store(value)
        with b.loop(0, size) as y:
            row = buffer.at(y * (size * self.lanes), self.element)
            values = [row.at(x * self.lanes, self.element).load(type_) for x in range(size)]
            target = points.at(y * (step * size), self.element)
            for x, value in enumerate(emit_product(b, matrix, values)):
                target.at(step * x, self.element).store(value)


@dataclass(frozen=True)
class OutputTransform(TileOutput):
    """The function that transforms the products of a block of tiles and one panel of filters, and stores them."""

    outputs: int
    panel: int

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        numbers = ("height", "width", "columns", "point_step")
        return [*super().parameters, ("products", ptr), *((name, i64) for name in numbers)]

    @property
    def readable(self) -> str:
        """What the function is called."""
        return f"winograd.output.{self.outputs}"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        buffer = b.stack(self.element, self.outputs * (self.outputs + TAPS) * self.lanes)
        with b.loop(0, given["count"]) as index:
            image, y, x = Tiles(b, given, self.outputs).place(index)
            height = b.min(given["height"] - y, self.outputs)
            width = b.min(given["width"] - x, self.outputs)
            places = [image * step[0] + y * step[1] + x * step[2] for step in self.steps(given)]
            products = given["products"].at(index * self.panel, self.element)
            with b.loop(0, given["columns"], self.lanes) as channel:
                self._columns(b, products.at(channel, self.element), given["point_step"], buffer)
                with b.loop(0, height) as line:
                    starts = [p + line * step[1] for p, step in zip(places, self.steps(given), strict=True)]
                    self._line(b, given, buffer, line, width, starts, channel)

    def _columns(self, b: Builder, products: Value, step: Value, buffer: Value) -> None:
        """Transform the columns of one vector of a tile into the buffer, [output line][column]."""
        matrix = transforms(self.outputs).output
        size, type_ = self.outputs + TAPS - 1, vector(self.element, self.lanes)
        with b.loop(0, size) as x:
            column = products.at(x * step, self.element)
            values = [column.at(step * (y * size), self.element).load(type_) for y in range(size)]
            for y, value in enumerate(emit_product(b, matrix, values)):
                buffer.at((x + y * size) * self.lanes, self.element).store(value)

    def _line(
        self,
        b: Builder,
        given: dict[str, Value],
        buffer: Value,
        line: Value,
        width: Value,
        places: Sequence[Value],
        channel: Value,
    ) -> None:
        """Transform one line of the buffer, and store those of its pixels that exist."""
        size, type_ = self.outputs + TAPS - 1, vector(self.element, self.lanes)
        row = buffer.at(line * (size * self.lanes), self.element)
        values = [row.at(x * self.lanes, self.element).load(type_) for x in range(size)]
        results = buffer.at(self.outputs * size * self.lanes, self.element)
        bias = given["bias"].at(channel, self.element).load(type_) if self.bias else None
        for x, value in enumerate(emit_product(b, transforms(self.outputs).output, values)):
            results.at(x * self.lanes, self.element).store(value if bias is None else value + bias)
        steps = [step[2] for step in self.steps(given)]
        with b.loop(0, width, carried=list(places)) as pixels:
            value = results.at(pixels.index * self.lanes, self.element).load(type_)
            self.store(b, given, value, pixels.values, channel)
            pixels.set(*(place + step for place, step in zip(pixels.values, steps, strict=True)))


def emit_winograd(
    b: Builder,
    out: Value,
    inp: Value,
    packed_filters: Value,
    bias: Value | None,
    shape: ConvShape,
    *,
    cut: Blocking,
    scratch: Sequence[Value],
    element: Attribute = f32,
    epilogue: Epilogue | None = None,
    planes: Sequence[Plane] = (),
) -> None:
    """
    Emit a convolution of two spatial dimensions in one group, with a 3x3 filter, strides and dilations of one.

    `packed_filters` are as `packing.pack_winograd` makes them, aligned to a whole vector; channels and filters are
    multiples of a vector. `scratch` has buffers of the shapes that `cut` wants. The rest is as for `emit_conv`.
    """
    lanes = b.target.vector_width(element)
    nest = _Nest(
        b,
        shape,
        cut,
        InputTransform(element, lanes, cut.outputs),
        OutputTransform(element, lanes, bias is not None, epilogue, plane_kinds(planes), cut.outputs, cut.panel),
        out,
        inp,
        packed_filters,
        bias,
        tuple(planes),
        tuple(scratch),
    )
    emit_blocks(b, cut.tiles, tile_for(b.target, element).rows, cut.block, nest.block)


@dataclass(frozen=True)
class _Nest:
    """What the loops of one convolution share."""

    b: Builder
    shape: ConvShape
    cut: Blocking
    input: InputTransform
    output: OutputTransform
    out: Value
    inp: Value
    filters: Value
    bias: Value | None
    planes: tuple[Plane, ...]
    scratch: tuple[Value, ...]

    def block(self, first: Index, tiles: Index) -> None:
        """Compute a block of tiles."""
        inputs, _, patch = self.scratch
        height, width = self.shape.outputs
        self.input.call(
            self.b,
            points=inputs,
            input=self.inp,
            patch=patch,
            height=height + TAPS - 1,
            width=width + TAPS - 1,
            image_step=self.shape.input_image,
            line_step=self.shape.input_pitches[0],
            pixel_step=self.shape.input_pitches[1],
            channels=self.cut.channels,
            point_step=self.cut.input_step,
            **self._tiles(first, tiles),
        )
        element, tile = self.input.element, tile_for(self.b.target, self.input.element)
        depth = self.cut.points * self.cut.channels
        emit_panels(
            self.b,
            self.filters,
            self.shape.filters,
            depth,
            tile,
            element,
            lambda columns: self._panel(columns, first, tiles),
        )

    def _tiles(self, first: Index, tiles: Index) -> dict[str, Index]:
        """Which tiles a block has, and how many there are in a line and in an image."""
        height, width = (-(-extent // self.cut.outputs) for extent in self.shape.outputs)
        return {"first": first, "count": tiles, "across": width, "image_tiles": height * width}

    def _panel(self, columns: Columns, first: Index, tiles: Index) -> None:
        """Multiply the inputs of a block with a panel of filters, point by point, and transform the products."""
        b, cut, element = self.b, self.cut, self.input.element
        inputs, products, _ = self.scratch
        channels, panel = cut.channels, cut.panel
        with b.loop(0, cut.points) as point:
            emit_gemm(
                b,
                products.at(point * cut.product_step, element),
                inputs.at(point * cut.input_step, element),
                columns.weights.at(point * (channels * panel), element),
                None,
                tiles,
                columns.count,
                channels,
                channels,
                panel,
                element=element,
                options=GemmOptions(prefetch=self._prefetch(tiles)),
            )
        height, width = self.shape.outputs
        self.output.call(
            b,
            output=self.out.at(columns.start, self.output.output_element),
            products=products,
            bias=self.out if self.bias is None else self.bias.at(columns.start, element),
            height=height,
            width=width,
            image_step=self.shape.output_image,
            line_step=self.shape.output_pitches[0],
            pixel_step=self.shape.output_pitches[1],
            columns=columns.count,
            point_step=cut.product_step,
            **self._tiles(first, tiles),
            **plane_arguments(self.planes, columns.start),
        )

    def _prefetch(self, tiles: Index) -> bool:
        """
        Whether to fetch the filters of the next point while one is multiplied: where several tiles of rows share that,
        and all filters are more than the cache holds.
        """
        element, tile = self.input.element, tile_for(self.b.target, self.input.element)
        width = element_bits(element) // 8
        if not (isinstance(tiles, int) and isinstance(filters := self.shape.filters, int)):
            return False
        held = self.cut.points * self.cut.channels * filters * width
        return tiles > tile.rows and held > self.b.target.l2_bytes // 2
