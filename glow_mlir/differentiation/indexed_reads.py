"""Adjoints of reads by index: add to the elements that were read, possibly several times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.indexing import ScatterElementsOp, ScatterNDOp
from glow_mlir.dialects.index_notation import Access, index_of, is_dimension
from glow_mlir.dialects.operand_types import INDICES
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.differentiation.contributions import expanded_to, reshaped, transposed, zeros_like
from glow_mlir.differentiation.data_movement import part_along
from glow_mlir.frontends.builder.emission import positions
from glow_mlir.ir.emitter import Emitter
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes


@dataclass(frozen=True)
class IndexedAccess:
    """The access to an operand with some axes read by index."""

    access: Access
    values: Mapping[str, SSAValue]
    """The operands, by name."""
    sizes: Mapping[str, Size]
    """Dimension → its size."""
    emit: Emitter

    @property
    def of_indices(self) -> list[str]:
        """The dimensions that indices depend on, in order."""
        axes = (axis for index in self.access.indices for axis in index.axes)
        return [axis for axis in dict.fromkeys(axes) if is_dimension(axis)]

    @property
    def dimensions(self) -> list[str]:
        """The dimensions of the read values: first those of indices, then those of slices."""
        return list(dict.fromkeys((*self.of_indices, *filter(is_dimension, self.access.axes))))

    def scattered(self, updates: SSAValue, like: SSAValue) -> SSAValue:
        """Values over `dimensions`, each added to the operand element that was read there."""
        axes, of_indices = self.access.axes, self.of_indices
        if (found := self._single()) is not None:
            axis, indices = found
            return self.emit(
                ScatterElementsOp, zeros_like(like, self.emit), indices, updates, axis=axis, reduction="add"
            )
        front = [place for place, axis in enumerate(axes) if not is_dimension(axis) or axis in of_indices]
        order = [*front, *(place for place in range(len(axes)) if place not in front)]
        sizes = sizes_of(like)
        zeros = self.emit.splat(0, like, tuple(sizes[place] for place in order))
        rows = self._rows([axes[place] for place in front])
        kept = (*(self.sizes[name] for name in of_indices), *(sizes[place] for place in order[len(front) :]))
        total = self.emit(ScatterNDOp, zeros, rows, reshaped(updates, kept, self.emit), reduction="add")
        return transposed(total, [order.index(place) for place in range(len(axes))], self.emit)

    def _single(self) -> tuple[int, SSAValue] | None:
        """The only axis read by index, and its indices, if each element has an index of its own."""
        axes = self.access.axes
        positions = [place for place, axis in enumerate(axes) if not is_dimension(axis)]
        index = index_of(axes[positions[0]]) if len(positions) == 1 else None
        if index is None or len(index.axes) != len(axes):
            return None
        is_own = all(own == axis or not is_dimension(axis) for own, axis in zip(index.axes, axes, strict=True))
        return (positions[0], self._indices(index)) if is_own and tuple(self.dimensions) == index.axes else None

    def _indices(self, index: Access) -> SSAValue:
        """The operand of an index, in a type that scatters accept."""
        value = self.values[index.name]
        return value if INDICES.accepts(element_of(value)) else self.emit(CastOp, value, to=i64)

    def _rows(self, axes: Sequence[str]) -> SSAValue:
        """The indices along some axes as rows, for all dimensions that indices depend on."""
        columns = list(self._columns(axes))
        if len(columns) == 1:
            return columns[0]
        kinds = {element_of(column) for column in columns}
        same = columns if len(kinds) == 1 else [self.emit(CastOp, column, to=i64) for column in columns]
        return self.emit(ConcatOp, same, axis=len(self.of_indices))

    def _columns(self, axes: Sequence[str]) -> Iterator[SSAValue]:
        """Yield the columns of the rows one by one, or several at once if they are an operand of rows."""
        indices = [index for axis in axes if (index := index_of(axis)) is not None]
        like = element_of(self._indices(indices[0]))
        taken = 0
        for place, axis in enumerate(axes):
            index = index_of(axis)
            if place < taken:
                continue
            if index is None:
                name = axis if is_dimension(axis) else ""
                column = positions(self.sizes[name] if name else 1, like, self.emit)
                yield self._spread(column, [name] if name else [], 1)
                continue
            value, names = self._indices(index), [name for name in index.axes if is_dimension(name)]
            width = sizes_of(value)[-1] if index.axes and index.axes[-1].isdigit() else 1
            whole = [str(Access(index.name, (*index.axes[:-1], str(number)))) for number in range(_known(width))]
            if whole and list(index.axes[:-1]) == names and list(axes[place : place + len(whole)]) == whole:
                taken = place + len(whole)
                yield self._spread(value, names, width)
                continue
            for number, inner in enumerate(index.axes):
                if inner.isdigit():
                    start = 0 if sizes_of(value)[number] == 1 else int(inner)
                    value = part_along(value, number, start, 1, self.emit)
            yield self._spread(value, names, 1)

    def _spread(self, value: SSAValue, names: Sequence[str], width: Size) -> SSAValue:
        """Indices over some dimensions as rows of a width, broadcast to all dimensions of indices."""
        order = sorted(range(len(names)), key=lambda place: self.of_indices.index(names[place]))
        sizes: Sizes = (*(self.sizes[name] for name in names), width)
        value = transposed(reshaped(value, sizes, self.emit), [*order, len(names)], self.emit)
        own: Sizes = tuple(self.sizes[name] if name in names else 1 for name in self.of_indices)
        whole: Sizes = tuple(self.sizes[name] for name in self.of_indices)
        return expanded_to(reshaped(value, (*own, width), self.emit), (*whole, width), self.emit)


def _known(size: Size) -> int:
    """A size that is a number; 0 for a symbolic one."""
    return size if isinstance(size, int) else 0
