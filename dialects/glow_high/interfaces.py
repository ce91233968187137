"""What passes ask an operator about itself, in place of lists of operators in the passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import NamedTuple

from xdsl.ir import SSAValue

from glow_mlir.dialects.shapes import Shape, rank_of, size_of
from glow_mlir.support.dataclass import dataclass


class OnCodes(Enum):
    """What an operator on numbers is where these are quantized: how scales of its operands and results relate."""

    PRODUCT = "product"
    """Products of the first two operands are summed in integers; a constant second one may have a scale a channel."""
    MOVEMENT = "movement"
    """Elements of the result are elements of operands: all have one scale and zero point."""
    ARITHMETIC = "arithmetic"
    """Each operand and result has parameters of its own."""


class Arithmetic(NamedTuple):
    """What an operator computes in all: products that it sums, or other single operations, and functions of floats."""

    operations: int
    functions: int = 0


class LineWindow(NamedTuple):
    """
    How an operator reads the lines of an image, the axis behind the batch of its first operand: a line of the result
    needs `extent` of them, `stride` further on for each.
    """

    extent: int
    stride: int


@dataclass(frozen=True)
class ParallelAxes:
    """
    The leading axes of the results along which an operator computes each index by itself.

    `operands` has for each operand that depends on the index, by name, which of its axes each of them is, `None` for
    one that does not move it. Of an operand that broadcasts such an axis has size one. Other operands are read whole.
    """

    count: int = 0
    operands: Mapping[str, Sequence[int | None]] = field(default_factory=dict[str, "Sequence[int | None]"])

    @staticmethod
    def shared(count: int, *names: str) -> ParallelAxes:
        """The first `count` axes, which the operands of these names have as their first ones too."""
        return ParallelAxes(count, dict.fromkeys(names, range(count)))

    @staticmethod
    def broadcast(count: int, rank: int, **operands: SSAValue | None) -> ParallelAxes:
        """The first `count` of `rank` axes, to which the operands of these names broadcast that there are."""
        behind = {name: rank - rank_of(value) for name, value in operands.items() if value is not None}
        return ParallelAxes(
            count,
            {
                name: [axis - missing if axis >= missing else None for axis in range(count)]
                for name, missing in behind.items()
            },
        )


class Workload(ABC):
    """What an operator and the instruction that is derived from it say alike."""

    @abstractmethod
    def outputs(self) -> tuple[SSAValue, ...]:
        """The results of an operator; of an instruction, the operands that it writes for them."""

    def arithmetic(self) -> Arithmetic:
        """What it computes: by default an operation for each element of the results."""
        return Arithmetic(sum(map(size_of, self.outputs())))

    def extended(self) -> SSAValue | None:
        """The operand with which the result begins, where it is known at run time only how far it reaches."""
        return None

    def parallel_axes(self) -> ParallelAxes:
        """Along which leading axes it computes each index by itself: none that are known by default."""
        return ParallelAxes()

    def line_window(self) -> LineWindow | None:
        """How it reads lines of an image; `None` where it does not compute by lines."""
        return None


@dataclass(frozen=True)
class LinearForm:
    """An operator that multiplies the channels of `data`, its last axis, by `weights`, and adds `bias`."""

    data: SSAValue
    weights: SSAValue
    bias: SSAValue | None
    view: Shape
    """A shape of the weights in which outputs and inputs have axes of their own."""
    outputs: Shape
    """The shape of one element for each output that broadcasts to the view."""
    inputs: Shape
    """The shape of one element for each input that broadcasts to the view."""
    keeps_addends: bool
    """Whether an addend a channel of the data is one of the result: no padding, and one matrix for all batches."""
