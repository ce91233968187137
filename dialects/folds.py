"""The folds of elements of a type, as the table of folds has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import cast

from xdsl.ir import Attribute, Block, Operation

from glow_mlir.dialects import fold_kinds
from glow_mlir.dialects.element_types import is_float, is_unsigned, number_width
from glow_mlir.dialects.fold_kind import FLOAT, SIGNED, UNSIGNED, FoldKind
from glow_mlir.dialects.scalar_builder import BINARY
from glow_mlir.support.dataclass import dataclass

KINDS: Mapping[str, FoldKind] = {row.name: row for row in vars(fold_kinds).values() if isinstance(row, FoldKind)}
"""Name → fold."""

COMBINING = tuple(kind.name for kind in KINDS.values() if {FLOAT, SIGNED} <= {*kind.variants})
"""The folds of numbers of any type."""


@dataclass(frozen=True)
class Fold:
    """A fold of elements of one kind."""

    name: str
    """The name of the fold, the same for elements of any kind."""
    variant: int
    """The kind of elements: floats, signed or unsigned integers."""

    @property
    def kind(self) -> FoldKind:
        """The fold for elements of any kind."""
        return KINDS[self.name]

    @property
    def word(self) -> str:
        """The combining kind, in MLIR's words."""
        return self.kind.words[self.variant] if self.kind.words else self.name

    @property
    def operation(self) -> type[Operation]:
        """The op that combines two elements."""
        return self.kind.operation or cast("type[Operation]", BINARY[self.name][self.variant])

    def combination(self, element: Attribute) -> Operation:
        """A new op that combines two elements of a type, which are arguments of a block."""
        return _combination(self.operation, element)

    def neutral(self, element: Attribute) -> float:
        """The result of an empty fold, for a signless element type."""
        number = self.kind.neutral
        if not math.isinf(number) or self.variant == FLOAT:
            return number
        if self.variant == UNSIGNED:
            return 0 if number < 0 else -1
        half = 1 << number_width(element) - 1
        return -half if number < 0 else half - 1


@cache
def _combination(operation: type[Operation], element: Attribute) -> Operation:
    block = Block(arg_types=[element, element])
    op = operation(*block.args)
    block.add_op(op)
    return op


FOLDS = {
    (fold.word, variant != FLOAT): fold
    for name, kind in KINDS.items()
    for variant in kind.variants
    for fold in (Fold(name, variant),)
}
"""(Word of a fold, whether elements are integers) → the fold."""

FLOAT_FOLDS = tuple(word for word, is_integer in FOLDS if not is_integer)
"""The folds of floats: `maximumf` and `minimumf` propagate NaN, `maxnumf` and `minnumf` skip it."""
INTEGER_FOLDS = tuple(word for word, is_integer in FOLDS if is_integer)
"""The folds of integers, in the words of MLIR's `vector.reduction`."""


def fold_of(name: str, element: Attribute) -> Fold:
    """The fold of that name for elements of a type; folds of integers skip no element."""
    if is_float(element):
        return Fold(name, FLOAT)
    return Fold(KINDS[name].of_integers or name, UNSIGNED if is_unsigned(element) else SIGNED)


def known_fold(word: str, element: Attribute) -> Fold:
    """The fold of a word of MLIR, for elements of a type."""
    return FOLDS[word, not is_float(element)]
