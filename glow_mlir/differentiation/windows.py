"""Adjoints of windows: each element of an operand gets the contributions of all windows that contain it."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from typing import NoReturn

from xdsl.ir import SSAValue

from glow_mlir.dialects import expressions as ex
from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.generic_form import operand_tensor
from glow_mlir.dialects.glow_high.data_movement import PadOp, SliceOp
from glow_mlir.dialects.index_notation import Access, Sum, sum_of
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.dialects.staging import postorder
from glow_mlir.differentiation.bodies import substituted
from glow_mlir.differentiation.contributions import reshaped, transposed
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.builder.emission import KNOWN, emitted_operation
from glow_mlir.ir.emitter import Emitter
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size

Known = Mapping[Tensor, tuple[SSAValue, Access]]
"""Operands of an expression → their values, and the dimensions of their axes."""


@dataclass(frozen=True)
class Transposed:
    """
    The cotangent of an operand that windows read, as an expression over the elements of that operand.

    Window `h` reads element `i` at its step `k` if `i = s*h + d*k + o`. So element `i` sums over the windows that begin
    `d*k + o` elements in front of it. These sums are windows over the cotangents of all `h`, with the steps in reverse
    order, and with zeros between neighbours if `s` is greater than 1.
    """

    operand: Tensor
    """The operand that windows read."""
    known: Known
    written: frozenset[str]
    """The dimensions of the result of the expression."""
    sizes: Mapping[str, Size]
    """The size of each dimension."""
    emit: Emitter
    compute: Callable[[Tensor, Sequence[str]], SSAValue]
    """Emits an expression, with its dimensions in an order."""

    @property
    def access(self) -> Access:
        """The dimensions of the axes of the operand."""
        return self.known[self.operand][1]

    @cached_property
    def sums(self) -> dict[str, tuple[str, str, Sum]]:
        """Axis that is a sum → the dimension that moves its windows, the folded dimension, and the sum."""
        found: dict[str, tuple[str, str, Sum]] = {}
        for axis in self.access.axes:
            if (total := sum_of(axis)) is None:
                continue
            moved = [name for name in total.terms if name in self.written]
            folded = [name for name in total.terms if name not in self.written]
            if len(moved) != 1 or len(folded) != 1 or not isinstance(self.sizes[folded[0]], int):
                self._refuse(f"an axis '{axis}'")
            found[axis] = moved[0], folded[0], total
        return found

    @cached_property
    def moved(self) -> dict[str, tuple[str, Sum]]:
        """Dimension that moves windows → the folded dimension, and the sum of both."""
        return {moved: (folded, total) for moved, folded, total in self.sums.values()}

    @cached_property
    def folded(self) -> frozenset[str]:
        """The folded dimensions of windows."""
        return frozenset(folded for _, folded, _ in self.sums.values())

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the operand; a sum is replaced by the dimension that moves its windows."""
        return tuple(self.sums[axis][0] if axis in self.sums else axis for axis in self.access.axes)

    def of(self, value: Tensor) -> tuple[Tensor, Known]:
        """
        The cotangent of the operand, over `axes`, from the cotangent of the elements that its windows read.

        Raises `UnsupportedError` for windows of another form.
        """
        leaves: dict[Tensor, Tensor] = {}
        known, along = dict(self.known), self.folded
        if value.word == "add" and value.along:
            along, (value,) = along | value.along, value.parts
        for part in self._apart(value):
            leaves[part] = _added(known, *self._seen(part))
        found = substituted(value, leaves)
        if not self._is_covered([known[leaf][1] for leaf in leaves.values()]):
            mask = _added(known, *self._shifted(self._ones(), tuple(self.moved)))
            found = ex.where(ex.not_equal(mask, 0), found, 0)
        return _summed(found, along), known

    def _apart(self, value: Tensor) -> Iterator[Tensor]:
        """The operands with a folded dimension, and the largest parts without one."""
        seen, waiting = set[Tensor](), [value]
        while waiting:
            part = waiting.pop()
            if part in seen or (part.operand is not None and not part.dimensions):
                continue
            seen.add(part)
            if part.operand is not None or not part.dimensions & self.folded:
                yield part
            elif part.along:
                self._refuse("sums within them")
            else:
                waiting += part.parts

    def _seen(self, part: Tensor) -> tuple[SSAValue, Sequence[str]]:
        """The value of a part, and the axes by which each element of the operand reads it at each step."""
        if part.dimensions & self.folded:
            return self._with_steps(part)
        value, access = self.known.get(part, (None, None))
        if value is None or access is None or access.indices:
            axes = tuple(sorted(part.dimensions))
            value = self.compute(part, axes)
            return self._shifted(value, axes)
        return self._shifted(value, access.axes)

    def _with_steps(self, part: Tensor) -> tuple[SSAValue, Sequence[str]]:
        """An operand with a folded dimension: the elements themselves, or factors in reverse order."""
        value, access = self.known[part]
        axes: list[str] = []
        for axis in access.axes:
            if axis in self.sums:
                axes.append(self.sums[axis][0])
            elif sum_of(axis) is not None or axis in self.moved:
                self._refuse(f"{access}, beside {self.access},")
            else:
                axes.append(axis)
        turned = [number for number, axis in enumerate(axes) if axis in self.folded]
        return self._reversed(value, turned), axes

    def _reversed(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """A value with some axes reversed."""
        if not axes:
            return value
        sizes, rank = sizes_of(value), rank_of(value)
        starts: list[Size] = [sizes[axis] - 1 if axis in axes else 0 for axis in range(rank)]
        ends: list[Size] = [-1 if axis in axes else sizes[axis] for axis in range(rank)]
        steps = [-1 if axis in axes else 1 for axis in range(rank)]
        return self.emit(SliceOp, value, starts=starts, ends=ends, steps=steps)

    def _shifted(self, value: SSAValue, axes: Sequence[str]) -> tuple[SSAValue, Sequence[str]]:
        """A value of each window, zeros between windows, and the axes by which elements of the operand read it."""
        found: list[str] = []
        for number, name in enumerate(axes):
            if name not in self.moved:
                found.append(name)
                continue
            folded, total = self.moved[name]
            step, count = total.terms[folded], self.sizes[folded]
            assert isinstance(count, int)
            value = self._spread(value, number, total.terms[name])
            found.append(str(Sum({name: 1, folded: step}, -(step * (count - 1) + total.offset))))
        return value, found

    def _spread(self, value: SSAValue, axis: int, apart: int) -> SSAValue:
        """A value whose elements along an axis are `apart` elements apart, with zeros between."""
        if apart == 1:
            return value
        sizes = sizes_of(value)
        opened = reshaped(value, (*sizes[: axis + 1], 1, *sizes[axis + 1 :]), self.emit)
        after = [0] * (len(sizes) + 1)
        after[axis + 1] = apart - 1
        padded = self.emit(PadOp, opened, pads=(*(0 for _ in after), *after))
        return reshaped(padded, (*sizes[:axis], sizes[axis] * apart, *sizes[axis + 1 :]), self.emit)

    def _ones(self) -> SSAValue:
        """A one for each window."""
        return self.emit.splat(1, self.known[self.operand][0], tuple(self.sizes[name] for name in self.moved))

    def _is_covered(self, accesses: Sequence[Access]) -> bool:
        """Whether the values have windows along each moved dimension, without zeros in between."""
        sums = (total for access in accesses for total in map(sum_of, access.axes) if total is not None)
        covered = {name for total in sums for name in total.terms}
        return all(name in covered and total.terms[name] == 1 for name, (_, total) in self.moved.items())

    def _refuse(self, what: str) -> NoReturn:
        hint = "one dimension moves along an axis, and one is folded"
        raise UnsupportedError(f"windows with {what} have no derivative", hint=hint)


def _summed(value: Tensor, along: frozenset[str]) -> Tensor:
    """A sum along dimensions: factors without these dimensions are moved out, and equal terms are computed once."""
    terms = list(_terms(value))
    counts = Counter(map(_key, terms))
    if len(counts) > 1:
        return ex.reduce_sum(value, sorted(along))
    factors = list(_factors(terms[0]))
    inside = [factor for factor in factors if factor.dimensions & along]
    outside = [factor for factor in factors if not factor.dimensions & along]
    if not along <= frozenset[str]().union(*(factor.dimensions for factor in inside)):
        return ex.reduce_sum(value, sorted(along))
    total = reduce(operator.mul, outside, ex.reduce_sum(reduce(operator.mul, inside), sorted(along)))
    return total * len(terms) if len(terms) > 1 else total


def _terms(value: Tensor) -> Iterator[Tensor]:
    """The terms of a sum of values."""
    if value.word == "add" and not value.along and len(value.parts) == 2:
        for part in value.parts:
            yield from _terms(part)
    else:
        yield value


def _factors(value: Tensor) -> Iterator[Tensor]:
    """The factors of a product of values."""
    if value.word == "mul" and not value.along and len(value.parts) == 2:
        for part in value.parts:
            yield from _factors(part)
    else:
        yield value


def _key(part: Tensor) -> object:
    """A key that is equal for expressions that compute the same value."""
    if part.operand is not None:
        return part
    arguments = (_key(item) if isinstance(item, Tensor) else item for item in part.arguments)
    return part.word, part.element, part.along, part.counted, tuple(arguments)


def folded(
    root: Tensor, known: Known, compute: Callable[[Tensor, Known], SSAValue]
) -> tuple[Known, Mapping[Tensor, Tensor]]:
    """The operands with the inner folds of an expression added, which `compute` emits; and fold → its operand."""
    values, names = dict(known), dict[Tensor, Tensor]()
    for part in (part for part in postorder(root) if part.along and part is not root):
        names[part] = Tensor(part.element, part.dimensions, "fold", operand=len(values))
        values[names[part]] = compute(part, known), Access(f"fold{len(values)}", tuple(sorted(part.dimensions)))
    return values, names


def emitted(root: Tensor, known: Known, axes: Sequence[str], emit: Emitter) -> SSAValue | None:
    """
    Emit an expression over axes as elementwise operators, which fuse; `None` if it needs folds or windows.
    """
    parts = list(postorder(root))
    if not all(part.word in KNOWN if part.operand is None else not part.is_windowed for part in parts):
        return None
    values: dict[Tensor, SSAValue] = {}
    for part in parts:
        values[part] = (
            _arranged(*known[part], axes, emit) if part.operand is not None else emitted_operation(part, values, emit)
        )
    return values[root]


def _arranged(value: SSAValue, access: Access, axes: Sequence[str], emit: Emitter) -> SSAValue:
    """An operand with these axes; an axis that it lacks has size 1."""
    sizes = dict(zip(access.axes, sizes_of(value), strict=True))
    order = [access.axes.index(axis) for axis in axes if axis in sizes]
    rest = [axis for axis in range(rank_of(value)) if axis not in order]
    moved = transposed(value, (*order, *rest), emit)
    return reshaped(moved, tuple(sizes.get(axis, 1) for axis in axes), emit)


def _added(known: dict[Tensor, tuple[SSAValue, Access]], value: SSAValue, axes: Sequence[str]) -> Tensor:
    """Add a value with these axes to the operands."""
    access = Access(f"part{len(known)}", tuple(axes))
    leaf = operand_tensor(element_of(value), access, len(known))
    known[leaf] = value, access
    return leaf


def separated(root: Tensor, known: Known, compute: Callable[[Tensor, Known], SSAValue]) -> tuple[Tensor, Known]:
    """
    An expression over windows whose folds all have the same dimensions, and one value for each element of the result.

    Other folds become operands, which `compute` emits with their dimensions in order.
    """
    folds = [part for part in postorder(root) if part.along]
    inner = {part for fold in folds for part in postorder(fold.parts[0]) if part.along}
    outer = [fold for fold in folds if fold not in inner]
    along = outer[0].along if outer else frozenset[str]()
    values, leaves = dict(known), dict[Tensor, Tensor]()

    def computed(part: Tensor) -> Tensor:
        axes = tuple(sorted(part.dimensions))
        leaf = Tensor(part.element, part.dimensions, "statistic", operand=len(values))
        values[leaf] = compute(part, values), Access(f"statistic{len(values)}", axes)
        return leaf

    for part in folds:
        first = part.along - _behind(part, known)
        if first != part.along:  # Fold the steps of each window first, then all windows.
            own = replace(substituted(part, leaves), along=first, dimensions=part.dimensions | part.along - first)
            leaves[part] = computed(replace(part, along=part.along - first, arguments=(computed(own),)))
        elif part in inner or part.along != along or part.dimensions != root.dimensions:
            leaves[part] = computed(substituted(part, leaves))
    return substituted(root, leaves), values


def _behind(fold: Tensor, known: Known) -> frozenset[str]:
    """The dimensions of sums that are folded, except the last folded one of each sum."""
    accesses = [known[part][1] for part in ex.windowed_operands(fold.parts[0])]
    sums = (total for access in accesses for total in map(sum_of, access.axes) if total is not None)
    return frozenset(name for total in sums for name in [name for name in total.terms if name in fold.along][:-1])
