"""
Prologues of 1x1 convolutions: the body is applied to a block of lines, which the product then reads.

The block stays in the cache in between, so that the results of the body never go to memory. The body is applied to each
element once, whatever the number of filters. Threads have blocks of their own. If there are few blocks, threads share
each block: every thread applies the body to some of its lines, then multiplies it by some of the filters.
"""

from __future__ import annotations

import dataclasses
import math

from glow_mlir.codegen.bodies import ExtraOperand, Prologue
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import chunks, linear, nest
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.convolution import ConvShape, conv_cut, emit_conv
from glow_mlir.codegen.kernels.products.gemm import GemmOptions, unevenness
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.tiles import Tile
from glow_mlir.dialects.glow_low.memory import contiguous_strides
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


def block_lines(outputs: Shape, target: Target) -> int:
    """Return the lines of the first spatial axis in a block: enough for the rows of a product."""
    return min(outputs[0], -(-kernel_costs(target).block_rows // max(1, math.prod(outputs[1:]))))


@dataclass(frozen=True)
class SharedBlocks:
    """The number of blocks of an image that threads share one by one; the axis along which they do, and its steps."""

    count: int
    axis: str
    steps: int


def shared_blocks(shape: ConvShape, outputs: Shape, channels: int, tile: Tile, target: Target) -> SharedBlocks | None:
    """
    Return how threads share each block; `None` if each thread has its own blocks.

    They share blocks that are very uneven among them, if the rows or columns of a block are less uneven; they have to
    wait for each other twice in each block.
    """
    costs, lines, threads = kernel_costs(target), block_lines(outputs, target), target.policy.threads
    blocks = -(-outputs[0] // lines)
    if outputs[0] % lines:
        return None
    axis, steps = conv_cut(_dense_block(shape, (lines, *outputs[1:]), channels), tile, target)
    waiting = blocks * costs.uneven_percent / 100
    less_uneven = unevenness(steps, threads) + waiting < unevenness(blocks, threads)
    return SharedBlocks(blocks, axis, steps) if less_uneven else None


def _dense_block(shape: ConvShape, extents: Shape, channels: int) -> ConvShape:
    """Return the shape of the convolution of a block of lines in the scratch buffer."""
    pitches = contiguous_strides((*extents, channels))[:-1]
    return dataclasses.replace(shape, outputs=extents, input_pitches=pitches, strides=(1,) * len(extents), batch=1)


@dataclass(frozen=True)
class BlockedConv:
    """
    A 1x1 convolution with a prologue; `scratch` has the size of a block of inputs.

    The body is applied to the share `body` of the lines of blocks; then blocks are multiplied with `options`. Either is
    `None` if another function does this step. If `block` is given, only the block with this number, among those of all
    images, is computed.
    """

    b: Builder
    shape: ConvShape
    outputs: Shape
    channels: int
    operands: ProductOperands
    source: ExtraOperand
    prologue: Prologue
    scratch: Value
    options: GemmOptions | None
    body: Partition | None = ALL
    share: Partition = ALL
    """The share of the blocks."""
    block: Value | None = None
    blocks: int = 1
    """The number of blocks of an image, if `block` is given."""

    def emit(self) -> None:
        """Emit loops over images and blocks of lines."""
        if self.block is not None:
            lines = block_lines(self.outputs, self.b.target)
            self._block(self.block // self.blocks, self.block % self.blocks * lines, lines)
            return
        with self.b.loop(0, self.shape.batch) as image:
            self._blocks(image)

    def _blocks(self, image: Value) -> None:
        """Emit a loop over the blocks of an image."""
        lines, height = block_lines(self.outputs, self.b.target), self.outputs[0]
        whole, blocks = height // lines, -(-height // lines)
        begin, end = self.share.within(blocks, 0, whole)
        with self.b.loop(begin * lines, end * lines, lines) as line:
            self._block(image, line, lines)
        if rest := height - whole * lines:
            with self.b.loop(*self.share.within(blocks, whole, 1)):
                self._block(image, whole * lines, rest)

    def _block(self, image: Index, line: Index, lines: int) -> None:
        """Apply the body to `lines` lines, then multiply them."""
        shape = self.shape
        extents = (lines, *self.outputs[1:])
        if self.body is not None:
            self._pack(image, line, extents, self.body)
        if self.options is None:
            return
        block = _dense_block(shape, extents, self.channels)
        offset = image * shape.output_image + line * shape.output_pitches[0]
        operands = dataclasses.replace(
            self.operands,
            out=self.operands.out.at(offset, self.operands.output_element),
            inp=self.scratch,
            extras=tuple(extra.moved(linear([image, line], extra.strides[:2])) for extra in self.operands.extras),
        )
        emit_conv(self.b, operands, block, options=self.options)

    def _pack(self, image: Index, line: Index, extents: Shape, share: Partition) -> None:
        """
        Fill the scratch buffer, or a share of it, with the body's results for the pixels of some output lines, channels
        last.
        """
        b, element, operands = self.b, self.operands.element, (self.source, *self.prologue.extras)
        strides = self.shape.strides
        width = b.target.vector_width(element) * kernel_costs(b.target).prologue_vectors
        dense = contiguous_strides((*extents, self.channels))

        def pixel(indices: list[Index]) -> None:
            first, *rest = indices
            position = [image, *(i * stride for i, stride in zip((line + first, *rest), strides, strict=True))]
            bases = [linear(position, operand.strides[:-1]) for operand in operands]
            into = linear(indices, dense[:-1])
            for start, stop, lanes in chunks(self.channels, width):
                with b.loop(start, stop, lanes) as channel:
                    loaded = [
                        operand.read(b, base if operand.spread else channel + base, operand.strides[-1], lanes)
                        for operand, base in zip(operands, bases, strict=True)
                    ]
                    value = self.prologue.apply(b, loaded[0], loaded[1:])
                    self.scratch.at(channel + into, element).store(value)

        nest(b, extents, pixel, share)
