"""The kernel of resizing: offsets and weights are tables that are computed at compile time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import f64

from glow_mlir.codegen.access import computed, lanes_for, load, store
from glow_mlir.codegen.builder.nests import Index, linear, nest, vector_nest
from glow_mlir.codegen.builder.types import i32, i64, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box, box_steps, copy_box
from glow_mlir.codegen.lines import moved_by
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.resize import MIN_INNER, ResizeOp
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.shapes import element_of, shape_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.dialects.target import Target
from glow_mlir.interpreter.resize import AxisSampling, samplings
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import are_numbers

MAX_UNROLLED = 16
"""The largest number of inputs per result, whose products are unrolled."""

FEW = 2
"""The number of inputs per result up to which axes are resized at once even where nothing is left for vectors."""

MAX_TABLE = 1 << 14
"""The largest number of entries of a table: LLVM is slow for large constants."""


@kernel("resize")
class ResizeKernel(Kernel[ResizeOp]):
    """
    Each element of the result reads the offsets and weights of its inputs from tables; vectors run over axes that are
    not resized.

    Repetitions by integer factors are copies with stride 0. One axis in front of others has any number of inputs per
    result, as antialiasing needs. The lowering resizes other images axis by axis, and has samples outside the input.
    """

    name = "resize"
    AXES = ("lines",)
    RUN_TIME_SIZES = True

    def accepts(self, op: ResizeOp) -> bool:
        axes = list(samplings(op))
        taps = math.prod(sampling.indices.shape[1] for sampling in axes)
        fits = all(sampling.indices.size <= MAX_TABLE and not sampling.outside.any() for sampling in axes)
        real = text(op.mode) == "nearest" or is_float(element_of(op.input))
        if not real or not fits:
            return False
        if taps <= FEW or not are_numbers(sizes_of(op.input)):
            return taps <= MAX_UNROLLED
        is_long = math.prod(shape_of(op.result)[axes[-1].axis + 1 :]) >= MIN_INNER
        return (is_long or axes[0].axis == 0) if len(axes) == 1 else (is_long and taps <= MAX_UNROLLED)

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
        if len(axes) == 1 and (many := next(iter(axes.values()))).indices.shape[1] > MAX_UNROLLED:
            blend_many(indices, many)
            return
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

    def blend_many(indices: list[Index], sampling: AxisSampling) -> None:
        """Blend so many inputs that there is a loop over these."""
        move, weight = _read(call, sampling, indices[sampling.axis])
        others = [0 if axis == sampling.axis else index for axis, index in enumerate(indices)]
        start, target = linear(others, source.strides[:depth]), into.moved(indices, result.strides[:depth])

        def blend(outer: list[Index], i: Index, lanes: int) -> None:
            within = [*outer, i] if inner else []
            first = linear(within, out_of.strides) + start
            with b.loop(0, sampling.indices.shape[1], carried=[b.constant(0.0, vector(type_, lanes))]) as loop:
                x, factor = load(b, source, first + move(loop.index), 1, lanes), weight(loop.index)
                assert factor is not None
                loop.set(b.fma(x, factor, loop.values[0]))
            store(b, result, target.offset_of(within), loop.results[0])

        vector_nest(b, inner or (1,), width, blend)

    nest(b, result.extents[:depth], point, call.share("lines"))


def _taps(call: KernelCall[ResizeOp], axes: dict[int, AxisSampling], indices: Sequence[Index]) -> list[_Tap]:
    """Return all input elements that contribute to a result at some indices."""
    source = call.one("input")
    taps = [_Tap(0, None)]
    for axis, position in enumerate(indices):
        stride = source.strides[axis]
        sampling = axes.get(axis)
        if sampling is None:
            taps = [_Tap(moved_by(tap.offset, position, stride), tap.weight) for tap in taps]
            continue
        move, weight = _read(call, sampling, position)
        found = [(move(tap), weight(tap)) for tap in range(sampling.indices.shape[1])]
        taps = [
            _Tap(move + tap.offset, weight if tap.weight is None or weight is None else tap.weight * weight)
            for tap in taps
            for move, weight in found
        ]
    return taps


def _read(
    call: KernelCall[ResizeOp], sampling: AxisSampling, position: Index
) -> tuple[Callable[[Index], Value], Callable[[Index], Value | None]]:
    """The offset of each input of a position along an axis, and its weight, which is `None` for 1."""
    b, source, axis = call.b, call.one("input"), sampling.axis
    stride, size = source.strides[axis], source.extents[axis]
    wide = int(np.abs(sampling.indices).max(initial=0)) * abs(stride) >= 1 << 31
    offsets = b.symbol(call.module.table((sampling.indices * stride).astype(np.int64 if wide else np.int32)))
    entry = i64 if wide else i32
    here = b.index(position) * sampling.indices.shape[1]

    def move(tap: Index) -> Value:
        found = b.index(offsets.at(here + tap, entry).load(entry))
        return found if isinstance(size, int) else b.min(found, (size - 1) * stride)

    if text(call.op.mode) == "nearest":
        return move, lambda tap: None
    type_ = computed(source.element)
    table = b.symbol(call.module.table(sampling.weights.astype(np.float64 if type_ == f64 else np.float32)))
    return move, lambda tap: table.at(here + tap, type_).load(type_)
