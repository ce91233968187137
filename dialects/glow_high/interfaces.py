"""Interfaces by which passes query operators, so that passes need no lists of operators."""

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


class OnQuantized(Enum):
    """How an operator computes on quantized values: the relation between the scales of operands and results."""

    PRODUCT = "product"
    """
    Products of the first two operands are accumulated in integers; a constant second one may have scales by channel.
    """
    MOVEMENT = "movement"
    """Elements of the result are elements of operands: all share a scale and a zero point."""
    ARITHMETIC = "arithmetic"
    """Each operand and result has its own quantization parameters."""


class Arithmetic(NamedTuple):
    """The total work of an operator: multiply-accumulates or other single operations, and functions of floats."""

    operations: int
    functions: int = 0


class LineWindow(NamedTuple):
    """
    How an operator reads the lines of an image, which lie along the axis after the batch of its first operand: each
    line of the result needs `extent` lines, beginning `stride` lines after those of the previous one.
    """

    extent: int
    stride: int


class Workload(ABC):
    """The interface that an operator shares with the instruction derived from it."""

    NOTATION: ClassVar[str] = ""
    """
    The dimension of each axis of operands and results, such as `x[..., i, *j] -> y[..., i]` (see `access`).

    An operator whose dimensions depend on ranks or properties overrides `access_map` instead.
    """

    @abstractmethod
    def inputs(self) -> tuple[SSAValue, ...]:
        """The operands of an operator; for an instruction, the operands that it reads."""

    @abstractmethod
    def outputs(self) -> tuple[SSAValue, ...]:
        """The results of an operator; for an instruction, the operands that it writes them to."""

    @abstractmethod
    def input_names(self) -> Sequence[str]:
        """The names of `inputs`, in order of definition; a variadic one is repeated for each of its values."""

    @abstractmethod
    def output_names(self) -> Sequence[str]:
        """The names of `outputs`."""

    def access_map(self) -> AccessMap:
        """The dimension of each axis of operands and results."""
        return self.accessed(self.NOTATION)

    def whole_map(self) -> AccessMap:
        """The map of an operator whose axes are unknown: all are read and written as a whole."""
        own, given = (tuple((STAR,) * rank_of(value) for value in each) for each in (self.inputs(), self.outputs()))
        return AccessMap(own, given)

    def aligned(self, whole: Iterable[int] = (), tiled: int = MAX_AXES) -> AccessMap:
        """
        The map of an operator whose operands and results have the same axes, counted from the last one.

        Some axes of the results, counted from the front, are read and written as a whole; tiles are as in `AccessMap`.
        """
        operands, results = (list(map(rank_of, values)) for values in (self.inputs(), self.outputs()))
        axes = starred(free_axes(max(results or operands)), whole)
        # Before its results exist, an operator has as many as are defined.
        results = results or [len(axes)] * len(self.output_names())
        own, given = (tuple(axes[len(axes) - rank :] for rank in ranks) for ranks in (operands, results))
        return AccessMap(own, given, tiled)

    def accessed(self, notation: str) -> AccessMap:
        """The map of a notation; raises `VerifyException` where a rank does not fit."""
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

        By default they follow from the access map: axes of results have the sizes of the operands' axes of the same
        dimension, and the element type is that of all operands. Overrides may access operands only through
        `glow_mlir.dialects.shapes`, since the derived instruction calls them on buffers.
        """
        values = self.inputs()
        element, *others = [element_of(value) for value in values]
        require(all(other == element for other in others), "operands have different element types")
        found = result_sizes(self.access_map(), [sizes_of(value) for value in values])
        return tuple(tensor(sizes, element) for sizes in found)

    def arithmetic(self) -> Arithmetic:
        """The total work: by default one operation for each element of the results."""
        return Arithmetic(sum(map(size_of, self.outputs())))

    def extended(self) -> SSAValue | None:
        """The operand that is the beginning of the result, if its extent is known at run time only."""
        return None

    def parallel_axes(self) -> ParallelAxes:
        """The leading axes of its results along which it may be tiled."""
        return self.access_map().parallel(self.input_names())

    def line_window(self) -> LineWindow | None:
        """How it reads lines of an image; `None` if it does not compute by lines."""
        return None


@dataclass(frozen=True)
class LinearForm:
    """An operator that multiplies the channels of `data`, its last axis, by `weights`, and adds `bias`."""

    data: SSAValue
    weights: SSAValue
    bias: SSAValue | None
    view: Shape
    """A view of the weights in which outputs and inputs are separate axes."""
    outputs: Shape
    """The shape of one element for each output that broadcasts to the view."""
    inputs: Shape
    """The shape of one element for each input that broadcasts to the view."""
    keeps_addends: bool
    """
    Whether adding one number for each channel of the data adds one for each output: no padding, one matrix for all
    batches.
    """
