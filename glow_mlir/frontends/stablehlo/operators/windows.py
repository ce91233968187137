"""Folds of windows, and the choice of one element of each window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import f32, f64, i8
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.expressions import Tensor, fold
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import WhereOp
from glow_mlir.dialects.glow_high.pooling import MaxPoolOp, SumPoolOp
from glow_mlir.dialects.glow_high.reductions import CumProdOp, CumSumOp
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.shapes import declared_shape, element_of, rank_of, shape_of
from glow_mlir.dialects.windows import CHANNELS_FIRST, CHANNELS_LAST
from glow_mlir.frontends.builder.generics import computed
from glow_mlir.frontends.builder.padding import pad_value
from glow_mlir.frontends.stablehlo.folds import fold_of, neutral_number, starts_neutral
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.control_flow import leaves, rebuilt
from glow_mlir.frontends.stablehlo.operators.data_movement import expanded, spread
from glow_mlir.support.dataclass import dataclass

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
            if window == stride == 1 and not low and not high:
                found.append(size)
                continue
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
    """Folds of windows of tensors; neither padding nor holes between elements count, as in XLA."""
    count = node.count // 2
    values, initial = ([node.value(number + first) for number in range(count)] for first in (0, count))
    shape = _result_shape(node, values, initial)
    starts = rebuilt(initial, [expanded(node, leaf, shape) for leaf in leaves(initial)])
    if 0 in shape:
        return starts
    kind = fold_of(node.block(0), element_of(leaves(values)[0])) if count == 1 else ""
    if kind and (isinstance(values[0], SSAValue) or kind == "add"):
        folded = rebuilt(values, [_by_operator(node, part, kind) for part in leaves(values)])
        is_neutral = all(starts_neutral(node, start, kind) for start in leaves(initial))
        return folded if is_neutral else node.mapped(0, [*starts, *folded])
    parts, windows, present = _prepared(node, leaves(values), leaves(initial))
    values = rebuilt(values, parts)
    if (axis := _running_axis(windows)) is not None and present[axis].all():
        values = running(node, values, axis, windows.padding[axis][0] == 0)
    else:
        values, present = folded_by_region(node, values, leaves(initial), windows, present)
    found = leaves(node.mapped(0, [*starts, *values]))
    found = [expanded(node, leaf, shape) for leaf in found]
    for axis, are_there in enumerate(present):
        if not are_there.all():  # A window without an element gives what folds start from.
            mask = node.constant(_column(are_there, axis, len(shape)))
            pairs = zip(found, leaves(starts), strict=True)
            found = [node.emit(WhereOp, mask, *pair) for pair in pairs]
    return rebuilt(values, found)


def _by_operator(node: StablehloNode, value: SSAValue, kind: str) -> SSAValue:
    """The folds of the windows of a tensor by one operation."""
    number = node.cast(value, i8) if is_bool(element_of(value)) else value
    nothing = node.number(neutral_number(kind, element_of(number)), number)
    (number,), windows, _ = _prepared(node, [number], [nothing])
    return node.cast(folded_by(node, number, windows, kind), element_of(value))


def _result_shape(node: StablehloNode, values: Sequence[Value], initial: Sequence[Value]) -> tuple[int, ...]:
    """The shape of the results: what the program says, or else the number of windows."""
    is_known = min(declared_shape(node.declared()), default=0) >= 0
    return node.static_shape(like=() if is_known else _prepared(node, leaves(values), leaves(initial))[1].count)


def _prepared(
    node: StablehloNode, values: Sequence[SSAValue], fill: Sequence[SSAValue]
) -> tuple[list[SSAValue], Windows, list[np.ndarray]]:
    """
    Tensors with holes filled and negative padding cut off, their windows, and what along each axis is no hole.

    Neither holes nor padding count in folds, as in XLA: what folds start from counts once.
    """
    shape = shape_of(values[0])
    ones, padding = [1] * len(shape), node.padding(len(shape))
    apart = node.integers("base_dilations", ones)
    cut = [(min(low, 0), min(high, 0)) for low, high in padding]
    present: list[np.ndarray] = []
    for size, step, (low, high) in zip(shape, apart, cut, strict=True):
        positions = np.arange(max((size - 1) * step + 1, 0))
        present.append((positions % step == 0)[-low : len(positions) + high])
    parts: list[SSAValue] = []
    for part, number in zip(values, fill, strict=True):
        for axis, step in enumerate(apart):
            part = spread(node, part, number, axis, step - 1)
        parts.append(pad_value(node, part, cut, "constant", None))
    windows = Windows(
        shape_of(parts[0]),
        node.integers("window_dimensions"),
        node.integers("window_strides", ones),
        node.integers("window_dilations", ones),
        tuple((max(low, 0), max(high, 0)) for low, high in padding),
    )
    return parts, windows, present


def _column(along: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A vector along one of `rank` axes."""
    return along.reshape([-1 if at == axis else 1 for at in range(rank)])


# ---- Folds by one operation


def folded_by(node: StablehloNode, value: SSAValue, windows: Windows, kind: str) -> SSAValue:
    """Folds of windows, around which nothing counts."""
    total = _running(node, value, windows, kind)
    if total is not None:
        return total
    if math.prod(windows.sizes) <= MAX_WINDOW:
        return _pooled(node, value, windows, kind) or _at_once(node, value, windows, kind)
    if (axis := _running_axis(windows)) is not None:
        return leaves(running(node, [value], axis, windows.padding[axis][0] == 0))[0]
    for axis in windows.moving:
        own = replace(windows.along([axis]), shape=shape_of(value))
        if windows.sizes[axis] <= MAX_ALONG:
            value = _at_once(node, value, own, kind)
            continue
        value = pad_value(
            node, value, own.padding, "constant", node.number(neutral_number(kind, element_of(value)), value)
        )
        own, every = own.of_shape(shape_of(value)), np.ones(shape_of(value)[axis], np.bool_)
        found, _ = by_doubling(node, [value], own, axis, every, kind in ("max", "min", "and", "or"))
        (value,) = leaves(found)
    return value


def _running(node: StablehloNode, value: SSAValue, windows: Windows, kind: str) -> SSAValue | None:
    """Running sums and products, whose windows reach to the start or the end of an axis; else `None`."""
    axis = _running_axis(windows)
    if kind not in ("add", "mul") or axis is None:
        return None
    operator = CumSumOp if kind == "add" else CumProdOp
    return node.emit(operator, value, axis=axis, reverse=windows.padding[axis][0] == 0)


def _running_axis(windows: Windows) -> int | None:
    """The only axis of windows that reach from each element to the start or the end of it; else `None`."""
    if len(windows.moving) != 1:
        return None
    (axis,) = windows.moving
    size, rest = windows.shape[axis], windows.sizes[axis] - 1
    is_plain = windows.strides[axis] == 1 and windows.dilations[axis] == 1 and rest >= max(size - 1, 1)
    return axis if is_plain and windows.padding[axis] in ((rest, 0), (0, rest)) else None


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

    def folded(x: Tensor) -> Tensor:
        return fold(kind, x, taps)

    return computed(node, signature, folded, value)


# ---- Folds by any region


def running(node: StablehloNode, values: Sequence[Value], axis: int, backwards: bool) -> list[Value]:
    """Folds of all elements up to each one along an axis by the region of the node, or from each one on."""
    length, done = shape_of(leaves(values)[0])[axis], 1
    while done < length:
        first, second = (_from(node, values, axis, start, length - done, 1) for start in (0, done))
        combined = leaves(node.mapped(0, [*first, *second]))
        ends = leaves(_from(node, values, axis, length - done if backwards else 0, done, 1))
        parts = [(new, end) if backwards else (end, new) for new, end in zip(combined, ends, strict=True)]
        values = rebuilt(values, [node.emit(ConcatOp, pair, axis=axis) for pair in parts])
        done *= 2
    return list(values)


def folded_by_region(
    node: StablehloNode,
    values: Sequence[Value],
    fill: Sequence[SSAValue],
    windows: Windows,
    present: Sequence[np.ndarray],
) -> tuple[list[Value], list[np.ndarray]]:
    """Folds of windows by the region of the node, axis by axis, and along each axis where they have elements."""
    found = [
        np.pad(are_there, windows.padding[axis]) if axis in windows.moving else are_there
        for axis, are_there in enumerate(present)
    ]
    pairs = zip(leaves(values), fill, strict=True)
    parts = [pad_value(node, part, windows.padding, "constant", number) for part, number in pairs]
    values, windows = rebuilt(values, parts), windows.of_shape(shape_of(parts[0]))
    for axis in reversed(windows.moving):
        own = replace(windows.along([axis]), shape=shape_of(leaves(values)[0]))
        values, found[axis] = by_doubling(node, values, own, axis, found[axis])
    return list(values), found


@dataclass(frozen=True)
class Folded:
    """Folds of neighbours along an axis, and for each whether it has an element."""

    node: StablehloNode
    axis: int
    values: list[Value]
    present: np.ndarray

    def part(self, start: int, count: int, stride: int) -> Folded:
        """`count` of them, `stride` apart."""
        end = start + (count - 1) * stride + 1
        values = _from(self.node, self.values, self.axis, start, count, stride)
        return replace(self, values=values, present=self.present[start:end:stride])

    def joined(self, other: Folded) -> Folded:
        """The folds of these elements and those of other ones behind them."""
        values = self.node.mapped(0, [*self.values, *other.values])
        for missing, kept in ((self, other), (other, self)):
            if not missing.present.all():
                pairs = zip(leaves(values), leaves(kept.values), strict=True)
                rank = rank_of(leaves(values)[0])
                mask = self.node.constant(_column(missing.present, self.axis, rank))
                values = rebuilt(values, [self.node.emit(WhereOp, mask, *pair) for pair in pairs])
        return replace(self, values=values, present=self.present | other.present)


def by_doubling(
    node: StablehloNode,
    values: Sequence[Value],
    windows: Windows,
    axis: int,
    present: np.ndarray,
    may_overlap: bool = False,
) -> tuple[list[Value], np.ndarray]:
    """
    Folds of windows along an axis by the region of the node, of tensors without padding, and where they have elements.

    Elements that are not `present` do not count. Folds of 1, 2, 4, … neighbours are those of two folds half as long;
    that of a window is put together from them, in order. Two of them may overlap if the fold of an element with itself
    is the element.
    """
    size, step, count, stride = (
        windows.sizes[axis],
        windows.dilations[axis],
        windows.count[axis],
        windows.strides[axis],
    )
    power, rest, length = Folded(node, axis, list(values), present), windows.shape[axis], 1
    found: Folded | None = None
    done = 0
    while True:
        if may_overlap and size < 2 * length:
            sides = [power.part(start * step, count, stride) for start in dict.fromkeys((0, size - length))]
            found = sides[0] if len(sides) == 1 else sides[0].joined(sides[1])
            return found.values, found.present
        if not may_overlap and size & length:
            part = power.part(done * step, count, stride)
            found, done = part if found is None else found.joined(part), done + length
        if 2 * length > size:
            assert found is not None
            return found.values, found.present
        rest -= length * step
        power, length = power.part(0, rest, 1).joined(power.part(length * step, rest, 1)), 2 * length


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
