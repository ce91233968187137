"""The kernel of resizing: offsets and weights are tables that are computed at compile time."""

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
"""The largest number of inputs per result, whose products are unrolled; with more, matrix products are better."""

MAX_TABLE = 1 << 14
"""The largest number of entries of a table: LLVM is slow for large constants."""


@kernel("resize")
class ResizeKernel(Kernel[ResizeOp]):
    """
    Each element of the result reads the offsets and weights of its inputs from tables; vectors run over axes that are
    not resized.

    Repetitions by integer factors are copies with stride 0. Samples outside the input and kernels widened by
    antialiasing are left to the lowering.
    """

    name = "resize"
    AXES = ("lines",)
    RUN_TIME_SIZES = True

    def accepts(self, op: ResizeOp) -> bool:
        axes = list(samplings(op))
        taps = math.prod(sampling.indices.shape[1] for sampling in axes)
        fits = all(sampling.indices.size <= MAX_TABLE and not sampling.outside.any() for sampling in axes)
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
    """Return how often each element of an axis is repeated; `None` if not all are repeated equally often."""
    factor = len(sampling.indices) // size
    regular = np.array_equal(sampling.indices[:, 0], np.repeat(np.arange(size), factor))
    return factor if regular else None


def _repeat(call: KernelCall, axes: dict[int, AxisSampling]) -> bool:
    """Emit a copy for repetitions by integer factors; return false if a factor is not an integer."""
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
    """One element of the input that contributes: its offset, and its weight, `None` for 1."""

    offset: Index
    weight: Value | None


def _interpolate(call: KernelCall[ResizeOp], axes: dict[int, AxisSampling]) -> None:
    """Emit loops over the axes up to the last resized one, then over vectors of the other axes."""
    b, source, result = call.b, call.one("input"), call.result
    depth = max(axes, default=-1) + 1
    inner = result.extents[depth:]
    into, out_of = Box(result, result.strides[depth:]), Box(source, source.strides[depth:])
    type_ = computed(source.element)
    last = (source.strides[-1], result.strides[-1]) if inner else (1, 1)
    width = lanes_for(call.target, type_, last, 2)

    def point(indices: list[Index]) -> None:
        taps = _taps(call, axes, indices)
        target = into.moved(indices, result.strides[:depth])
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


def _taps(call: KernelCall[ResizeOp], axes: dict[int, AxisSampling], indices: Sequence[Index]) -> list[_Tap]:
    """Return all input elements that contribute to a result at some indices."""
    b, source = call.b, call.one("input")
    taps = [_Tap(0, None)]
    for axis, position in enumerate(indices):
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
