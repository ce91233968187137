"""
Tiled layouts: a packed form permutes the operand's axes, some of them cut: `n / panel, k / interleave`.

Axes are named by words of a line of text. If the columns `n` of a matrix `k n` are cut, they are two axes of the packed
form, the panels `n/` and the columns of a panel `n%`: `n/ k n%`. Axes in parentheses, as in `n/ (r k/) n% k%`, are
merged into one axis of the packed form.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided

from glow_mlir.constants.packed_layout import Blocks, PackedLayout
from glow_mlir.support.dataclass import dataclass

COLUMNS = "n"
"""The axis along which the packed form is built in parts."""

DEPTH = "k"
"""The axis whose neighbours are adjacent in interleaved layouts, in runs."""


class Transform(ABC):
    """A computation on an operand before packing. Subclasses are frozen dataclasses."""

    axes: str
    """The names of the axes of the result."""

    @abstractmethod
    def apply(self, operand: np.ndarray) -> np.ndarray:
        """Apply the transform to an operand with the axes of its layout."""

    @abstractmethod
    def undo(self, result: np.ndarray) -> np.ndarray:
        """Invert the transform, up to rounding."""


@dataclass(frozen=True)
class Cut:
    """
    The cut of an axis into pieces of `unit` elements. The last piece is zero-padded: behind its elements, or in front
    of them if `is_shared` and there are full pieces, so that kernels can read it as a full piece that overlaps the
    previous one.
    """

    unit: int
    is_shared: bool = False

    def boxes(self, size: int) -> list[tuple[slice, slice, slice]]:
        """The boxes of an axis, full pieces and the rest: element range, piece range, and range within pieces."""
        whole, rest = divmod(size, self.unit)
        moved = self.moved(size)
        parts = [
            (slice(whole * self.unit), slice(whole), slice(self.unit)),
            (slice(whole * self.unit, size), slice(whole, whole + 1), slice(moved, moved + rest)),
        ]
        return [part for part, count in zip(parts, (whole, rest), strict=True) if count]

    def moved(self, size: int) -> int:
        """The number of zeros in front of the last elements."""
        return -size % self.unit if self.is_shared and size > self.unit else 0


@dataclass(frozen=True)
class StridedView:
    """The memory of a box's elements: strides and offset, in elements."""

    strides: tuple[int, ...]
    offset: int

    @staticmethod
    def of(view: np.ndarray, whole: np.ndarray, axes: list[int]) -> StridedView:
        """Some axes of a view of a byte array."""
        address = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        return StridedView(tuple(view.strides[axis] for axis in axes), address)


@dataclass(frozen=True)
class Move:
    """A box of a packed form: elements of the operand, or zeros."""

    shape: tuple[int, ...]
    target: StridedView
    source: StridedView | None

    @staticmethod
    def of(packed_view: np.ndarray, packed: np.ndarray, source: tuple[np.ndarray, np.ndarray] | None = None) -> Move:
        """Match a view of the packed form with a view of the operand's elements."""
        axes = [axis for axis, size in enumerate(packed_view.shape) if size > 1] or [0]
        shape = tuple(packed_view.shape[axis] for axis in axes)
        return Move(
            shape, StridedView.of(packed_view, packed, axes), None if source is None else StridedView.of(*source, axes)
        )


@dataclass(frozen=True)
class TiledLayout(PackedLayout):
    """
    A layout described by text: `axes` names the axes of the operand, with their `sizes`, `order` those of the packed
    form. If a `transform` comes first, it has its own axes, whose sizes are among the others.

    With `sums` above 0, each panel starts with a row whose first bytes are i32: the sum of each column times that
    number.
    """

    form: str
    plain: tuple[int, ...]
    axes: str
    order: str
    sizes: Mapping[str, int]
    cuts: Mapping[str, Cut]
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    transform: Transform | None = None
    sums: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        digits = self._digits()
        found = [math.prod(digits[word] for word in group) for group in _groups(self.order)]
        if self.sums:
            found[self._rows_axis] += 1
        return tuple(found)

    @property
    def blocks(self) -> Blocks:
        names, plain = self.axes.split(), [max(1, size) for size in self.plain]
        before = math.prod(max(1, self.sizes[name]) for name in names[: names.index(COLUMNS)])
        ends = [math.prod(plain[: axis + 1]) for axis in range(len(plain))]
        axis = next(axis for axis, end in enumerate(ends) if end >= before * self.sizes[COLUMNS])
        sections = before // math.prod(plain[:axis])
        unit = self.cuts[COLUMNS].unit if COLUMNS in self.cuts else 1
        return Blocks(axis, unit, self._axis_of(_first(COLUMNS, self.cuts)), sections)

    def write(self, operand: np.ndarray, packed: np.ndarray) -> None:
        blocks = self.blocks
        part = self._of_columns(operand.shape[blocks.axis] // blocks.sections)
        source = operand.reshape([part.sizes[name] for name in self.axes.split()])
        is_filled = any(part.sizes[name] % cut.unit for name, cut in self.cuts.items())
        if is_filled or self.sums:
            packed[...] = 0
        if self.transform is None:
            part._position(source, packed)
            return
        # Panel by panel, so that the elements stay in the cache.
        columns, panels = self.axes.split().index(COLUMNS), self._axis_of(_first(COLUMNS, self.cuts))
        for number, begin in enumerate(range(0, part.sizes[COLUMNS], blocks.unit)):
            taken = source[(slice(None),) * columns + (slice(begin, begin + blocks.unit),)]
            some = self._of_columns(taken.shape[columns])
            some._position(self.transform.apply(taken), packed[(slice(None),) * panels + (slice(number, number + 1),)])

    def unpack(self, packed: np.ndarray) -> np.ndarray:
        if packed.shape != self.shape:
            raise ValueError(f"{self.form} of {self.plain} have the shape {self.shape}, not {packed.shape}")
        names = self._placed.split()
        found = np.empty([self.sizes[name] for name in names], packed.dtype)
        for elements, packed_view in self._pairs(found, packed):
            elements[...] = packed_view
        whole = found if self.transform is None else self.transform.undo(found)
        return np.ascontiguousarray(whole).reshape(self.plain)

    def strides(self, plain: Sequence[int]) -> dict[str, int]:
        """The stride of each axis of the layout, for an operand with strides `plain`."""
        names, found = self.axes.split(), dict[str, int]()
        inner = [math.prod(self.plain[axis + 1 :]) for axis in range(len(self.plain))]
        for number, name in enumerate(names):
            steps = math.prod(self.sizes[other] for other in names[number + 1 :])
            axis = next(axis for axis, size in enumerate(inner) if size <= steps)
            found[name] = plain[axis] * (steps // inner[axis])
        return found

    @property
    def rows(self) -> tuple[str, ...]:
        """The words of the rows of a panel, fastest last."""
        return next(group for group in _groups(self.order) if {DEPTH, f"{DEPTH}/"} & set(group))

    def moves(self, plain: Sequence[int]) -> Iterator[Move]:
        """The boxes of a packed form without sums and transform, for an operand with these strides."""
        # The byte arrays are never accessed: only the view arithmetic of numpy is used.
        sizes = [self.sizes[name] for name in self.axes.split()]
        source = as_strided(np.empty(1, np.uint8), sizes, list(self.strides(plain).values()))
        packed = np.empty(self.shape, np.uint8)
        for elements, packed_view in self._pairs(source, packed):
            yield Move.of(packed_view, packed, (elements, source))
        if COLUMNS in self.cuts and (rest := self.sizes[COLUMNS] % self.cuts[COLUMNS].unit):
            packed_view = {f"{COLUMNS}/": slice(-1, None), f"{COLUMNS}%": slice(rest, None)}
            yield Move.of(
                self._apart(packed)[tuple(packed_view.get(word, slice(None)) for word in self._words)], packed
            )

    def _of_columns(self, count: int) -> TiledLayout:
        """The layout of that many columns."""
        return replace(self, sizes={**self.sizes, COLUMNS: count})

    @property
    def _placed(self) -> str:
        """The axes to be placed."""
        return self.axes if self.transform is None else self.transform.axes

    def _digits(self) -> dict[str, int]:
        """The sizes of the words of `order`."""
        found: dict[str, int] = {}
        for name in self._placed.split():
            if name in self.cuts:
                unit = self.cuts[name].unit
                found |= {f"{name}/": -(-self.sizes[name] // unit), f"{name}%": unit}
            else:
                found[name] = self.sizes[name]
        return found

    @property
    def _words(self) -> list[str]:
        """The words of `order`."""
        return [word for group in _groups(self.order) for word in group]

    def _apart(self, packed: np.ndarray) -> np.ndarray:
        """Split the axes of a packed form, or of a part of one, into one axis per word, as a view."""
        digits = self._digits()
        return packed.reshape([digits[word] for word in self._words])

    def _axis_of(self, word: str) -> int:
        """The axis of the packed form that contains a word."""
        return next(axis for axis, group in enumerate(_groups(self.order)) if word in group)

    @property
    def _rows_axis(self) -> int:
        """The axis of the packed form along which the row of sums comes first."""
        return self._axis_of(f"{DEPTH}/")

    def _position(self, source: np.ndarray, packed: np.ndarray) -> None:
        """Write the elements of an array to their positions in zeros."""
        for elements, packed_view in self._pairs(source, packed):
            packed_view[...] = elements
        if self.sums:
            self._write_sums(source, packed)

    def _pairs(self, elements: np.ndarray, packed: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs of views, of equal shape, of elements and of their positions in the packed form."""
        names, words = self._placed.split(), self._words
        dot_groups = packed[(slice(None),) * self._rows_axis + (slice(1, None),)] if self.sums else packed
        wanted = [word for name in names for word in ((f"{name}/", f"{name}%") if name in self.cuts else (name,))]
        packed_view = self._apart(dot_groups).transpose([words.index(word) for word in wanted])
        choices = [
            self.cuts[name].boxes(self.sizes[name]) if name in self.cuts else [(slice(None), slice(None), None)]
            for name in names
        ]
        for boxes in product(*choices):
            there = tuple(part for _, *pieces in boxes for part in pieces if part is not None)
            target = packed_view[there]
            yield elements[tuple(here for here, *_ in boxes)].reshape(target.shape), target

    def _write_sums(self, source: np.ndarray, packed: np.ndarray) -> None:
        """Write the row of sums in front of the other rows."""
        names = self._placed.split()
        kept = [name for name in names if name in ("g", COLUMNS)]
        totals = source.sum(axis=tuple(i for i, name in enumerate(names) if name not in kept), dtype=np.int32)
        unit = self.cuts[COLUMNS].unit
        first = np.moveaxis(packed, self._rows_axis, 0)[0]
        row = np.zeros((*first.shape[:-2], unit), np.int32)
        # The axes in front of a row are groups and panels.
        by_panels = row.reshape(*totals.shape[:-1], -1)
        by_panels[..., : totals.shape[-1]] = totals * self.sums
        bytes_ = np.zeros(first.shape, first.dtype)
        bytes_.reshape(*first.shape[:-2], -1).view(np.int32)[..., :unit] = row
        first[...] = bytes_


def _first(name: str, cuts: Mapping[str, Cut]) -> str:
    """The word of the piece index of an axis."""
    return f"{name}/" if name in cuts else name


@cache
def _groups(order: str) -> tuple[tuple[str, ...], ...]:
    """Split a line of text into words, with those in parentheses grouped."""
    return tuple(tuple(group.strip("()").split()) for group in re.findall(r"\([^)]*\)|\S+", order))
