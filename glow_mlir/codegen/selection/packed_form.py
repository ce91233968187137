"""How a kernel wants an operand packed: what `select` makes, and `verify-selected` expects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute

from glow_mlir.constants.deferred import Blocks
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
    A form that `@packed_form` registers, with the numbers it was made by, of an operand of shape `plain`.

    `pack` makes the packed operand, which has `shape` and `element`; with `blocks` it does so piece by piece, when its
    bytes are needed. Where it only moves elements, `moves` says so for operands that are known at run time.
    """

    name: str
    plain: Shape
    shape: Shape
    element: Attribute
    pack: Callable[[np.ndarray], np.ndarray]
    blocks: Blocks | None = None
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    moves: Moves | None = None

    def described(self) -> DictionaryAttr:
        """What `packing` of an instruction says of the operand."""
        numbers = {key: to_attribute(number) for key, number in self.numbers.items()}
        return DictionaryAttr({"form": StringAttr(self.name), "shape": to_attribute(self.plain), **numbers})
