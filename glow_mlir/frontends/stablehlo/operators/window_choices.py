"""The choice of one element of each window."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, AndOp, OrOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import NotOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.frontends.builder.padding import pad_value
from glow_mlir.frontends.stablehlo.indexing import Indexing
from glow_mlir.frontends.stablehlo.node import StablehloNode, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.control_flow import leaves
from glow_mlir.frontends.stablehlo.operators.data_movement import expanded
from glow_mlir.frontends.stablehlo.operators.scatters import Target, forms_of
from glow_mlir.frontends.stablehlo.operators.windows import Windows


@stablehlo_operator("select_and_scatter")
def select_and_scatter(node: StablehloNode) -> SSAValue:
    """A tensor to whose elements those of another one are added, each to the chosen element of its window."""
    value, source, start = node.inputs()
    shape = shape_of(value)
    ones = (1,) * len(shape)
    windows = Windows(
        shape,
        node.integers("window_dimensions", ones),
        node.integers("window_strides", ones),
        ones,
        tuple(node.padding(len(shape))),
    )
    into = expanded(node, start, shape)
    if not math.prod(shape_of(source)):
        return into
    chosen = _chosen(node, value, windows)
    size = math.prod(shape)
    update, into = node.reshaped(source, (math.prod(windows.count),)), node.reshaped(into, (size,))
    positions = node.reshaped(chosen, (math.prod(windows.count),))
    indexing = Indexing((size,), (1,), (0,), {}, (0,), shape_of(positions))
    target = Target(node, indexing, {0: positions}, (), region=1, are_inside=_have_elements(windows))
    forms = forms_of(node, [into], region=1)
    found = target.of_any([into], [update])[0] if forms is None else target.scattered(into, update, forms[0])
    (found,) = leaves([found])
    return node.reshaped(found, shape)


def _reached(windows: Windows, axis: int, offset: int) -> np.ndarray:
    """The position along an axis of the element at an offset of each window, as a column."""
    found = np.arange(windows.count[axis]) * windows.strides[axis] + offset - windows.padding[axis][0]
    return found.reshape([-1 if at == axis else 1 for at in range(len(windows.shape))])


def _inside(windows: Windows, offsets: Sequence[int]) -> np.ndarray:
    """Whether the element at these offsets of each window is one of the tensor; it broadcasts to the windows."""
    found = np.array(True)
    for axis, offset in enumerate(offsets):
        position = _reached(windows, axis, offset)
        is_inside = (position >= 0) & (position < windows.shape[axis])
        found = found & (np.array(True) if is_inside.all() else is_inside)
    return found


def _have_elements(windows: Windows) -> bool:
    """Whether every window has an element of the tensor."""
    for axis in range(len(windows.shape)):
        own = windows.along([axis])
        found = np.array(False)
        for offsets in _offsets(own):
            found = found | _inside(own, offsets)
        if not found.all():
            return False
    return True


def _offsets(windows: Windows) -> list[tuple[int, ...]]:
    return list(np.ndindex(windows.sizes))


def _chosen(node: StablehloNode, value: SSAValue, windows: Windows) -> SSAValue:
    """The element of each window that the region chooses, as a number in row-major order; -1 where there is none."""
    rank, shape = len(windows.shape), windows.shape
    steps = [math.prod(shape[axis + 1 :]) for axis in range(rank)]
    padded = pad_value(node, value, windows.padding, "constant", node.splat(0, value))
    best: SSAValue | None = None
    offset = node.splat(0, i64)
    seen = np.array(False)
    for offsets in _offsets(windows):
        inside = _inside(windows, offsets)
        number = node.splat(sum(step * at for step, at in zip(steps, offsets, strict=True)), i64)
        bounds = [
            (at, at + (count - 1) * stride + 1)
            for at, count, stride in zip(offsets, windows.count, windows.strides, strict=True)
        ]
        starts, ends = zip(*bounds, strict=True)
        other = node.emit(SliceOp, padded, starts=starts, ends=ends, steps=windows.strides)
        if best is None:
            best, offset = other, expanded(node, number, windows.count) if not inside.all() else number
        else:
            (stays,) = leaves(node.mapped(0, [best, other]))
            takes = node.emit(NotOp, stays)
            if not seen.all():
                takes = node.emit(OrOp, takes, node.constant(~seen))
            if not inside.all():
                takes = node.emit(AndOp, takes, node.constant(inside))
            best, offset = node.emit(WhereOp, takes, other, best), node.emit(WhereOp, takes, number, offset)
        seen = seen | inside
    first = sum((_reached(windows, axis, 0) * steps[axis] for axis in range(rank)), np.array(0))
    base = node.constant(np.ascontiguousarray(np.broadcast_to(first, windows.count)))
    found = node.emit(AddOp, base, offset)
    if not seen.all():
        found = node.emit(
            WhereOp, node.constant(np.broadcast_to(seen, windows.count).copy()), found, node.splat(-1, i64)
        )
    return found
