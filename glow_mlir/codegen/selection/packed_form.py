"""How a kernel wants an operand packed: what `select` makes, and `verify-selected` expects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute

from glow_mlir.constants.packed_layout import PackedLayout
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.shapes import Shape


@dataclass(frozen=True)
class Layout:
    """Where the elements of a box are in a buffer: strides and offset, in elements."""

    strides: Shape
    offset: int = 0


@dataclass(frozen=True)
class Move:
    """A box of a packed form: the elements of the operand that `source` says, or zeros."""

    shape: Shape
    target: Layout
    source: Layout | None = None


Moves = Callable[[], Sequence[Move]]
"""Gives the boxes that a packed form consists of."""


@dataclass(frozen=True)
class PackedForm:
    """
    A layout of an operand, and the type of its elements there.

    Where packing only moves elements, `moves` says so for operands that are known at run time.
    """

    layout: PackedLayout
    element: Attribute
    moves: Moves | None = None

    def described(self) -> DictionaryAttr:
        """What `packing` of an instruction says of the operand."""
        layout = self.layout
        numbers = {key: to_attribute(number) for key, number in layout.numbers.items()}
        return DictionaryAttr({"form": StringAttr(layout.form), "shape": to_attribute(layout.plain), **numbers})
