"""How machine code folds elements: the carried values, and how they take in elements or are joined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.scalar_body import EMITTERS
from glow_mlir.dialects import folds
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.stages import POSITION_FOLDS, index_type
from glow_mlir.support.dataclass import dataclass


class Fold(ABC):
    """A way to fold elements."""

    @abstractmethod
    def initial(self, element: Attribute) -> list[tuple[float, Attribute]]:
        """Return the initial carried values and their element types."""

    @abstractmethod
    def take(self, b: Builder, before: Sequence[Value], element: Sequence[Value], index: Value | None) -> list[Value]:
        """Take in an element, or the product of two; `index` is its index. Return the new values."""

    @abstractmethod
    def join(self, b: Builder, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        """Join the values of two parts."""

    def result(self, b: Builder, values: Sequence[Value], may_be_empty: bool) -> Value:
        """Return the result of the fold; there may have been no elements if `may_be_empty`."""
        return values[-1]


@dataclass(frozen=True)
class Combined(Fold):
    """A fold that combines two values into one of their type."""

    fold: folds.Fold

    def combine(self, b: Builder, x: Value, y: Value) -> Value:
        """Combine two values."""
        op = self.fold.combination(x.info.element)
        return EMITTERS[type(op)](b, op, [x, y])

    def initial(self, element: Attribute) -> list[tuple[float, Attribute]]:
        return [(self.fold.neutral(element), element)]

    def take(self, b: Builder, before: Sequence[Value], element: Sequence[Value], index: Value | None) -> list[Value]:
        if len(element) == 2:
            return [b.fma(element[0], element[1], before[0])]
        return [self.combine(b, before[0], element[0])]

    def join(self, b: Builder, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        return [self.combine(b, x[0], y[0])]


@dataclass(frozen=True)
class Position(Fold):
    """The index of an extreme: carries the best element so far and its index, which is -1 at the start."""

    predicate: str
    """The comparison by which an element is better than another one."""
    is_last: bool

    def initial(self, element: Attribute) -> list[tuple[float, Attribute]]:
        return [(0, element), (-1, index_type(element))]

    def _is_better(self, b: Builder, x: Value, y: Value) -> Value:
        """Whether x is better than y; NaN is better than any number."""
        found = b.compare(self.predicate, x, y)
        return found & b.compare("ord", y, y) if is_float(x.info.element) else found

    def take(self, b: Builder, before: Sequence[Value], element: Sequence[Value], index: Value | None) -> list[Value]:
        (best, position), (x,) = before, element
        assert index is not None
        replaces = ~self._is_better(b, best, x) if self.is_last else self._is_better(b, x, best)
        # The first element always replaces the initial value, which may be better.
        replaces = replaces | (position < 0)
        return [b.select(replaces, x, best), b.select(replaces, index, position)]

    def join(self, b: Builder, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        after, before = self._is_better(b, y[0], x[0]), self._is_better(b, x[0], y[0])
        further = (y[1] > x[1]) if self.is_last else (y[1] < x[1])
        take = (after | (~before & further) | (x[1] < 0)) & (y[1] >= 0)
        return [b.select(take, y[0], x[0]), b.select(take, y[1], x[1])]

    def result(self, b: Builder, values: Sequence[Value], may_be_empty: bool) -> Value:
        (_, position) = values
        return b.select(position < 0, 0, position) if may_be_empty else position


def fold_for(word: str, element: Attribute) -> Fold:
    """Return how machine code folds elements of a type in the way that `word` names."""
    if word not in POSITION_FOLDS:
        return Combined(folds.known_fold(word, element))
    extreme, is_last = POSITION_FOLDS[word]
    fold = folds.known_fold(extreme, element)
    return Position(f"{'s' if fold.variant == folds.SIGNED else 'u'}{fold.kind.better}", is_last)


def combined(name: str, element: Attribute) -> Combined:
    """Return the named fold of values that are loaded as elements of a type."""
    return Combined(folds.fold_of(name, element))
