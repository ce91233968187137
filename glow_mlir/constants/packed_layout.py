"""
Packed layouts: how the elements of an operand lie in memory for a kernel.

A layout is one value, from which all follows that packing takes: the packed shape, packing and unpacking by numpy,
packing in parts, and, by `codegen/kernels/pack.py`, packing in machine code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Blocks:
    """
    How a packed form is made piece by piece.

    Every `unit` indices along `axis` of the operand, or what is left of them at its end, become one index along
    `target` of the packed form for themselves. The axis is made of equal `sections`, of each of which that many
    indices, one section after the other, become one index.
    """

    axis: int
    unit: int
    target: int
    sections: int = 1


class PackedLayout(ABC):
    """A layout of an operand of shape `plain`. Subclasses are frozen dataclasses."""

    form: str
    """What the layout is called in `packing` of an instruction."""
    plain: tuple[int, ...]
    numbers: Mapping[str, int]
    """The parameters that `packing` has beside it: with form and shape, they tell it from every other layout."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the packed operand."""

    @property
    @abstractmethod
    def blocks(self) -> Blocks:
        """How the packed operand is made piece by piece."""

    def pack(self, operand: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
        """
        The packed form, of elements of the type `dtype`, of an operand, or of a part of one along the axis of `blocks`.
        """
        shape, blocks = list(self.shape), self.blocks
        shape[blocks.target] = -(-operand.shape[blocks.axis] // blocks.sections // blocks.unit)
        packed = np.empty(shape, dtype)
        self.write(operand, packed)
        return packed

    @abstractmethod
    def write(self, operand: np.ndarray, packed: np.ndarray) -> None:
        """
        Write the packed form of an operand, or of a part of one along the axis of `blocks`, to an array of its shape,
        whatever that holds.
        """

    @abstractmethod
    def unpack(self, packed: np.ndarray) -> np.ndarray:
        """
        The operand that `pack` packed, of that type; up to rounding where packing computes.

        Raises `ValueError` where nothing of that layout has the shape of `packed`.
        """

    @property
    def recipe(self) -> str:
        """The layout in words, for digests and names."""
        return f"{self.form} {dict(self.numbers)}"
