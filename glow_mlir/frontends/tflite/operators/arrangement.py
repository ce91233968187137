"""Operators that arrange elements anew: packs, blocks of pixels, repetitions and mirrors; no number changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import (
    ConcatOp,
    ExpandOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TileOp,
    TransposeOp,
)
from glow_mlir.dialects.glow_high.indexing import ReverseSequenceOp
from glow_mlir.dialects.shapes import normalize_axis, shape_of
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.slices import taken


@tflite_operator("PACK")
def pack(node: TfliteNode) -> SSAValue:
    """Operands of one shape along a new axis."""
    shape = node.shape(0)
    axis = normalize_axis(node.options.number(1, "i"), len(shape) + 1)
    rows = [
        node.emit(ReshapeOp, node.input(position), shape=(*shape[:axis], 1, *shape[axis:]))
        for position in range(node.count)
    ]
    return node.emit(ConcatOp, rows, axis=axis)


@tflite_operator("UNPACK")
def unpack(node: TfliteNode) -> Sequence[SSAValue]:
    """The parts of an operand along an axis, each without this axis."""
    shape = node.shape(0)
    axis = normalize_axis(node.options.number(1, "i"), len(shape))
    if not shape or shape[axis] != len(node.operator.outputs):
        raise node.unsupported(f"axis {axis} of {list(shape)} does not fit {len(node.operator.outputs)} parts")
    parts: list[SSAValue] = []
    for index in range(shape[axis]):
        starts, ends = ([0] * len(shape), list(shape))
        starts[axis], ends[axis] = index, index + 1
        part = node.emit(SliceOp, node.input(0), starts=starts, ends=ends)
        parts.append(node.emit(ReshapeOp, part, shape=(*shape[:axis], *shape[axis + 1 :])))
    return parts


@tflite_operator("DEPTH_TO_SPACE")
def depth_to_space(node: TfliteNode) -> SSAValue:
    """Blocks of channels become blocks of pixels of [N, H, W, C]; the block is the outer part of a channel."""
    block = node.step(0)
    batch, height, width, channels = node.image(0)
    if channels % block**2:
        raise node.unsupported(f"blocks of {block} do not fit {channels} channels")
    split = node.emit(ReshapeOp, node.input(0), shape=(batch, height, width, block, block, channels // block**2))
    moved = node.emit(TransposeOp, split, permutation=(0, 1, 3, 2, 4, 5))
    return node.emit(ReshapeOp, moved, shape=(batch, height * block, width * block, channels // block**2))


@tflite_operator("SPACE_TO_DEPTH")
def space_to_depth(node: TfliteNode) -> SSAValue:
    """Blocks of pixels of [N, H, W, C] become the outer part of channels."""
    block = node.step(0)
    batch, height, width, channels = node.image(0)
    if height % block or width % block:
        raise node.unsupported(f"blocks of {block} do not fit an image of {height} x {width}")
    shape = (batch, height // block, block, width // block, block, channels)
    moved = node.emit(TransposeOp, node.emit(ReshapeOp, node.input(0), shape=shape), permutation=(0, 1, 3, 2, 4, 5))
    return node.emit(ReshapeOp, moved, shape=node.output().shape)


def _blocks(node: TfliteNode) -> tuple[list[int], np.ndarray]:
    """The sizes [M] of blocks along the axes behind the batch, and the borders [M, 2]."""
    blocks, borders = node.integers(1, "the blocks").reshape(-1), node.integers(2, "the border")
    if borders.shape != (len(blocks), 2) or len(blocks) >= len(node.shape(0)) or (blocks < 1).any():
        raise node.unsupported(f"blocks {blocks.tolist()} do not fit the shape {list(node.shape(0))}")
    if (borders < 0).any():
        raise node.unsupported(f"has the border {borders.tolist()}")
    return blocks.tolist(), borders


@tflite_operator("SPACE_TO_BATCH_ND")
def space_to_batch(node: TfliteNode) -> SSAValue:
    """Blocks of pixels, behind a border of zeros, become the outer part of the batch."""
    blocks, borders = _blocks(node)
    count, rest = len(blocks), node.shape(0)[len(blocks) + 1 :]
    widths = np.zeros((len(node.shape(0)), 2), np.int64)
    widths[1 : count + 1] = borders
    found = node.output().quantization
    zero = node.splat(0 if found is None else int(found.zero_points[0]), node.input(0))
    padded = node.emit(PadOp, node.input(0), zero, pads=widths.T.reshape(-1).tolist())
    batch, *sizes = shape_of(padded)
    if any(size % block for size, block in zip(sizes, blocks)):
        raise node.unsupported(f"blocks {blocks} do not fit the sizes {sizes[:count]}")
    split = [part for size, block in zip(sizes, blocks) for part in (size // block, block)]
    divided = node.emit(ReshapeOp, padded, shape=(batch, *split, *rest))
    inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count + 1, 2)
    order = [*inner, 0, *outer, *range(2 * count + 1, 2 * count + 1 + len(rest))]
    return node.emit(ReshapeOp, node.emit(TransposeOp, divided, permutation=order), shape=node.output().shape)


@tflite_operator("BATCH_TO_SPACE_ND")
def batch_to_space(node: TfliteNode) -> SSAValue:
    """The outer part of the batch becomes blocks of pixels, from which a border is cut off."""
    blocks, borders = _blocks(node)
    count, shape, number = len(blocks), node.shape(0), int(np.prod(blocks))
    if shape[0] % number:
        raise node.unsupported(f"blocks {blocks} do not fit a batch of {shape[0]}")
    divided = node.emit(ReshapeOp, node.input(0), shape=(*blocks, shape[0] // number, *shape[1:]))
    pairs = [axis for index in range(count) for axis in (count + 1 + index, index)]
    rest = range(2 * count + 1, count + len(shape))
    moved = node.emit(TransposeOp, divided, permutation=[count, *pairs, *rest])
    sizes = [size * block for size, block in zip(shape[1:], blocks)]
    whole = (shape[0] // number, *sizes, *shape[count + 1 :])
    parts = [range(size) for size in whole]
    for index, (before, after) in enumerate(borders.tolist()):
        parts[index + 1] = range(before, sizes[index] - after)
    return taken(node, node.emit(ReshapeOp, moved, shape=whole), parts)


@tflite_operator("REVERSE_V2")
def reverse(node: TfliteNode) -> SSAValue:
    """The elements along some axes in reverse order."""
    axes = {normalize_axis(axis, len(node.shape(0))) for axis in node.integers(1, "the axes").reshape(-1).tolist()}
    parts = [range(size)[::-1] if axis in axes else range(size) for axis, size in enumerate(node.shape(0))]
    return taken(node, node.input(0), parts)


@tflite_operator("REVERSE_SEQUENCE")
def reverse_sequence(node: TfliteNode) -> SSAValue:
    """The first elements along an axis in reverse order, as many as an operand says for each index of another axis."""
    axes = {"time_axis": node.options.number(0, "i"), "batch_axis": node.options.number(1, "i")}
    return node.emit(ReverseSequenceOp, node.input(0), node.input(1), **axes)


@tflite_operator("TILE")
def tile(node: TfliteNode) -> SSAValue:
    """The whole operand repeated along each axis."""
    return node.emit(TileOp, node.input(0), repeats=node.integers(1, "the number of repetitions").reshape(-1).tolist())


@tflite_operator("BROADCAST_TO")
def broadcast_to(node: TfliteNode) -> SSAValue:
    """The operand repeated along axes of size 1 and new axes, to the shape of the result."""
    return node.emit(ExpandOp, node.input(0), shape=node.shape_by(1))


SYMMETRIC = 1
"""The number of the mode of MIRROR_PAD that repeats the elements at the border."""


@tflite_operator("MIRROR_PAD")
def mirror_pad(node: TfliteNode) -> SSAValue:
    """A border in which the operand is mirrored, with or without its outermost elements."""
    widths, value = node.integers(1, "the width of the border"), node.input(0)
    if widths.shape != (len(node.shape(0)), 2) or (widths < 0).any():
        raise node.unsupported(f"the border {widths.tolist()} does not fit {len(node.shape(0))} axes")
    if node.options.number(0, "b") != SYMMETRIC:
        return node.emit(PadOp, value, pads=widths.T.reshape(-1).tolist(), mode="reflect")
    for axis, (before, after) in enumerate(widths.tolist()):
        size = node.shape(0)[axis]
        if max(before, after) > size:
            raise node.unsupported(f"the border {[before, after]} is wider than the {size} elements that it mirrors")
        ends = (range(before)[::-1], range(size - after, size)[::-1])
        mirrored = [_part(node, value, axis, part) for part in ends]
        value = node.emit(ConcatOp, [mirrored[0], value, mirrored[1]], axis=axis) if before or after else value
    return value


def _part(node: TfliteNode, value: SSAValue, axis: int, part: range) -> SSAValue:
    """The elements at these indices along an axis."""
    parts = [part if other == axis else range(size) for other, size in enumerate(shape_of(value))]
    return taken(node, value, parts)
