"""Reductions along axes: sums, extremes, norms, positions of extremes, running sums, the k largest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import inf
from typing import ClassVar

from xdsl.dialects.builtin import TensorType, f64, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, result_def
from xdsl.pattern_rewriter import RewritePattern

from glow_mlir.dialects.element_types import is_bool, is_float
from glow_mlir.dialects.expressions import (
    Tensor,
    converted,
    equal,
    exp,
    fold,
    log,
    maximum,
    position,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
    running,
    size_along,
    sqrt,
    where,
)
from glow_mlir.dialects.folds import KINDS
from glow_mlir.dialects.glow_high.access import AccessMap, free_axes, is_starred, starred
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.expressed import Expressed, axis_names
from glow_mlir.dialects.glow_high.interfaces import OnQuantized
from glow_mlir.dialects.glow_high.ranges import ANY, POSITIVE, Range, joined
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.operand_types import NUMBERS, SCALARS, TENSOR
from glow_mlir.dialects.properties import flag, flag_prop, int_prop, integer, ints, ints_prop
from glow_mlir.dialects.shapes import (
    element_of,
    may_be_empty,
    normalize_axis,
    rank_of,
    require,
    size_of,
    sizes_of,
    tensor,
)
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.support.symbols import Sizes
from glow_mlir.xdsl_patches.definitions import op_definition


def reduced_shape(shape: Sizes, axes: tuple[int, ...], keepdims: bool) -> Sizes:
    """`shape` without `axes` (counted from the front), or with size 1 there."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def reduced_map(value: SSAValue, reduced: Sequence[int], keepdims: bool) -> AccessMap:
    """The access map of a reduction of an operand along some axes."""
    axes = starred(free_axes(rank_of(value)), reduced)
    result = axes if keepdims else tuple(name for name in axes if not is_starred(name))
    return AccessMap((axes,), (result,), min(reduced, default=len(axes)))


def real(x: Tensor) -> Tensor:
    """A value in a type that has roots and logarithms: f64 for integers."""
    return x if is_float(x.element) else converted(x, f64)


def folded_notation(operand: SSAValue, along: tuple[str, ...], keepdims: bool) -> Signature:
    """All axes of the operand to those of the result; folded ones are `1` or, without `keepdims`, left out."""
    names = axis_names(rank_of(operand))
    kept = ("1" if name in along else name for name in names if keepdims or name not in along)
    return Signature((Access("input", names),), Access("result", tuple(kept)))


class Reduction(Expressed, HasCanonicalizationPatternsInterface):
    """
    An operator that computes one element from all elements along `axes`.

    `axes` are listed explicitly: without any, each element is reduced by itself. The result keeps them with size 1
    unless `keepdims` is false.
    """

    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axes",)
    KEEPS_SINGLE: ClassVar[bool] = False
    """Whether the result for a single element is that element."""

    input = operand_def(NUMBERS)
    axes = ints_prop()
    keepdims = flag_prop(True)
    result = result_def(TENSOR)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from glow_mlir.dialects.glow_high.canonicalization.reductions import PATTERNS

        return PATTERNS

    def reduced_axes(self) -> tuple[int, ...]:
        """The axes, counted from the front, in ascending order; raises where they repeat or do not exist."""
        rank = rank_of(self.input)
        axes = tuple(sorted(normalize_axis(axis, rank) for axis in ints(self.axes))) if rank else ()
        require(len(set(axes)) == len(axes), f"axes {ints(self.axes)} name an axis twice")
        return axes

    def access_map(self) -> AccessMap:
        return reduced_map(self.input, self.reduced_axes(), flag(self.keepdims))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape = reduced_shape(sizes_of(self.input), self.reduced_axes(), flag(self.keepdims))
        return (tensor(shape, element_of(self.input)),)

    def notation(self) -> Signature:
        return folded_notation(self.input, self.folded(), flag(self.keepdims))

    def folded(self) -> tuple[str, ...]:
        """The dimensions that are folded."""
        names = axis_names(rank_of(self.input))
        return tuple(names[axis] for axis in self.reduced_axes())

    def expression(self, *operands: Tensor) -> Tensor:
        (x,) = operands
        return converted(self.of_elements(x, self.folded()), x.element)

    @abstractmethod
    def of_elements(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        """The result for all elements along these dimensions."""


@op_definition
class ReduceSumOp(Reduction):
    """
    The sum (ONNX ReduceSum); wraps for integers, and is 0 over nothing.

    ```mlir
    %s = glow_high.reduce_sum %x {axes = [1, 2], keepdims = false} : tensor<1x64xf32>
    ```
    """

    name = "glow_high.reduce_sum"
    KEEPS_SINGLE: ClassVar[bool] = True

    def result_range(self, operands: Sequence[Range]) -> Range:
        return joined(operands).sign() if is_float(element_of(self.result)) else ANY

    def of_elements(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        return reduce_sum(x, along)


@op_definition
class ReduceMeanOp(Reduction):
    """The mean (ONNX ReduceMean, GlobalAveragePool); for integers, their wrapped sum over the count, truncated."""

    name = "glow_high.reduce_mean"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.ARITHMETIC

    def result_range(self, operands: Sequence[Range]) -> Range:
        return joined(operands).sign() if is_float(element_of(self.result)) else ANY

    def of_elements(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        if is_float(x.element):
            return reduce_sum(x, along) / size_along(x, along)
        return converted(reduce_sum(x, along), i64) / maximum(size_along(converted(x, i64), along), 1)


@op_definition
class ReduceProdOp(Reduction):
    """The product (ONNX ReduceProd); wraps for integers, and is 1 over nothing."""

    name = "glow_high.reduce_prod"
    KEEPS_SINGLE: ClassVar[bool] = True

    def of_elements(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        return reduce_prod(x, along)


@op_definition
class ReduceMaxOp(Reduction):
    """The largest element (ONNX ReduceMax, GlobalMaxPool); NaN if any is, the type's smallest value over nothing."""

    name = "glow_high.reduce_max"
    KEEPS_SINGLE: ClassVar[bool] = True

    input = operand_def(SCALARS)

    def chooses_elements(self) -> bool:
        return not may_be_empty(self.input)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return operands[0] if size_of(self.input) else ANY

    def of_elements(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        return fold("or", x, along) if is_bool(x.element) else reduce_max(x, along)


@op_definition
class ReduceMinOp(Reduction):
    """The smallest element (ONNX ReduceMin); NaN if any is, the type's largest value over nothing."""

    name = "glow_high.reduce_min"
    KEEPS_SINGLE: ClassVar[bool] = True

    input = operand_def(SCALARS)

    def chooses_elements(self) -> bool:
        return not may_be_empty(self.input)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return operands[0] if size_of(self.input) else ANY

    def of_elements(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        return fold("and", x, along) if is_bool(x.element) else reduce_min(x, along)


@op_definition
class ReduceL1Op(Reduction):
    """The sum of absolute values (ONNX ReduceL1)."""

    name = "glow_high.reduce_l1"

    def of_elements(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        return reduce_sum(abs(x), along)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return POSITIVE if is_float(element_of(self.results[0])) else ANY


@op_definition
class ReduceL2Op(Reduction):
    """The root of the sum of squares (ONNX ReduceL2); computed in f64 and truncated for integers."""

    name = "glow_high.reduce_l2"

    def result_range(self, operands: Sequence[Range]) -> Range:
        return POSITIVE if is_float(element_of(self.results[0])) else ANY

    def of_elements(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        return sqrt(reduce_sum(real(x) * real(x), along))


@op_definition
class ReduceSumSquareOp(Reduction):
    """The sum of squares (ONNX ReduceSumSquare)."""

    name = "glow_high.reduce_sum_square"

    def result_range(self, operands: Sequence[Range]) -> Range:
        return POSITIVE if is_float(element_of(self.results[0])) else ANY

    def of_elements(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        return reduce_sum(x * x, along)


@op_definition
class ReduceLogSumOp(Reduction):
    """The logarithm of the sum (ONNX ReduceLogSum); computed in f64 and truncated for integers."""

    name = "glow_high.reduce_log_sum"

    def of_elements(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        return log(reduce_sum(real(x), along))


@op_definition
class ReduceLogSumExpOp(Reduction):
    """The logarithm of the sum of exponentials (ONNX ReduceLogSumExp), without overflow; in f64 for integers."""

    name = "glow_high.reduce_log_sum_exp"

    def of_elements(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        real_x = real(x)
        peak = reduce_max(real_x, along)
        shift = where(equal(abs(peak), inf), 0.0, peak)
        return log(reduce_sum(exp(real_x - shift), along)) + shift


class _Position(Expressed):
    """The index of an extreme along `axis`, as i64; 0 if a size that is known at run time only is 0."""

    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)
    IS_LARGEST: ClassVar[bool]
    """Whether the extreme is the largest element."""

    input = operand_def(NUMBERS)
    axis = int_prop()
    keepdims = flag_prop(True)
    select_last_index = flag_prop()
    result = result_def(TENSOR)

    def access_map(self) -> AccessMap:
        rank = rank_of(self.input)
        return reduced_map(self.input, (normalize_axis(integer(self.axis), rank),) if rank else (), flag(self.keepdims))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape = sizes_of(self.input)
        axis = normalize_axis(integer(self.axis), len(shape))
        require(bool(shape) and largest(shape[axis]) > 0, f"there is nothing along axis {axis} of shape {shape}")
        return (tensor(reduced_shape(shape, (axis,), flag(self.keepdims)), i64),)

    def folded(self) -> tuple[str, ...]:
        """The dimension along which the extreme is looked for."""
        names = axis_names(rank_of(self.input))
        return (names[normalize_axis(integer(self.axis), len(names))],)

    def notation(self) -> Signature:
        return folded_notation(self.input, self.folded(), flag(self.keepdims))

    def expression(self, *operands: Tensor) -> Tensor:
        (x,) = operands
        (axis,) = self.folded()
        return converted(position(x, axis, self.IS_LARGEST, flag(self.select_last_index)), i64)


@op_definition
class ArgMaxOp(_Position):
    """
    The position of the largest element along `axis` (ONNX ArgMax), the first of several or the last; NaN is largest.

    ```mlir
    %i = glow_high.arg_max %x {axis = 1, keepdims = false} : tensor<8xi64>
    ```
    """

    name = "glow_high.arg_max"
    IS_LARGEST: ClassVar[bool] = True


@op_definition
class ArgMinOp(_Position):
    """The position of the smallest element along `axis` (ONNX ArgMin), the first of several or the last; NaN wins."""

    name = "glow_high.arg_min"
    IS_LARGEST: ClassVar[bool] = False


class _Running(Expressed):
    """Running totals along `axis`: without the element itself if `exclusive`, from the end if `reverse`."""

    FOLD: ClassVar[str]
    """The fold of the running totals."""

    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)

    input = operand_def(NUMBERS)
    axis = int_prop()
    exclusive = flag_prop()
    reverse = flag_prop()
    result = result_def(TENSOR)

    def access_map(self) -> AccessMap:
        rank = rank_of(self.input)
        return self.aligned((normalize_axis(integer(self.axis), rank),) if rank else ())

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        normalize_axis(integer(self.axis), rank_of(self.input))
        return (tensor(sizes_of(self.input), element_of(self.input)),)

    def notation(self) -> Signature:
        names = axis_names(rank_of(self.input))
        return Signature((Access("input", names),), Access("result", names))

    def expression(self, *operands: Tensor) -> Tensor:
        (x,) = operands
        x = x.parts[0] if x.word == "convert" else x  # Half floats are carried in f64, and rounded once, as all are.
        names, exclusive = axis_names(rank_of(self.input)), flag(self.exclusive)
        if not names:
            return converted(equal(x, x), x.element) * 0 + KINDS[self.FOLD].neutral if exclusive else x
        axis = names[normalize_axis(integer(self.axis), len(names))]
        return running(self.FOLD, x, axis, exclusive, flag(self.reverse))


@op_definition
class CumSumOp(_Running):
    """
    The sum of all elements up to each one along `axis` (ONNX CumSum); wraps for integers.

    ```mlir
    %y = glow_high.cum_sum %x {axis = 0, exclusive = true} : tensor<5xf32>
    ```
    """

    name = "glow_high.cum_sum"
    FOLD: ClassVar[str] = "add"


@op_definition
class CumProdOp(_Running):
    """The product of all elements up to each one along `axis` (ONNX CumProd); wraps for integers."""

    name = "glow_high.cum_prod"
    FOLD: ClassVar[str] = "mul"


@op_definition
class TopKOp(HighOp):
    """
    The `k` largest (or smallest) elements along `axis` and their positions (ONNX TopK).

    They come in order, equal ones by position; NaN counts as larger than every number. Unless `sorted`, a backend may
    give them in any order.

    ```mlir
    %values, %indices = glow_high.top_k %x {k = 5, axis = 1} : tensor<1x5xf32>, tensor<1x5xi64>
    ```
    """

    name = "glow_high.top_k"
    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)

    input = operand_def(NUMBERS)
    k = int_prop()
    axis = int_prop(-1)
    largest = flag_prop(True)
    sorted = flag_prop(True)
    values = result_def(TENSOR)
    indices = result_def(TENSOR)

    def access_map(self) -> AccessMap:
        rank = rank_of(self.input)
        return self.aligned((normalize_axis(integer(self.axis), rank),) if rank else ())

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, element = sizes_of(self.input), element_of(self.input)
        axis, k = normalize_axis(integer(self.axis), len(shape)), integer(self.k)
        require(
            bool(shape) and 0 <= k <= smallest(shape[axis]),
            f"cannot take {k} elements along axis {axis} of shape {shape}",
        )
        taken = (*shape[:axis], k, *shape[axis + 1 :])
        return tensor(taken, element), tensor(taken, i64)
