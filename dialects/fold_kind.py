"""A fold of elements: the single definition that words, operations, machine code and gradient are derived from."""

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
"""Computes the operand's cotangent from the result's cotangent, the operand, the result, and the dimensions."""


@dataclass(frozen=True, eq=False)
class FoldKind:
    """A fold of elements of any type. In index notation, it is called with a value and dimensions."""

    name: str
    meaning: str
    neutral: float
    """The result of an empty fold; infinities stand for the limits of an integer type."""
    words: tuple[str, ...] = ()
    """MLIR's combining kinds for floats, signed and unsigned integers, where they differ."""
    variants: tuple[int, ...] = (FLOAT, SIGNED)
    """The variants that exist; unsigned integers use the signed variant unless they have their own."""
    operation: type[Operation] | None = None
    """The operation that combines two elements, unless it is the one of the same name in `scalar_builder.BINARY`."""
    of_integers: str = ""
    """The fold that replaces it for integers."""
    better: str = ""
    """The comparison by which one element is preferred to another, for folds that have a position."""
    is_idempotent: bool = False
    """Whether combining an element with itself gives that element."""
    is_running: bool = False
    """Whether running totals are available; the reference folds floats in f64 and rounds once."""
    adjoint: Adjoint | None = None
    """The gradient of the fold of floats."""

    def __call__(self, x: Tensor, along: str | Sequence[str]) -> Tensor:
        """The fold along dimensions; raises `OptionError` for one that the value does not have."""
        from glow_mlir.dialects.expressions import fold

        return fold(self.name, x, along)
