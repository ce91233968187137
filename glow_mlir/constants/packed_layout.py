"""
Packed layouts: memory layouts of kernel operands.

A layout is one value that determines everything about packing: the packed shape, packing and unpacking by numpy,
packing in parts, and, by `codegen/kernels/products/pack.py`, packing in machine code.
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
    How a packed form is built in parts.

    Every `unit` indices along `axis` of the operand, fewer at its end, become one index along `target` of the packed
    form, independently. If the axis consists of equal `sections`, that many indices of each section, in order, become
    one index.
    """

    axis: int
    unit: int
    target: int
    sections: int = 1


class PackedLayout(ABC):
    """The packed layout of an operand of shape `plain`. Subclasses are frozen dataclasses."""

    form: str
    """The name of the layout in `packing` of an instruction."""
    plain: tuple[int, ...]
    numbers: Mapping[str, int]
    """The parameters of the layout in `packing`: with form and shape, they identify it."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the packed operand."""

    @property
    @abstractmethod
    def blocks(self) -> Blocks:
        """How the packed operand is built in parts."""

    def pack(self, operand: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
        """Pack an operand, or a part of it along the axis of `blocks`, to elements of type `dtype`."""
        shape, blocks = list(self.shape), self.blocks
        shape[blocks.target] = -(-operand.shape[blocks.axis] // blocks.sections // blocks.unit)
        packed = np.empty(shape, dtype)
        self.write(operand, packed)
        return packed

    @abstractmethod
    def write(self, operand: np.ndarray, packed: np.ndarray) -> None:
        """
        Pack an operand, or a part of it along the axis of `blocks`, into an array of the packed shape with any content.
        """

    @abstractmethod
    def unpack(self, packed: np.ndarray) -> np.ndarray:
        """
        Unpack an operand of that type; exact up to rounding if packing computes.

        Raises `ValueError` if no operand of that layout has the packed shape.
        """

    @property
    def recipe(self) -> str:
        """A textual description of the layout, for digests and names."""
        return f"{self.form} {dict(self.numbers)}"
