"""What passes ask an operator about itself, in place of lists of operators in the passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import ClassVar, NamedTuple

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.glow_high.access import STAR, UNKNOWN, AccessMap, access_map, free_axes, result_sizes, starred
from glow_mlir.dialects.glow_high.independence import ParallelAxes
from glow_mlir.dialects.shapes import MAX_AXES, Shape, element_of, rank_of, require, size_of, sizes_of, tensor
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


class Workload(ABC):
    """What an operator and the instruction that is derived from it say alike."""

    NOTATION: ClassVar[str] = ""
    """
    Which dimension each axis of operands and results is, as `access` tells, such as `x[..., i, *j] -> y[..., i]`.

    An operator of which ranks or properties decide it has an `access_map` instead.
    """

    @abstractmethod
    def inputs(self) -> tuple[SSAValue, ...]:
        """The operands of an operator; of an instruction, those of them that it reads."""

    @abstractmethod
    def outputs(self) -> tuple[SSAValue, ...]:
        """The results of an operator; of an instruction, the operands that it writes for them."""

    @abstractmethod
    def input_names(self) -> Sequence[str]:
        """The names of `inputs`, as they are defined; a variadic one comes as often as it has values."""

    @abstractmethod
    def output_names(self) -> Sequence[str]:
        """The names of `outputs`."""

    def access_map(self) -> AccessMap:
        """Which dimension each axis of operands and results is."""
        return self.accessed(self.NOTATION)

    def whole_map(self) -> AccessMap:
        """The map of an operator of whose axes nothing is known."""
        own, given = (tuple((STAR,) * rank_of(value) for value in each) for each in (self.inputs(), self.outputs()))
        return AccessMap(own, given)

    def aligned(self, whole: Iterable[int] = (), tiled: int = MAX_AXES) -> AccessMap:
        """
        The map of an operator whose operands and results have the same axes, counted from the last one.

        Some axes of the results, counted from the front, are read and written as a whole; tiles are as in `AccessMap`.
        """
        operands, results = (list(map(rank_of, values)) for values in (self.inputs(), self.outputs()))
        axes = starred(free_axes(max(results or operands)), whole)
        # In front of its results, an operator has as many as are defined.
        results = results or [len(axes)] * len(self.output_names())
        own, given = (tuple(axes[len(axes) - rank :] for rank in ranks) for ranks in (operands, results))
        return AccessMap(own, given, tiled)

    def accessed(self, notation: str) -> AccessMap:
        """The map that a notation says; raises `VerifyException` where a rank does not fit."""
        operands = zip(self.input_names(), map(rank_of, self.inputs()), strict=True)
        names = self.output_names()
        ranks = map(rank_of, self.outputs()) if self.outputs() else [UNKNOWN] * len(names)
        try:
            return access_map(notation, tuple(operands), tuple(zip(names, ranks, strict=True)))
        except ValueError as error:
            raise VerifyException(str(error)) from error

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        """
        The result types, in order; raises `VerifyException` where operands or properties do not fit.

        By default they follow from the access map: results are as long as the operands that have their dimensions, and
        have the element type of all operands. It may read operands only through `glow_mlir.dialects.shapes`, since the
        derived instruction uses it on buffers.
        """
        values = self.inputs()
        element, *others = [element_of(value) for value in values]
        require(all(other == element for other in others), "operands have different element types")
        found = result_sizes(self.access_map(), [sizes_of(value) for value in values])
        return tuple(tensor(sizes, element) for sizes in found)

    def arithmetic(self) -> Arithmetic:
        """What it computes: by default an operation for each element of the results."""
        return Arithmetic(sum(map(size_of, self.outputs())))

    def extended(self) -> SSAValue | None:
        """The operand with which the result begins, where it is known at run time only how far it reaches."""
        return None

    def parallel_axes(self) -> ParallelAxes:
        """The leading axes of its results along which it may be computed tile by tile."""
        return self.access_map().parallel(self.input_names())

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
