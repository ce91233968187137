"""Where gathers read and scatters write: the dimension numbers of both, as indices of merged axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width, is_unsigned
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    AndOp,
    GreaterOrEqualOp,
    LessOrEqualOp,
    MaxOp,
    MinOp,
    MulOp,
)
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.stablehlo.node import StablehloNode
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes, product_of

_MAX_I32 = (1 << 31) - 1


def whole_number(node: StablehloNode, value: SSAValue) -> SSAValue:
    """Indices of any integer type as i32 or i64; those beyond i64 become its largest number."""
    element = element_of(value)
    if element in (i32, i64):
        return value
    if is_unsigned(element) and byte_width(element) == 8:
        value = node.emit(MinOp, value, node.splat((1 << 63) - 1, value))
    return node.cast(value, i64 if byte_width(element) >= 4 else i32)


def clamped(node: StablehloNode, value: SSAValue, most: int) -> SSAValue:
    """Indices limited to 0 to `most`."""
    limited = node.emit(MaxOp, value, node.splat(0, value))
    return node.emit(MinOp, limited, node.splat(min(most, _MAX_I32) if element_of(value) == i32 else most, value))


@dataclass(frozen=True)
class Indexing:
    """
    The dimension numbers of a gather or scatter.

    A row of the indices says where a slice of an operand of shape `shape` starts along the axes `mapped`; the slice has
    `sizes`. It is one element long along axes that are `dropped`, and along `batching` ones, where it starts at the
    position of the row along the dimension of the indices with the same number.
    """

    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    dropped: tuple[int, ...]
    batching: Mapping[int, int]
    """Axis of the operand → dimension of the indices, without that of the rows."""
    mapped: tuple[int, ...]
    batch: Sizes
    """The sizes of the dimensions of the indices without that of the rows."""

    def __post_init__(self) -> None:
        rank = len(self.shape)
        fits = len(self.sizes) == rank and all(
            0 <= axis < rank for axis in (*self.dropped, *self.batching, *self.mapped)
        )
        if not fits or any(size > whole for size, whole in zip(self.sizes, self.shape, strict=True)):
            raise ModelError(f"slices of sizes {self.sizes} do not fit into shape {self.shape}")

    @cached_property
    def kept(self) -> list[int]:
        """The axes of the operand that a slice has."""
        return [axis for axis in range(len(self.shape)) if axis not in self.dropped and axis not in self.batching]

    @cached_property
    def selected(self) -> list[int]:
        """The axes of which a slice has a part."""
        return [axis for axis, size in enumerate(self.shape) if self.sizes[axis] != size or axis in self.batching]

    @property
    def count(self) -> Size:
        """The number of slices."""
        return product_of(self.batch)

    def limit(self, axis: int) -> int:
        """The last start of a slice along an axis."""
        return self.shape[axis] - self.sizes[axis]

    def starts(self, node: StablehloNode, indices: SSAValue, vector: int) -> dict[int, SSAValue]:
        """The starts along axes that rows of indices name, each of the shape `batch`."""
        found: dict[int, SSAValue] = {}
        for number, axis in enumerate(self.mapped):
            column = indices
            if vector < len(sizes_of(indices)):
                column = cut(node, indices, {vector: (number, number + 1)})
            found[axis] = whole_number(node, node.reshaped(column, self.batch))
        return found

    def windows(self, axes: Sequence[int]) -> list[int]:
        """The axes among these along which a slice has a dimension of its own."""
        return [axis for axis in axes if axis in self.kept]

    def positions(self, node: StablehloNode, starts: Mapping[int, SSAValue], axes: Sequence[int]) -> SSAValue:
        """
        The index of each element of each slice in the axes `axes`, merged to one.

        Its shape is `batch` and the sizes of slices along the kept ones of these axes. Axes without a start start at 0.
        """
        inner = self.windows(axes)
        wide = math.prod(self.shape[axis] for axis in axes) > _MAX_I32
        wide = wide or any(element_of(start) == i64 for start in starts.values())
        element, rank, offset = (i64 if wide else i32), len(self.batch) + len(inner), 0
        total: SSAValue | None = None
        for number, axis in enumerate(axes):
            step = math.prod(self.shape[behind] for behind in axes[number + 1 :])
            if axis in inner and self.sizes[axis] > 1:
                offset = offset + self._along(len(self.batch) + inner.index(axis), self.sizes[axis], rank) * step
            if axis in self.batching:
                dimension = self.batching[axis]
                offset = offset + self._along(dimension, static((self.batch[dimension],))[0], rank) * step
            elif axis in starts:
                start = node.cast(node.reshaped(starts[axis], (*self.batch, *[1] * len(inner))), element)
                scaled = start if step == 1 else node.emit(MulOp, start, node.splat(step, start))
                total = scaled if total is None else node.emit(AddOp, total, scaled)
        dtype = np.int64 if wide else np.int32
        shape = (*self.batch, *(self.sizes[axis] for axis in inner))
        if total is None:
            return node.constant(np.ascontiguousarray(np.broadcast_to(np.asarray(offset, dtype), static(shape))))
        return total if isinstance(offset, int) else node.emit(AddOp, total, node.constant(offset.astype(dtype)))

    @staticmethod
    def _along(dimension: int, size: int, rank: int) -> np.ndarray:
        """The numbers from 0 to `size` along one of `rank` dimensions."""
        return np.arange(size).reshape([-1 if axis == dimension else 1 for axis in range(rank)])

    def fits(self, node: StablehloNode, starts: Mapping[int, SSAValue]) -> SSAValue | None:
        """Whether each slice is inside the operand, of the shape `batch`; `None` if all surely are."""
        found: SSAValue | None = None
        for axis, start in starts.items():
            most = min(self.limit(axis), _MAX_I32) if element_of(start) == i32 else self.limit(axis)
            above = node.emit(GreaterOrEqualOp, start, node.splat(0, start))
            inside = node.emit(AndOp, above, node.emit(LessOrEqualOp, start, node.splat(most, start)))
            found = inside if found is None else node.emit(AndOp, found, inside)
        known = None if found is None else node.fold(found)
        return None if known is not None and known.all() else found


def batch_of(indices: SSAValue, vector: int) -> Sizes:
    """The sizes of the dimensions of indices without that of the rows."""
    shape = sizes_of(indices)
    return (*shape[:vector], *shape[vector + 1 :])


def batching_of(axes: Sequence[int], dimensions: Sequence[int], vector: int) -> dict[int, int]:
    """Axis of an operand → dimension of the indices, without that of the rows."""
    return {axis: at - (at > vector) for axis, at in zip(axes, dimensions, strict=True)}
