"""
Operators that read or replace elements at indices that are operands.

Indices are `i32` or `i64`; negative ones count from the back. If an index is out of range, the operator fails, as ONNX
requires, and accesses no element out of range; a scatter may leave such updates out instead.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, result_def

from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.folds import COMBINING
from glow_mlir.dialects.generic_form import OUT_OF_RANGE
from glow_mlir.dialects.glow_high.access import AccessMap, free_axes, starred
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import DataMovement
from glow_mlir.dialects.glow_high.expressed import Expressed, axis_names
from glow_mlir.dialects.glow_high.ranges import Range
from glow_mlir.dialects.glow_high.samples import Samples, is_apart, resized
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.operand_types import INDICES, TENSOR
from glow_mlir.dialects.properties import int_prop, integer, text, text_prop
from glow_mlir.dialects.shapes import (
    Relation,
    SizesDifferError,
    element_of,
    is_empty,
    normalize_axis,
    rank_of,
    require,
    require_equal,
    shape_of,
    sizes_of,
    tensor,
)
from glow_mlir.dialects.sizes import largest, smallest, static
from glow_mlir.support.symbols import Sizes
from glow_mlir.xdsl_patches.definitions import op_definition

REDUCTIONS = ("none", *COMBINING)
"""How an update is combined with the element that it replaces; `none` overwrites it."""


def check_reduction(reduction: Attribute, element: Attribute) -> None:
    """Raise `VerifyException` for an unknown reduction, or one that does not apply to truth values."""
    word = text(reduction)
    require(word in REDUCTIONS, f"reduction must be one of {', '.join(REDUCTIONS)}, not '{word}'")
    require(word == "none" or not is_bool(element), f"reduction '{word}' takes numbers, not truth values")


class Reading(Expressed):
    """An operator whose result has elements of `input` at `indices`."""

    FAILURE: ClassVar[str] = OUT_OF_RANGE

    input = operand_def(TENSOR)
    indices = operand_def(INDICES)
    result = result_def(TENSOR)

    @abstractmethod
    def accesses(self) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
        """The axes of `input`, of `indices` and of the result, in index notation."""

    def notation(self) -> Signature:
        taken, indices, result = map(tuple, self.accesses())
        return Signature((Access("input", taken), Access("indices", indices)), Access("result", result))

    def expression(self, *operands: Tensor) -> Tensor:
        return operands[0]

    def result_range(self, operands: Sequence[Range]) -> Range:
        return operands[0]


def element_at(*axes: str) -> str:
    """The axis that is read at an element of `indices`."""
    return str(Access("indices", axes))


@op_definition
class GatherOp(DataMovement, Reading):
    """
    The slices of `input` along `axis` that `indices` select (ONNX Gather).

    `axis` of the input is replaced by all axes of `indices`. `failure` is the error for an index out of range.

    ```mlir
    %y = glow_high.gather %table, %tokens {axis = 0} : tensor<1x128x768xf32>
    ```
    """

    name = "glow_high.gather"
    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)

    axis = int_prop(0)
    failure = text_prop(OUT_OF_RANGE)

    def access_map(self) -> AccessMap:
        axes = free_axes(rank_of(self.input))
        axis = normalize_axis(integer(self.axis), len(axes))
        taken = tuple(f"i{number}" for number in range(rank_of(self.indices)))
        result = (*axes[:axis], *taken, *axes[axis + 1 :])
        return AccessMap((starred(axes, (axis,)), taken), (result,), axis + len(taken))

    def accesses(self) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
        names = axis_names(rank_of(self.input))
        axis = normalize_axis(integer(self.axis), len(names))
        taken = tuple(f"i{number}" for number in range(rank_of(self.indices)))
        before, behind = names[:axis], names[axis + 1 :]
        return (*before, element_at(*taken), *behind), taken, (*before, *taken, *behind)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape = sizes_of(self.input)
        require(len(shape) > 0, "gather needs an input with at least one axis")
        require(bool(text(self.failure)), "a failure is told in words")
        axis = normalize_axis(integer(self.axis), len(shape))
        require(shape[axis] != 0 or is_empty(self.indices), f"axis {axis} has no elements to take")
        return (tensor((*shape[:axis], *sizes_of(self.indices), *shape[axis + 1 :]), element_of(self.input)),)

    def result_samples(self, operands: Sequence[Samples]) -> Sequence[Samples]:
        source, indices = operands
        axis = normalize_axis(integer(self.axis), len(source.axes))
        some = is_apart(source.axes[axis])
        taken = [resized(source.axes[axis], size) for size in shape_of(self.indices)] if some else indices.axes
        axes = (*source.axes[:axis], *taken, *source.axes[axis + 1 :])
        return [Samples(axes, some or source.partial or indices.partial)]


@op_definition
class GatherElementsOp(Reading):
    """
    The elements of `input` at the positions of `indices`, but along `axis` at these indices (ONNX GatherElements).

    `indices` has as many axes as the input, and is no longer than it except along `axis`.

    ```mlir
    %y = glow_high.gather_elements %x, %indices {axis = 1} : tensor<4x2xf32>
    ```
    """

    name = "glow_high.gather_elements"
    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)
    TRANSPOSES_ALL: ClassVar[bool] = True

    axis = int_prop(0)

    def access_map(self) -> AccessMap:
        axes = free_axes(rank_of(self.input))
        axis = normalize_axis(integer(self.axis), len(axes))
        indices = (*axes[:axis], "...i", *axes[axis + 1 :])
        return AccessMap((starred(axes, (axis,)), indices), (indices,), axis)

    def accesses(self) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
        names = axis_names(rank_of(self.input))
        axis = normalize_axis(integer(self.axis), len(names))
        return (*names[:axis], element_at(*names), *names[axis + 1 :]), names, names

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        check_elements_shape(self.input, self.indices, integer(self.axis))
        return (tensor(sizes_of(self.indices), element_of(self.input)),)


def check_elements_shape(input_: SSAValue, indices: SSAValue, axis: int, relation: Relation = Relation.COVERS) -> None:
    """Raise `VerifyException` unless `indices` fits into `input_` along all axes but `axis`."""
    shape, taken = sizes_of(input_), sizes_of(indices)
    require(len(shape) == len(taken) > 0, f"input and indices must have as many axes, at least one: {shape}, {taken}")
    axis = normalize_axis(axis, len(shape))
    for position, (whole, part) in enumerate(zip(shape, taken, strict=True)):
        if position != axis and whole != part and largest(part) > smallest(whole):
            message = f"indices of shape {taken} exceed the input of shape {shape} outside axis {axis}"
            raise SizesDifferError(message, whole, part, relation, position - len(shape))
    require(shape[axis] != 0 or is_empty(indices), f"axis {axis} has no elements")


@op_definition
class GatherNDOp(Reading):
    """
    The slices of `input` that tuples of indices, the rows of `indices`, select (ONNX GatherND).

    The first `batch_dims` axes are shared by both operands; a row indexes the axes behind them.

    ```mlir
    %y = glow_high.gather_nd %x, %indices {batch_dims = 1} : tensor<2x3xf32>
    ```
    """

    name = "glow_high.gather_nd"

    batch_dims = int_prop(0)

    def access_map(self) -> AccessMap:
        batch, count, (depth,) = (
            integer(self.batch_dims),
            rank_of(self.indices) - 1,
            static(sizes_of(self.indices)[-1:]),
        )
        rows = tuple(f"i{number}" for number in range(count))
        rest = free_axes(rank_of(self.input) - batch - depth)
        return AccessMap(((*rows[:batch], *["*"] * depth, *rest), (*rows, "*")), ((*rows, *rest),), count)

    def accesses(self) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
        batch, (depth,) = integer(self.batch_dims), static(sizes_of(self.indices)[-1:])
        rows = tuple(f"i{number}" for number in range(rank_of(self.indices) - 1))
        rest = axis_names(rank_of(self.input) - batch - depth)
        taken = (element_at(*rows, str(number)) for number in range(depth))
        return (*rows[:batch], *taken, *rest), (*rows, "row"), (*rows, *rest)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, indices, batch = sizes_of(self.input), sizes_of(self.indices), integer(self.batch_dims)
        require(() not in (shape, indices), "gather_nd needs operands with at least one axis")
        require(0 <= batch < min(len(shape), len(indices)), f"batch_dims {batch} is out of range")
        require_equal(shape[:batch], indices[:batch], "the batch axes of input and indices differ")
        depth = check_rows(indices, shape[batch:])
        return (tensor((*indices[:-1], *shape[batch + depth :]), element_of(self.input)),)


def check_rows(indices: Sizes, shape: Sizes) -> int:
    """The number of axes of `shape` that a row of `indices` indexes; raises `VerifyException` if it has too few."""
    (depth,) = static(indices[-1:])
    require(0 < depth <= len(shape), f"rows of {depth} indices do not fit an input of {len(shape)} axes")
    require(0 in indices[:-1] or 0 not in shape[:depth], "an indexed axis has no elements")
    return depth


class Scatter(HighOp):
    """An operator that replaces elements of `input` at `indices` by `updates`."""

    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = (("result", "input"),)
    FAILURE: ClassVar[str] = OUT_OF_RANGE

    input = operand_def(TENSOR)
    indices = operand_def(INDICES)
    updates = operand_def(TENSOR)
    reduction = text_prop("none")
    failure = text_prop(OUT_OF_RANGE)
    """Why the operator fails if an index is out of range; empty if such an update is left out instead."""
    result = result_def(TENSOR)

    def check(self) -> None:
        """Raise `VerifyException` where element types or the reduction do not fit."""
        check_reduction(self.reduction, element_of(self.input))
        require(element_of(self.updates) == element_of(self.input), "updates have another element type than the input")


@op_definition
class ScatterElementsOp(Scatter):
    """
    The input with each update written at its own position, but along `axis` at its index (ONNX ScatterElements).

    `indices` and `updates` have the same shape. With a `reduction`, updates are combined with the element in their
    order; without one, the last of several updates of one element wins.

    ```mlir
    %y = glow_high.scatter_elements %x, %indices, %updates {axis = 1, reduction = "add"} : tensor<4x8xf32>
    ```
    """

    name = "glow_high.scatter_elements"
    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)
    TRANSPOSES_ALL: ClassVar[bool] = True

    axis = int_prop(0)

    def access_map(self) -> AccessMap:
        pairs = enumerate(zip(sizes_of(self.input), sizes_of(self.indices), strict=True))
        # Elements beyond the extent of the indices along an axis are unchanged.
        partly = [axis for axis, (whole, part) in pairs if whole != part]
        return self.aligned((normalize_axis(integer(self.axis), rank_of(self.input)), *partly))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        self.check()
        require_equal(sizes_of(self.indices), sizes_of(self.updates), "indices and updates must have one shape")
        check_elements_shape(self.input, self.indices, integer(self.axis), Relation.EQUAL)
        return (tensor(sizes_of(self.input), element_of(self.input)),)


@op_definition
class ScatterNDOp(Scatter):
    """
    The input with slices replaced at tuples of indices, the rows of `indices` (ONNX ScatterND).

    `updates` has the axes of `indices` except the last, then the axes of the input that a row does not index. With a
    `reduction`, updates are combined with the elements in their order; without one, the last update of an element wins.

    ```mlir
    %y = glow_high.scatter_nd %x, %indices, %updates : tensor<8x16xf32>
    ```
    """

    name = "glow_high.scatter_nd"

    def access_map(self) -> AccessMap:
        depth = static(sizes_of(self.indices)[-1:])[0]
        rest = free_axes(rank_of(self.input) - depth)
        axes, rows = (*["*"] * depth, *rest), ("*",) * rank_of(self.indices)
        return AccessMap((axes, rows, (*rows[1:], *rest)), (axes,))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        self.check()
        shape, indices, updates = sizes_of(self.input), sizes_of(self.indices), sizes_of(self.updates)
        require(() not in (shape, indices), "scatter_nd needs operands with at least one axis")
        expected = (*indices[:-1], *shape[check_rows(indices, shape) :])
        require_equal(updates, expected, f"updates must have shape {expected}, not {updates}")
        return (tensor(shape, element_of(self.input)),)


@op_definition
class ReverseSequenceOp(HighOp):
    """
    The first `lengths`[b] elements along `time_axis` in reverse order, for each b along `batch_axis` (ReverseSequence).

    A length out of range is clamped.

    ```mlir
    %y = glow_high.reverse_sequence %x, %lengths {batch_axis = 1, time_axis = 0} : tensor<4x4xf32>
    ```
    """

    name = "glow_high.reverse_sequence"
    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("batch_axis", "time_axis")

    input = operand_def(TENSOR)
    lengths = operand_def(INDICES)
    batch_axis = int_prop(1)
    time_axis = int_prop(0)
    result = result_def(TENSOR)

    def access_map(self) -> AccessMap:
        rank = rank_of(self.input)
        batch, time = (normalize_axis(integer(axis), rank) for axis in (self.batch_axis, self.time_axis))
        axes = starred(free_axes(rank), (time,))
        return AccessMap((axes, (axes[batch],)), (axes,))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, rank = sizes_of(self.input), rank_of(self.input)
        require(rank >= 2, f"reverse_sequence needs a batch and a time axis, got shape {shape}")
        batch, time = (normalize_axis(integer(axis), rank) for axis in (self.batch_axis, self.time_axis))
        require(batch != time, "batch_axis and time_axis are the same")
        require_equal(sizes_of(self.lengths), (shape[batch],), f"lengths must have shape ({shape[batch]},)")
        return (tensor(shape, element_of(self.input)),)
