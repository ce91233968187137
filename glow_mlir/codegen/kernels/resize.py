"""The kernel of resizing: places and weights are tables, made when compiling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import f64

from glow_mlir.codegen.access import computed, lanes_for, load, store
from glow_mlir.codegen.builder.nests import Index, linear, nest, vector_nest
from glow_mlir.codegen.builder.types import i32, i64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box, box_steps, copy_box
from glow_mlir.codegen.lines import moved_by
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.dialects.target import Target
from glow_mlir.interpreter.resize import AxisSampling, samplings
from glow_mlir.support.dataclass import dataclass

MAX_UNROLLED = 16
"""Elements that one of the result is made of, whose products are unrolled; with more, matrix products are better."""

LARGEST_TABLE = 1 << 14
"""Entries of a table, at most: LLVM takes long over large constants."""


@kernel("resize")
class ResizeKernel(Kernel[ResizeOp]):
    """
    Each place of the result reads its elements and weights from tables; vectors run over the axes that do not change.

    Repetitions by whole factors are copies whose source stands still. What lies outside the input is left to the
    lowering, and so are kernels widened by antialiasing.
    """

    name = "resize"
    AXES = ("lines",)
    RUN_TIME_SIZES = True

    def accepts(self, op: ResizeOp) -> bool:
        axes = list(samplings(op))
        taps = math.prod(sampling.indices.shape[1] for sampling in axes)
        fits = all(sampling.indices.size <= LARGEST_TABLE and not sampling.outside.any() for sampling in axes)
        real = text(op.mode) == "nearest" or is_float(element_of(op.input))
        return real and fits and taps <= MAX_UNROLLED

    def emit(self, call: KernelCall[ResizeOp]) -> None:
        op = call.op
        axes = {sampling.axis: sampling for sampling in samplings(op)}
        if not (text(op.mode) == "nearest" and _repeat(call, axes)):
            _interpolate(call, axes)

    def cuts(self, op: ResizeOp, target: Target) -> Mapping[str, int]:
        return {"lines": box_steps(shape_of(op.outputs()[0]), target)}


def _repetition(sampling: AxisSampling, size: int) -> int | None:
    """How often each element of an axis comes, where all come equally often."""
    factor = len(sampling.indices) // size
    regular = np.array_equal(sampling.indices[:, 0], np.repeat(np.arange(size), factor))
    return factor if regular else None


def _repeat(call: KernelCall, axes: dict[int, AxisSampling]) -> bool:
    """Copy with whole factors; false where one is not whole."""
    source, result = call.one("input"), call.result
    shape: list[Index] = []
    into: list[int] = []
    out_of: list[int] = []
    for axis, (size, extent) in enumerate(zip(source.sizes, source.extents, strict=True)):
        factor = _repetition(axes[axis], largest(size)) if axis in axes else 1
        if factor is None:
            return False
        shape += [extent, factor]
        into += [factor * result.strides[axis], result.strides[axis]]
        out_of += [source.strides[axis], 0]
    copy_box(call.b, tuple(shape), Box(result, tuple(into)), Box(source, tuple(out_of)), call.share("lines"))
    return True


@dataclass(frozen=True)
class _Tap:
    """One element of the input that counts: its offset, and its weight unless that is 1."""

    offset: Index
    weight: Value | None


def _interpolate(call: KernelCall[ResizeOp], axes: dict[int, AxisSampling]) -> None:
    """Loops over the places up to the last axis that changes, then over vectors of the others."""
    b, source, result = call.b, call.one("input"), call.result
    depth = max(axes, default=-1) + 1
    inner = result.extents[depth:]
    into, out_of = Box(result, result.strides[depth:]), Box(source, source.strides[depth:])
    type_ = computed(source.element)
    last = (source.strides[-1], result.strides[-1]) if inner else (1, 1)
    width = lanes_for(call.target, type_, last, 2)

    def point(place: list[Index]) -> None:
        taps = _taps(call, axes, place)
        target = into.moved(place, result.strides[:depth])
        if len(taps) == 1 and taps[0].weight is None:
            copy_box(b, inner, target, Box(source, out_of.strides, taps[0].offset))
            return

        def blend(outer: list[Index], i: Index, lanes: int) -> None:
            within = [*outer, i] if inner else []
            total: Value | None = None
            for tap in taps:
                x = load(b, source, linear(within, out_of.strides) + tap.offset, 1, lanes)
                assert tap.weight is not None
                total = x * tap.weight if total is None else b.fma(x, tap.weight, total)
            assert total is not None
            store(b, result, target.offset_of(within), total)

        extents = inner or (1,)
        vector_nest(b, extents, width, blend)

    nest(b, result.extents[:depth], point, call.share("lines"))


def _taps(call: KernelCall[ResizeOp], axes: dict[int, AxisSampling], place: Sequence[Index]) -> list[_Tap]:
    """All elements that one place of the result is made of."""
    b, source = call.b, call.one("input")
    taps = [_Tap(0, None)]
    for axis, position in enumerate(place):
        stride = source.strides[axis]
        sampling = axes.get(axis)
        if sampling is None:
            taps = [_Tap(moved_by(tap.offset, position, stride), tap.weight) for tap in taps]
            continue
        count = sampling.indices.shape[1]
        wide = int(np.abs(sampling.indices).max(initial=0)) * abs(stride) >= 1 << 31
        offsets = b.symbol(call.module.table((sampling.indices * stride).astype(np.int64 if wide else np.int32)))
        entry = i64 if wide else i32
        here = b.index(position) * count
        moves = [b.index(offsets.at(here + tap, entry).load(entry)) for tap in range(count)]
        if not isinstance(size := source.extents[axis], int):
            moves = [b.min(move, (size - 1) * stride) for move in moves]
        weights: list[Value | None] = [None]
        if text(call.op.mode) != "nearest":
            type_ = computed(source.element)
            dtype = np.float64 if type_ == f64 else np.float32
            table = b.symbol(call.module.table(sampling.weights.astype(dtype)))
            weights = [table.at(here + tap, type_).load(type_) for tap in range(count)]
        taps = [
            _Tap(move + tap.offset, weight if tap.weight is None or weight is None else tap.weight * weight)
            for tap in taps
            for move, weight in zip(moves, weights, strict=True)
        ]
    return taps
