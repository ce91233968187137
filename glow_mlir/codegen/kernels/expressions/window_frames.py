"""How windows lie over their operands: along which dimensions they move, and where they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property

from glow_mlir.codegen.access import lanes_for
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, nest_steps
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.expressions.generic_program import Program
from glow_mlir.dialects.affine_maps import Terms, sums_in
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.sizes import smallest, static
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Quotient, Size


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of an operand whose index is a sum."""

    number: int
    """Which operand it is, counted from 0."""
    position: int
    """The number of the axis."""
    terms: Terms
    size: Size
    border: tuple[int, int]

    def step(self, dimension: int) -> int:
        """By how much a dimension moves the index."""
        return self.terms.steps[dimension]

    def holds(self, space: Sequence[Size], is_bordered: bool) -> bool:
        """Whether each index lies in the operand, or in its border as well."""
        before, after = self.border if is_bordered else (0, 0)
        steps = self.terms.steps.items()
        last = sum((_reach(space[d], times) for d, times in steps), start=self.size * 0 + self.terms.offset)
        return -before <= self.terms.offset and smallest(self.size + (after - 1) - last) >= 0


def _reach(size: Size, times: int) -> Size:
    """By how much the last of so many indices is moved, or a little more."""
    if not isinstance(size, int) and len(size.terms) == 1:
        ((product, count),) = size.terms
        if count == 1 and len(product) == 1 and isinstance(product[0], Quotient) and product[0].divisor == times:
            return product[0].dividend + (size.offset - 1) * times
    return (size - 1) * times


@dataclass(frozen=True)
class Frame:
    """How windows lie: along which dimensions they move, and how operands lie along these and others."""

    program: Program
    strides: Sequence[Shape]
    """By how many elements each dimension moves the result, the operands, and extra operands."""

    @cached_property
    def axes(self) -> list[Axis]:
        """The axes whose index is a sum."""
        *maps, _ = self.program.form.maps
        borders = self.program.form.borders or ((),) * len(maps)
        return [
            Axis(number, axis, terms, view[axis], border[axis] if border else (0, 0))
            for number, (affine, view, border) in enumerate(zip(maps, self.program.op.views(), borders, strict=True))
            for axis, terms in sums_in(affine).items()
        ]

    @cached_property
    def moved(self) -> list[int]:
        """The parallel dimensions that windows move along."""
        found = {dimension for axis in self.axes for dimension in axis.terms.steps}
        return [dimension for dimension in self.program.parallel if dimension in found]

    @cached_property
    def channels(self) -> int | None:
        """The last of the other parallel dimensions, if there are any."""
        others = [dimension for dimension in self.program.parallel if dimension not in self.moved]
        return others[-1] if others else None

    @cached_property
    def merged(self) -> list[int]:
        """`channels`, and the dimensions in front of it that go on where it ends, as one with it."""
        if self.channels is None:
            return []
        found, space = [self.channels], self.program.space
        free = [dimension for dimension in self.program.parallel if dimension not in self.moved]
        for dimension in reversed(free[:-1]):
            length = math.prod(size if isinstance(size := space[own], int) else 0 for own in found)
            goes_on = (strides[dimension] == strides[self.channels] * length for strides in self.strides)
            if {*self.steps(self.channels)} - {0, 1} or not length or not all(goes_on):
                break
            found.insert(0, dimension)
        return found

    @cached_property
    def others(self) -> list[int]:
        """The parallel dimensions that windows do not move along, but for `merged` ones."""
        known = (*self.moved, *self.merged)
        return [dimension for dimension in self.program.parallel if dimension not in known]

    def steps(self, dimension: int | None) -> Shape:
        """By how many elements a dimension moves the result, operands and extra operands."""
        return tuple(0 if dimension is None else strides[dimension] for strides in self.strides)

    @cached_property
    def row(self) -> Axis | None:
        """
        The axis along which the windows of a row move, where vectors run over these; else `None`.

        Neighbours in memory are windows of a row there, and those of other dimensions are not.
        """
        along = [axis for axis in self.axes if self.moved and self.moved[-1] in axis.terms.steps]
        if len(along) != 1 or not isinstance(self.program.space[self.folded(along[0])], int):
            return None
        if any(self.folded(along[0]) in axis.terms.steps for axis in self.axes if axis is not along[0]):
            return None
        (axis,), steps = along, list(self.steps(self.moved[-1]))
        is_row = steps.pop(0) == 1 and steps.pop(axis.number) in (1, 2) and {*steps} <= {0, 1}
        are_alone = all(self.program.space[dimension] == 1 for dimension in self.merged)
        is_channel = self.steps(self.channels)[0] == 1 and {*self.steps(self.channels)} <= {0, 1}
        return axis if is_row and len(axis.terms.steps) == 2 and (are_alone or not is_channel) else None

    def folded(self, axis: Axis) -> int:
        """The dimension that is folded of an axis."""
        return next(dimension for dimension in axis.terms.steps if dimension in self.program.rows)

    def width(self, target: Target, steps: Sequence[int]) -> int:
        """Lanes of an innermost loop whose operands move by `steps`: enough to hide the latency of an addition."""
        return lanes_for(target, self.program.element, steps, kernel_costs(target).independent_vectors)

    def cuts(self, target: Target) -> int:
        """Into how many parts the loops can be cut."""
        space = static(self.program.space)
        pixels = math.prod(space[dimension] for dimension in (*self.others, *self.moved))
        channels = math.prod(space[dimension] for dimension in self.merged)
        if self.row is not None:
            return pixels * channels // max(1, space[self.moved[-1]])
        return nest_steps((pixels, channels), self.width(target, self.steps(self.channels)))


@dataclass(frozen=True)
class Spot:
    """Where windows are: the index along each parallel dimension but channels, and origins that are computed."""

    indices: Mapping[int, Index]
    origins: dict[Axis, Index] = field(default_factory=dict[Axis, Index])

    def moved(self, dimension: int, index: Index) -> Spot:
        """The spot with an index along one more dimension."""
        kept = {axis: origin for axis, origin in self.origins.items() if dimension not in axis.terms.steps}
        return Spot({**self.indices, dimension: index}, kept)

    def origin(self, b: Builder, axis: Axis) -> Index:
        """Where the first step of windows lies in an axis, maybe outside."""
        if axis not in self.origins:
            moves = axis.terms.steps.items()
            moved = [self.indices[dimension] * times for dimension, times in moves if dimension in self.indices]
            total: Index = moved.pop(0) if moved else b.index(0)
            for move in moved:
                total = move + total
            offset = axis.terms.offset
            self.origins[axis] = total - -offset if offset < 0 else total + offset
        return self.origins[axis]
