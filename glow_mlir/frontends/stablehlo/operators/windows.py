"""Folds of windows, and the choice of one element of each window."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import f32, f64, i8, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, is_float, is_unsigned
from glow_mlir.dialects.expressions import fold
from glow_mlir.dialects.glow_high.data_movement import SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, AndOp, OrOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import NotOp
from glow_mlir.dialects.glow_high.pooling import MaxPoolOp, SumPoolOp
from glow_mlir.dialects.glow_high.reductions import CumProdOp, CumSumOp
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of
from glow_mlir.dialects.windows import CHANNELS_FIRST, CHANNELS_LAST
from glow_mlir.frontends.builder.generics import computed
from glow_mlir.frontends.builder.padding import pad_value
from glow_mlir.frontends.stablehlo.indexing import Indexing
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.control_flow import leaves, rebuilt
from glow_mlir.frontends.stablehlo.operators.data_movement import expanded, spread
from glow_mlir.frontends.stablehlo.operators.reductions import limit_of, single_operation
from glow_mlir.frontends.stablehlo.operators.scatters import Target, forms_of
from glow_mlir.support.dataclass import dataclass

FOLDS: Mapping[str, str] = {
    "stablehlo.add": "add",
    "stablehlo.multiply": "mul",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.and": "and",
    "stablehlo.or": "or",
    "stablehlo.xor": "xor",
}
"""The operation of a region → the fold of windows of numbers."""

FOLDS_OF_TRUTH: Mapping[str, str] = {**FOLDS, "stablehlo.add": "or", "stablehlo.multiply": "and"}
FOLDS_OF_TRUTH = {**FOLDS_OF_TRUTH, "stablehlo.maximum": "or", "stablehlo.minimum": "and"}
"""The same for truth values."""

MAX_WINDOW = 64
"""The largest number of elements of windows that are folded at once; larger ones are folded axis by axis."""

MAX_ALONG = 16
"""The longest windows along an axis that are folded element by element; longer ones are folded by doubling."""


@dataclass(frozen=True)
class Windows:
    """Windows over axes of tensors: their sizes, how far they are apart, and how far their elements are."""

    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    @property
    def count(self) -> tuple[int, ...]:
        """The number of windows along each axis."""
        found: list[int] = []
        for size, window, stride, step, (low, high) in zip(
            self.shape, self.sizes, self.strides, self.dilations, self.padding, strict=True
        ):
            rest = size + low + high - ((window - 1) * step + 1)
            found.append(0 if rest < 0 or size + low + high == 0 else rest // stride + 1)
        return tuple(found)

    @property
    def moving(self) -> list[int]:
        """The axes along which windows differ from single elements."""
        return [
            axis
            for axis, (size, stride, pads) in enumerate(zip(self.sizes, self.strides, self.padding, strict=True))
            if size > 1 or stride > 1 or pads != (0, 0)
        ]

    def along(self, axes: Sequence[int]) -> Windows:
        """The windows along some axes only."""
        rank = range(len(self.shape))
        return replace(
            self,
            sizes=tuple(self.sizes[axis] if axis in axes else 1 for axis in rank),
            strides=tuple(self.strides[axis] if axis in axes else 1 for axis in rank),
            padding=tuple(self.padding[axis] if axis in axes else (0, 0) for axis in rank),
        )

    def of_shape(self, shape: Sequence[int]) -> Windows:
        """The same windows, without padding, of tensors of another shape."""
        return replace(self, shape=tuple(shape), padding=((0, 0),) * len(shape))


@stablehlo_operator("reduce_window")
def reduce_window(node: StablehloNode) -> Sequence[Value]:
    """Folds of windows of tensors, around and between whose elements lie those that folds start from."""
    count = node.count // 2
    values, initial = ([node.value(number + first) for number in range(count)] for first in (0, count))
    shape = node.static_shape()
    starts = [rebuilt([item], [expanded(node, leaf, shape) for leaf in leaves([item])])[0] for item in initial]
    if 0 in shape:
        return starts
    values, windows = _prepared(node, values, initial)
    kind = _fold_of(node, values)
    is_neutral = bool(kind) and _is_neutral(node, leaves(initial)[0], kind)
    if not is_neutral:
        values, windows = _padded(node, values, initial, windows)
    if kind:
        (value,) = leaves(values)
        number = node.cast(value, i8) if is_bool(element_of(value)) else value
        folded = node.cast(folded_by(node, number, windows, kind), element_of(value))
        return [folded] if is_neutral else node.mapped(0, [starts[0], folded])
    for axis in reversed(windows.moving):
        values = by_doubling(node, values, windows.along([axis]), axis)
        windows = replace(windows, shape=shape_of(leaves(values)[0]))
    found = node.mapped(0, [*starts, *values])
    return rebuilt(found, [expanded(node, leaf, shape) for leaf in leaves(found)])


def _prepared(node: StablehloNode, values: Sequence[Value], initial: Sequence[Value]) -> tuple[list[Value], Windows]:
    """Tensors with holes filled and negative padding cut off, and their windows."""
    shape = shape_of(leaves(values)[0])
    ones, padding = [1] * len(shape), node.padding(len(shape))
    parts: list[SSAValue] = []
    for part, start in zip(leaves(values), leaves(initial), strict=True):
        for axis, step in enumerate(node.integers("base_dilations", ones)):
            part = spread(node, part, start, axis, step - 1)
        cut = [(min(low, 0), min(high, 0)) for low, high in padding]
        parts.append(pad_value(node, part, cut, "constant", None))
    windows = Windows(
        shape_of(parts[0]),
        node.integers("window_dimensions"),
        node.integers("window_strides", ones),
        node.integers("window_dilations", ones),
        tuple((max(low, 0), max(high, 0)) for low, high in padding),
    )
    return rebuilt(values, parts), windows


def _padded(
    node: StablehloNode, values: Sequence[Value], initial: Sequence[Value], windows: Windows
) -> tuple[list[Value], Windows]:
    """Tensors with what folds start from around them, and their windows without padding."""
    pairs = zip(leaves(values), leaves(initial), strict=True)
    parts = [pad_value(node, part, windows.padding, "constant", start) for part, start in pairs]
    return rebuilt(values, parts), windows.of_shape(shape_of(parts[0]))


# ---- Folds by one operation


def _fold_of(node: StablehloNode, values: Sequence[Value]) -> str:
    """The fold of one tensor of which the region is an operation; else an empty string."""
    if len(values) != 1 or not isinstance(values[0], SSAValue):
        return ""
    element = element_of(values[0])
    kind = single_operation(node.op.regions[0].block)
    found = (FOLDS_OF_TRUTH if is_bool(element) else FOLDS).get(kind, "")
    return "" if is_float(element) and found in ("and", "or", "xor") else found


def _is_neutral(node: StablehloNode, start: SSAValue, kind: str) -> bool:
    """Whether a fold starts from the number that changes nothing."""
    known, element = node.fold(start), element_of(start)
    if known is None:
        return False
    if kind in ("max", "min"):
        return known.item() == limit_of(element, is_lowest=kind == "max")
    every = 1 if is_bool(element) else ~known.dtype.type(0) if kind == "and" else 0
    return known.item() == {"mul": 1, "and": every}.get(kind, 0)


def folded_by(node: StablehloNode, value: SSAValue, windows: Windows, kind: str) -> SSAValue:
    """Folds of windows, around which nothing counts."""
    running = _running(node, value, windows, kind)
    if running is not None:
        return running
    if math.prod(windows.sizes) <= MAX_WINDOW:
        return _pooled(node, value, windows, kind) or _at_once(node, value, windows, kind)
    for axis in windows.moving:
        own = replace(windows.along([axis]), shape=shape_of(value))
        if windows.sizes[axis] <= MAX_ALONG:
            value = _at_once(node, value, own, kind)
            continue
        start = node.splat(_neutral(value, kind), value)
        (padded,), own = _padded(node, [value], [start], own)
        (value,) = leaves(by_doubling(node, [padded], own, axis, kind in ("max", "min", "and", "or")))
    return value


def _neutral(value: SSAValue, kind: str) -> float:
    """The number that changes nothing in a fold."""
    if kind in ("max", "min"):
        return limit_of(element_of(value), is_lowest=kind == "max")
    return {"mul": 1, "and": -1 if not is_unsigned(element_of(value)) else limit_of(element_of(value), False)}.get(
        kind, 0
    )


def _running(node: StablehloNode, value: SSAValue, windows: Windows, kind: str) -> SSAValue | None:
    """Running sums and products, whose windows reach to the start or the end of an axis; else `None`."""
    if kind not in ("add", "mul") or len(windows.moving) != 1:
        return None
    (axis,) = windows.moving
    size, rest = windows.shape[axis], windows.sizes[axis] - 1
    is_plain = windows.strides[axis] == 1 and windows.dilations[axis] == 1 and rest >= size - 1
    if not is_plain or windows.padding[axis] not in ((rest, 0), (0, rest)):
        return None
    operator = CumSumOp if kind == "add" else CumProdOp
    return node.emit(operator, value, axis=axis, reverse=windows.padding[axis][0] == 0 and rest > 0)


def _pooled(node: StablehloNode, value: SSAValue, windows: Windows, kind: str) -> SSAValue | None:
    """Sums and extremes of windows over the axes between a batch and channels; else `None`."""
    rank, moving = rank_of(value), windows.moving
    is_pool = kind == "max" or (kind == "add" and element_of(value) in (f32, f64))
    if not is_pool or rank < 3 or not moving or moving[0] == 0:
        return None
    if moving[-1] < rank - 1:
        axes, layout = range(1, rank - 1), CHANNELS_LAST
    elif moving[0] > 1:
        axes, layout = range(2, rank), CHANNELS_FIRST
    else:
        return None
    return node.emit(
        MaxPoolOp if kind == "max" else SumPoolOp,
        value,
        kernel_shape=[windows.sizes[axis] for axis in axes],
        strides=[windows.strides[axis] for axis in axes],
        dilations=[windows.dilations[axis] for axis in axes],
        pads=[windows.padding[axis][side] for side in (0, 1) for axis in axes],
        layout=layout,
    )


def _at_once(node: StablehloNode, value: SSAValue, windows: Windows, kind: str) -> SSAValue:
    """Folds of windows in one computation."""
    moving, rank = windows.moving, rank_of(value)
    if not moving:
        return value
    read = [f"h{axis}" for axis in range(rank)]
    extents: dict[str, int] = {}
    for axis in moving:
        low = windows.padding[axis][0]
        read[axis] = f"{windows.strides[axis]}*h{axis} + {windows.dilations[axis]}*k{axis} - {low}"
        extents |= {f"h{axis}": windows.count[axis], f"k{axis}": windows.sizes[axis]}
    taps = [f"k{axis}" for axis in moving]
    result = Access("result", tuple(f"h{axis}" for axis in range(rank)))
    signature = Signature((Access("input", tuple(read)),), result, extents)
    return computed(node, signature, lambda x: fold(kind, x, taps), value)


# ---- Folds by any region


def by_doubling(
    node: StablehloNode, values: Sequence[Value], windows: Windows, axis: int, may_overlap: bool = False
) -> list[Value]:
    """
    Folds of windows along an axis by the region of the node, of tensors without padding.

    Folds of 1, 2, 4, … neighbours are those of two folds half as long; that of a window is put together from them, in
    order. Two of them may overlap if the fold of an element with itself is the element.
    """
    size, step, count = windows.sizes[axis], windows.dilations[axis], windows.count[axis]
    power, rest = values, windows.shape[axis]
    found: list[Value] | None = None
    done, length = 0, 1
    while True:
        if may_overlap and size < 2 * length:
            starts = dict.fromkeys((0, size - length))
            sides = [_from(node, power, axis, start * step, count, windows.strides[axis]) for start in starts]
            return sides[0] if len(sides) == 1 else node.mapped(0, [*sides[0], *sides[1]])
        if not may_overlap and size & length:
            part = _from(node, power, axis, done * step, count, windows.strides[axis])
            found, done = part if found is None else node.mapped(0, [*found, *part]), done + length
        if 2 * length > size:
            assert found is not None
            return found
        rest -= length * step
        sides = [_from(node, power, axis, start, rest, 1) for start in (0, length * step)]
        power, length = node.mapped(0, [*sides[0], *sides[1]]), 2 * length


def _from(node: StablehloNode, values: Sequence[Value], axis: int, start: int, count: int, stride: int) -> list[Value]:
    """`count` elements of an axis, `stride` apart."""
    found: list[SSAValue] = []
    for value in leaves(values):
        shape = shape_of(value)
        starts = [start if at == axis else 0 for at in range(len(shape))]
        ends = [start + (count - 1) * stride + 1 if at == axis else size for at, size in enumerate(shape)]
        steps = [stride if at == axis else 1 for at in range(len(shape))]
        is_whole = start == 0 and count == shape[axis]
        found.append(value if is_whole else node.emit(SliceOp, value, starts=starts, ends=ends, steps=steps))
    return rebuilt(values, found)


# ---- One element of each window


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
    return all(
        np.logical_or.reduce(
            [_inside(windows.along([axis]), offsets) for offsets in _offsets(windows.along([axis]))]
        ).all()
        for axis in range(len(windows.shape))
    )


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
