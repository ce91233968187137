"""How machine code folds elements: the values that it carries, and how these take in an element or meet others."""

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
    """A way to fold."""

    @abstractmethod
    def initial(self, element: Attribute) -> list[tuple[float, Attribute]]:
        """What the values that it carries start from, and their element types."""

    @abstractmethod
    def take(self, b: Builder, before: Sequence[Value], element: Sequence[Value], index: Value | None) -> list[Value]:
        """The values with an element more, or with the product of two, which has that index."""

    @abstractmethod
    def join(self, b: Builder, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        """The values of two parts together."""

    def result(self, b: Builder, values: Sequence[Value], may_be_empty: bool) -> Value:
        """The result of the fold, of elements that there may be none of."""
        return values[-1]


@dataclass(frozen=True)
class Combined(Fold):
    """A fold that combines two values into one of their type."""

    fold: folds.Fold

    def combine(self, b: Builder, x: Value, y: Value) -> Value:
        """Two values together."""
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
    """The index of an extreme: the best element so far is carried, and its index, which is -1 in front of all."""

    predicate: str
    """The comparison by which an element is better than another one."""
    is_last: bool

    def initial(self, element: Attribute) -> list[tuple[float, Attribute]]:
        return [(0, element), (-1, index_type(element))]

    def _is_better(self, b: Builder, x: Value, y: Value) -> Value:
        """Whether x goes before y: NaN goes before each number."""
        found = b.compare(self.predicate, x, y)
        return found & b.compare("ord", y, y) if is_float(x.info.element) else found

    def take(self, b: Builder, before: Sequence[Value], element: Sequence[Value], index: Value | None) -> list[Value]:
        (best, place), (x,) = before, element
        assert index is not None
        replaces = ~self._is_better(b, best, x) if self.is_last else self._is_better(b, x, best)
        # The first element always replaces what the fold starts from, which may be better than it.
        replaces = replaces | (place < 0)
        return [b.select(replaces, x, best), b.select(replaces, index, place)]

    def join(self, b: Builder, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        after, before = self._is_better(b, y[0], x[0]), self._is_better(b, x[0], y[0])
        further = (y[1] > x[1]) if self.is_last else (y[1] < x[1])
        take = (after | (~before & further) | (x[1] < 0)) & (y[1] >= 0)
        return [b.select(take, y[0], x[0]), b.select(take, y[1], x[1])]

    def result(self, b: Builder, values: Sequence[Value], may_be_empty: bool) -> Value:
        (_, place) = values
        return b.select(place < 0, 0, place) if may_be_empty else place


def fold_for(word: str, element: Attribute) -> Fold:
    """How machine code folds elements of a type in a way."""
    if word not in POSITION_FOLDS:
        return Combined(folds.known_fold(word, element))
    extreme, is_last = POSITION_FOLDS[word]
    fold = folds.known_fold(extreme, element)
    return Position(f"{'s' if fold.variant == folds.SIGNED else 'u'}{fold.kind.better}", is_last)


def combined(name: str, element: Attribute) -> Combined:
    """The fold of a name, of values that are read as elements of a type."""
    return Combined(folds.fold_of(name, element))
