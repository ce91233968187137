"""
Depthwise convolution, one filter per channel: vectors run over channels, a tile is a few pixels of one line.

One function per kind of tile does all channels of it: for each vector of channels the filter's elements and the
input pixels are loaded once, and every pixel of the tile takes what it needs of them. A multiplier above one is a
grouped convolution (`convolution.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from glow_mlir.codegen.bodies import Epilogue, Plane, write_masked
from glow_mlir.codegen.builder import Builder
from glow_mlir.codegen.kernels.convolution import ConvShape, Places, placed
from glow_mlir.codegen.kernels.gemm import emit_row_tiles
from glow_mlir.codegen.kernels.tile_store import PlaneKind
from glow_mlir.codegen.share import ALL, Share
from glow_mlir.codegen.shared_function import SharedFunction
from glow_mlir.codegen.target import element_bits
from glow_mlir.codegen.types import f32, i64, ptr, vector
from glow_mlir.codegen.value import Index, Value

PIXELS = 6
"""Pixels of a tile: as many as leave registers for one line of a filter on a machine with sixteen."""


@dataclass(frozen=True)
class DepthwiseKernel(SharedFunction):
    """
    Which variant of the tile function.

    `lines` counts the one-dimensional slices of the filter, `width` the elements of one. Neighbouring outputs read
    inputs `stride` pixels apart, neighbouring elements of the filter `dilation` pixels.
    """

    element: Attribute
    lanes: int
    pixels: int
    lines: int
    width: int
    stride: int
    dilation: int
    bias: bool
    epilogue: Epilogue | None
    planes: tuple[PlaneKind, ...]

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        return [
            ("output", ptr),
            ("input", ptr),
            ("weights", ptr),
            ("bias", ptr),
            *((name, i64) for name in ("channels", "input_step", "output_step")),
            *((f"line{index}", i64) for index in range(1, self.lines)),
            *((f"plane{index}", ptr) for index in range(len(self.planes))),
            *((f"plane_step{index}", i64) for index, plane in enumerate(self.planes) if plane.moves),
        ]

    @property
    def output_element(self) -> Attribute:
        """The element type of the output."""
        return self.element if self.epilogue is None else self.epilogue.element

    @property
    def readable(self) -> str:
        """What the function is called."""
        shape = f"{self.pixels}.{self.lines}x{self.width}.s{self.stride}.d{self.dilation}"
        return f"depthwise.{self.element}.{shape}"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        channels, lanes = given["channels"], self.lanes
        whole = channels // lanes * lanes
        with b.loop(0, whole, lanes) as channel:
            _channels(b, self, given, channel, None)
        if lanes > 1:
            with b.when(whole < channels):
                mask = b.mask(channels - whole, lanes, element_bits(self.element))
                _channels(b, self, given, whole, mask)


def _channels(b: Builder, kernel: DepthwiseKernel, given: dict[str, Value], channel: Value, mask: Value | None) -> None:
    """Compute and store one vector of channels of every pixel of the tile."""
    type_ = vector(kernel.element, kernel.lanes)

    def read(pointer: Value) -> Value:
        return pointer.load(type_) if mask is None else b.load_masked(pointer, type_, mask)

    start = read(given["bias"].at(channel, kernel.element)) if kernel.bias else b.constant(0.0, type_)
    sums = [start] * kernel.pixels
    source = given["input"].at(channel, kernel.element)
    weights = given["weights"].at(channel, kernel.element)
    for line in range(kernel.lines):
        row = source.at(given[f"line{line}"], kernel.element) if line else source
        elements = [
            read(weights.at(given["channels"] * (line * kernel.width + x), kernel.element)) for x in range(kernel.width)
        ]
        # Neighbouring outputs share input pixels: each is loaded once.
        loaded: dict[int, Value] = {}
        for x, element in enumerate(elements):
            for pixel in range(kernel.pixels):
                place = pixel * kernel.stride + x * kernel.dilation
                if place not in loaded:
                    loaded[place] = read(row.at(given["input_step"] * place, kernel.element))
                sums[pixel] = b.fma(loaded[place], element, sums[pixel])
    for pixel, total in enumerate(sums):
        _store(b, kernel, given, pixel, channel, total, mask)


def _store(
    b: Builder,
    kernel: DepthwiseKernel,
    given: dict[str, Value],
    pixel: int,
    channel: Value,
    total: Value,
    mask: Value | None,
) -> None:
    """Pass one vector of channels of a pixel through the epilogue and store it."""
    offset = given["output_step"] * pixel + channel
    if kernel.epilogue is None:
        write_masked(b, total, given["output"].at(offset, kernel.element), mask)
        return
    places = [given[f"plane_step{index}"] * pixel if kind.moves else 0 for index, kind in enumerate(kernel.planes)]
    planes = [kind.plane(given[f"plane{index}"]) for index, kind in enumerate(kernel.planes)]
    offsets = [place if plane.spread else channel + place for place, plane in zip(places, planes, strict=True)]
    steps = [1, *(plane.strides[-1] for plane in planes)]
    kernel.epilogue.store(b, given["output"], planes, [offset, *offsets], steps, total, mask)


def emit_depthwise(
    b: Builder,
    out: Value,
    inp: Value,
    weights: Value,
    bias: Value | None,
    shape: ConvShape,
    *,
    element: Attribute = f32,
    epilogue: Epilogue | None = None,
    planes: Sequence[Plane] = (),
    images: Share = ALL,
    lines: Share = ALL,
) -> None:
    """
    Emit a depthwise convolution: `shape` has one channel and one filter per group, and as many groups as channels.

    `weights` are `[*kernel, C]` as `packing.pack_depthwise` makes them, `bias` has C elements. The rest is
    as for `emit_conv`. Shares are of the images, and of the first spatial axis of several. Raises `ValueError` for a
    shape of another kind.
    """
    if shape.channels != 1 or shape.filters != 1:
        raise ValueError("a depthwise convolution has one channel and one filter per group")
    kernel = DepthwiseKernel(
        element,
        b.target.vector_width(element),
        PIXELS,
        math.prod(shape.kernel[:-1]),
        shape.kernel[-1],
        shape.strides[-1],
        shape.dilations[-1],
        bias is not None,
        epilogue,
        tuple(PlaneKind(plane.element, plane.strides[-2] != 0, plane.spread) for plane in planes),
    )
    # Offsets in the input of the lines of the filter, the first at zero.
    arguments: dict[str, Index] = {f"line{i}": offset for i, offset in enumerate(_line_offsets(shape)) if i}
    nest = _Nest(
        b, kernel, shape, out, inp, weights, bias if bias is not None else out, tuple(planes), arguments, lines
    )
    with b.loop(*(images.of(shape.batch) if isinstance(shape.batch, int) else (0, shape.batch))) as image:
        places = tuple(image * plane.strides[0] for plane in planes)
        nest.axis(0, image * shape.input_image, (image * shape.output_image, *places))


@dataclass(frozen=True)
class _Nest:
    """What the loops of one convolution share."""

    b: Builder
    kernel: DepthwiseKernel
    shape: ConvShape
    out: Value
    inp: Value
    weights: Value
    bias: Value
    planes: tuple[Plane, ...]
    arguments: dict[str, Index]
    lines: Share

    def axis(self, axis: int, source: Index, target: Places) -> None:
        """Loop over the spatial axes from `axis` on; `source` and `target` are offsets of the first pixel."""
        shape = self.shape
        if axis == len(shape.outputs) - 1:
            # A long line of the filter needs registers that pixels could have.
            most = PIXELS if shape.kernel[-1] <= 5 else PIXELS - 2
            body = functools.partial(self.tile, source, target)
            emit_row_tiles(self.b, 0, shape.outputs[-1], most, body)
            return
        count = shape.outputs[axis]
        begin, end = self.lines.of(count) if axis == 0 and isinstance(count, int) else (0, count)
        with self.b.loop(begin, end) as step:
            self.axis(
                axis + 1,
                step * (shape.strides[axis] * shape.input_pitches[axis]) + source,
                placed(shape, self.planes, target, step, axis),
            )

    def tile(self, source: Index, target: Places, row: Index, pixels: int) -> None:
        """Call the tile function for some pixels of the last axis."""
        shape = self.shape
        step = shape.strides[-1] * shape.input_pitches[-1]
        output, *places = placed(shape, self.planes, target, row, len(shape.outputs) - 1)
        planes: dict[str, Index] = {}
        for index, (plane, place) in enumerate(zip(self.planes, places, strict=True)):
            planes[f"plane{index}"] = plane.pointer.at(place, plane.element)
            planes[f"plane_step{index}"] = plane.strides[-2]
        dataclasses.replace(self.kernel, pixels=pixels).call(
            self.b,
            output=self.out.at(output, self.kernel.output_element),
            input=self.inp.at(row * step + source, self.kernel.element),
            weights=self.weights,
            bias=self.bias,
            channels=shape.groups,
            input_step=shape.input_pitches[-1],
            output_step=shape.output_pitches[-1],
            **self.arguments,
            **planes,
        )


def _line_offsets(shape: ConvShape) -> list[Index]:
    """Return where each line of the filter starts in the input, in the order of the weights."""
    offsets: list[Index] = [0]
    for size, dilation, pitch in zip(shape.kernel[:-1], shape.dilations, shape.input_pitches, strict=False):
        offsets = [offset + pitch * (dilation * index) for offset in offsets for index in range(size)]
    return offsets
