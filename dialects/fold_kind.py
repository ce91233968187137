"""A way to fold elements: the one statement from which words, operations, machine code and gradient are derived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from glow_mlir.support.dataclass import dataclass

if TYPE_CHECKING:
    from glow_mlir.dialects.expressions import Tensor

FLOAT, SIGNED, UNSIGNED = range(3)
"""The variants of an operation, as in `scalar_builder.BINARY`."""

Adjoint = Callable[["Tensor", "Tensor", "Tensor", Sequence[str]], "Tensor"]
"""Gives the cotangent of what is folded from that of the result, what is folded, the result, and the dimensions."""


@dataclass(frozen=True, eq=False)
class FoldKind:
    """A way to fold elements of any type. As a word of index notation, it is called with a value and dimensions."""

    name: str
    meaning: str
    neutral: float
    """What it gives of nothing; infinities stand for the ends of the range of an integer type."""
    words: tuple[str, ...] = ()
    """The combining kinds of MLIR of floats, signed and unsigned integers, where they differ."""
    variants: tuple[int, ...] = (FLOAT, SIGNED)
    """Of which elements it is; a fold of signed integers is that of unsigned ones unless these have their own."""
    operation: type[Operation] | None = None
    """The operation that combines two elements, if it is not that of its name in `scalar_builder.BINARY`."""
    of_integers: str = ""
    """The fold that integers have in its place."""
    better: str = ""
    """The comparison by which an element goes before another one, for a fold that has a position."""
    is_idempotent: bool = False
    """Whether an element together with itself is that element."""
    is_running: bool = False
    """Whether there are running totals; the reference folds floats in f64, rounded once."""
    adjoint: Adjoint | None = None
    """The gradient, of a fold of floats."""

    def __call__(self, x: Tensor, along: str | Sequence[str]) -> Tensor:
        """The fold along dimensions; raises `OptionError` for one that the value does not have."""
        from glow_mlir.dialects.expressions import fold

        return fold(self.name, x, along)
