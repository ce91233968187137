"""Pools: the largest element or the mean of each window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import f32, i8
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, MaxPoolOp, Pool
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of
from glow_mlir.dialects.windows import Window, is_channels_last
from tosa_backend.builder import TosaBuilder
from tosa_backend.dialect import PROPAGATE
from tosa_backend.elements import held
from tosa_backend.emitters.convolution import as_image, flat, two_axes, whole_windows
from tosa_backend.rules import emits


def _window(op: Pool) -> Window:
    window = op.window()
    return window if len(window.kernel) > 1 else two_axes(window)


def _has_windows(op: Pool) -> bool:
    """Whether TOSA has the windows: over one or two axes, without gaps, each with less padding than a kernel."""
    if not is_channels_last(op.layout) or rank_of(op.input) not in (3, 4) or set(op.window().dilations) != {1}:
        return False
    window, sizes = op.window(), shape_of(op.input)[1:-1]
    for axis, size in enumerate(sizes):
        before, _ = window.padding(axis)
        reached = (window.output(axis, size) - 1) * window.strides[axis] + window.extent(axis) - before - size
        if max(before, reached) >= window.kernel[axis]:
            return False
    return True


def _can_find_largest(op: MaxPoolOp) -> bool:
    return _has_windows(op) and held(element_of(op.input)) in (f32, i8)


@emits(MaxPoolOp, when=_can_find_largest)
def max_pool(op: MaxPoolOp, b: TosaBuilder) -> SSAValue:
    """MAX_POOL2D, whose padding never counts."""
    x = b.reshape(b.value(op.input), as_image(shape_of(op.input)))
    return _pool(op, "max_pool2d", x, [], b, nan_mode=PROPAGATE)


def _can_average(op: AvgPoolOp) -> bool:
    counts_padding = flag(op.count_include_pad) and any(op.window().pads)
    return _has_windows(op) and element_of(op.input) == f32 and not (counts_padding and flag(op.ceil_mode))


@emits(AvgPoolOp, when=_can_average)
def avg_pool(op: AvgPoolOp, b: TosaBuilder) -> SSAValue:
    """AVG_POOL2D, which leaves padding out; where it counts, it is in the image."""
    x = b.reshape(b.value(op.input), as_image(shape_of(op.input)))
    zero = b.splat(0, f32)
    window = _window(op)
    if flag(op.count_include_pad) and any(window.pads):
        x = b.pad(x, [(0, 0), window.padding(0), window.padding(1), (0, 0)], zero)
        window = Window(window.kernel, window.strides, (0,) * 4, window.dilations)
    return _pool(op, "avg_pool2d", x, [zero, zero], b, window, acc_type=f32)


def _pool(
    op: Pool,
    name: str,
    x: SSAValue,
    zeros: Sequence[SSAValue],
    b: TosaBuilder,
    window: Window | None = None,
    **fields: Any,
) -> SSAValue:
    """A pool over images with two axes."""
    window = window or _window(op)
    x, widths = whole_windows(b, x, window)
    places = {"kernel": window.kernel, "stride": window.strides, "pad": flat(widths)}
    found = b(name, x, *zeros, shape=as_image(shape_of(op.result)), **places, **fields)
    return b.reshape(found, shape_of(op.result))
