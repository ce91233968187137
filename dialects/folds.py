"""The ways to fold elements: the one table from which dialects, interpreter, machine code and lowerings have them."""

from __future__ import annotations

import math
from functools import cache
from typing import cast

from xdsl.dialects import arith
from xdsl.ir import Attribute, Block, Operation

from glow_mlir.dialects.element_types import is_float, is_unsigned, number_width
from glow_mlir.dialects.scalar_builder import BINARY
from glow_mlir.support.dataclass import dataclass

NUMBERS = {"maxnum": arith.MaxnumfOp, "minnum": arith.MinnumfOp}
"""Folds that skip NaN, and the op of two elements."""

UNSIGNED = 2
"""The variant of an operation on unsigned integers, in `BINARY`."""

NEUTRAL = {"add": 0, "mul": 1, "max": -math.inf, "min": math.inf, "and": -1, "or": 0, "xor": 0}
"""What a fold gives of nothing; infinities stand for the ends of the range of an integer type."""

FLOATS = ("add", "mul", "max", "min", "maxnum", "minnum")
INTEGERS = ("add", "mul", "max", "min", "and", "or", "xor")
"""The folds of elements of a type, by name."""

COMBINING = ("add", "mul", "max", "min")
"""The folds of numbers of any type."""

_WORDS = {"max": ("maximumf", "maxsi", "maxui"), "min": ("minimumf", "minsi", "minui")}
"""The combining kinds of MLIR of floats, signed and unsigned integers, where they differ."""


@dataclass(frozen=True)
class Fold:
    """A way to fold elements of one kind."""

    name: str
    """How it is called for elements of any kind."""
    variant: int
    """Whether it is of floats (0), of signed (1) or of unsigned integers (2), as in `BINARY`."""

    @property
    def word(self) -> str:
        """The combining kind, in MLIR's words."""
        if self.name in NUMBERS:
            return f"{self.name}f"
        return _WORDS.get(self.name, (self.name,) * 3)[self.variant]

    @property
    def operation(self) -> type[Operation]:
        """The op that combines two elements."""
        return NUMBERS.get(self.name) or cast("type[Operation]", BINARY[self.name][self.variant])

    def combination(self, element: Attribute) -> Operation:
        """An op that combines two elements of a type, the arguments of a block."""
        return _combination(self.operation, element)

    def neutral(self, element: Attribute) -> float:
        """What it gives of nothing, for a signless element type."""
        number = NEUTRAL[self.name.removesuffix("num")]
        if not math.isinf(number) or self.variant == 0:
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


_ALL = [
    *(Fold(name, 0) for name in FLOATS),
    *(Fold(name, variant) for name in INTEGERS for variant in ((1, UNSIGNED) if name in _WORDS else (1,))),
]
FOLDS = {(fold.word, bool(fold.variant)): fold for fold in _ALL}
"""Word of a fold, and whether it is of integers → the fold."""

FLOAT_FOLDS = tuple(fold.word for fold in _ALL if not fold.variant)
"""How floats are folded: `maximumf` and `minimumf` give NaN where an element is, `maxnumf` and `minnumf` skip those."""
INTEGER_FOLDS = tuple(fold.word for fold in _ALL if fold.variant)
"""How integers are folded, in the words of MLIR's `vector.reduction`."""


def fold_of(name: str, element: Attribute) -> Fold:
    """The fold of a name, for elements of a type; those of integers skip nothing."""
    if is_float(element):
        return Fold(name, 0)
    return Fold(name.removesuffix("num"), UNSIGNED if is_unsigned(element) else 1)


def known_fold(word: str, element: Attribute) -> Fold:
    """The fold that a word is, of elements of a type."""
    return FOLDS[word, not is_float(element)]
