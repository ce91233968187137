"""Images [N, H, W, C] in other sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES, numpy_dtype
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, GreaterOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import FLOAT_FUNCTIONS
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator

FRACTION_BITS = 10
"""The fraction bits of coordinates of int8 and int16."""


def _rules(node: TfliteNode, first: int) -> tuple[bool, bool]:
    """Whether corners are aligned, and whether coordinates are those of the centers of pixels."""
    is_aligned, has_centers = (bool(node.options.number(first + field, "?")) for field in (0, 1))
    return is_aligned, has_centers


def _sizes(node: TfliteNode) -> Sequence[tuple[int, int]]:
    """The height before and after, and the width."""
    before, after = node.image(0), node.output().shape
    if len(after) != 4 or (before[0], before[3]) != (after[0], after[3]):
        raise node.unsupported(f"from {list(before)} to {list(after)} is not supported")
    if 0 in (*before[1:3], *after[1:3]):
        raise node.unsupported("of images without elements is not supported")
    wanted = node.fold(node.input(1))
    if wanted is not None and wanted.reshape(-1).tolist() != [*after[1:3]]:
        raise node.unsupported(f"to {list(after)} is not to the size {wanted.reshape(-1).tolist()}")
    return list(zip(before[1:3], after[1:3], strict=True))


@tflite_operator("RESIZE_BILINEAR")
def resize_bilinear(node: TfliteNode) -> SSAValue:
    """An image in another size, by linear interpolation; those of int8 and int16 have coordinates in fixed point."""
    is_aligned, has_centers = _rules(node, 2)
    _sizes(node)
    if node.is_float():
        rule = "align_corners" if is_aligned else "half_pixel" if has_centers else "asymmetric"
        return node.emit(ResizeOp, node.input(0), shape=node.output().shape, mode="linear", coordinates=rule)
    dtype = node.tensor(0).dtype
    if dtype == "uint8":
        found = _between(node, [_in_floats(*sizes, is_aligned, has_centers) for sizes in _sizes(node)], f32)
        found = node.emit(FLOAT_FUNCTIONS["floor"], node.emit(AddOp, found, node.splat(0.5, f32)))
        return node.cast(found, ELEMENT_TYPES[dtype])
    if dtype not in ("int8", "int16"):
        raise node.unsupported(f"of {dtype} is not supported")
    wide = i64 if dtype == "int16" else i32
    total = _between(node, [_in_fixed_point(*sizes, is_aligned, has_centers) for sizes in _sizes(node)], wide)
    half = node.splat(1 << (2 * FRACTION_BITS - 1), wide)
    is_above = node.emit(GreaterOp, total, node.splat(0, wide))
    moved = node.emit(WhereOp, is_above, node.emit(AddOp, total, half), node.emit(SubOp, total, half))
    return node.cast(node.emit(DivOp, moved, node.splat(1 << (2 * FRACTION_BITS), wide)), ELEMENT_TYPES[dtype])


Lines = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""For each index of the result along an axis: the indices before and behind it, and the weights of both."""


def _in_fixed_point(before: int, after: int, is_aligned: bool, has_centers: bool) -> Lines:
    """Coordinates with 10 fraction bits."""
    one = 1 << FRACTION_BITS
    scale = (one * before + after // 2) // after
    if is_aligned and after > 1:
        scale = (one * (before - 1) + (after - 1) // 2) // (after - 1)
    at = np.arange(after, dtype=np.int64) * scale + (scale // 2 - one // 2 if has_centers else 0)
    first = np.maximum(np.trunc(at / one).astype(np.int64), 0)
    last = np.minimum(np.trunc((at + one - 1) / one).astype(np.int64), before - 1)
    return first, last, one - (at - one * first), at - one * first


def _in_floats(before: int, after: int, is_aligned: bool, has_centers: bool) -> Lines:
    """Coordinates of f32."""
    single = np.float32
    scale = single(before) / single(after)
    if is_aligned and after > 1:
        scale = single(before - 1) / single(after - 1)
    numbers = np.arange(after).astype(single)
    at = (numbers + single(0.5)) * scale - single(0.5) if has_centers else numbers * scale
    first = np.maximum(np.floor(at).astype(np.int64), 0)
    last = np.minimum(np.ceil(at).astype(np.int64), before - 1)
    rest = at - first.astype(single)
    return first, last, single(1) - rest, rest


def _between(node: TfliteNode, lines: Sequence[Lines], kind: Attribute) -> SSAValue:
    """The sum of four pixels around each pixel of the result, times the weights of their row and their column."""
    value, total = node.input(0), None
    for column, row in ((0, 0), (0, 1), (1, 0), (1, 1)):
        part = value
        for axis, side in enumerate((row, column)):
            part = node.emit(GatherOp, part, node.constant(lines[axis][side], f"{node.name}.indices"), axis=axis + 1)
        part = node.cast(part, kind)
        for axis, side in enumerate((row, column)):
            shape = (-1, 1, 1) if axis == 0 else (-1, 1)
            weights = lines[axis][side + 2].reshape(shape).astype(numpy_dtype(kind))
            part = node.emit(MulOp, part, node.constant(weights, f"{node.name}.weights"))
        total = part if total is None else node.emit(AddOp, total, part)
    assert total is not None
    return total


@tflite_operator("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(node: TfliteNode) -> SSAValue:
    """An image in another size, of the nearest pixels, whose coordinates are computed in f32."""
    is_aligned, has_centers = _rules(node, 0)
    value, single = node.input(0), np.float32
    for axis, (before, after) in enumerate(_sizes(node)):
        scale = single(before) / single(after)
        if is_aligned and after > 1:
            scale = single(before - 1) / single(after - 1)
        at = (np.arange(after).astype(single) + single(0.5 if has_centers else 0)) * scale
        nearest = np.floor(at + single(0.5)) if is_aligned else np.floor(at)
        indices = np.minimum(nearest.astype(np.int64), before - 1)
        value = node.emit(GatherOp, value, node.constant(indices, f"{node.name}.indices"), axis=axis + 1)
    return value
