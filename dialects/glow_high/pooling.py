"""Pooling over sliding windows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from xdsl.dialects.builtin import TensorType, i32, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def
from xdsl.pattern_rewriter import RewritePattern

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.element_types import is_float, storage_of
from glow_mlir.dialects.expressions import Tensor, converted, reduce_max, reduce_mean, reduce_sum, size_along, sqrt
from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.interfaces import OnQuantized
from glow_mlir.dialects.glow_high.ranges import ANY, POSITIVE, ZERO, Range
from glow_mlir.dialects.glow_high.reductions import real
from glow_mlir.dialects.glow_high.transposition import PerAxis, Untransposed, untransposed
from glow_mlir.dialects.glow_high.windowed import Windowed
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.operand_types import FLOATS, NUMBERS, SUMMANDS, TENSOR
from glow_mlir.dialects.properties import (
    flag,
    flag_prop,
    int_prop,
    integer,
    ints,
    ints_prop,
    optional_ints_prop,
    text_prop,
)
from glow_mlir.dialects.quant import is_per_axis, zero_point_of
from glow_mlir.dialects.shapes import Shape, element_of, require, sizes_of, tensor
from glow_mlir.dialects.windows import (
    CHANNELS_LAST,
    Window,
    is_channels_last,
    join_image,
    split_sizes,
)
from glow_mlir.support.symbols import Sizes
from glow_mlir.xdsl_patches.definitions import op_definition


class Images(Windowed):
    """An operator that computes one element of each window of each channel."""

    LIST_PROPERTIES: ClassVar[Mapping[str, PerAxis]] = {
        "kernel_shape": PerAxis.FACTOR,
        "strides": PerAxis.FACTOR,
        "pads": PerAxis.ENDS,
        "dilations": PerAxis.FACTOR,
    }

    input = operand_def(NUMBERS.from_rank(3))
    kernel_shape = ints_prop()
    strides = optional_ints_prop()
    pads = optional_ints_prop()
    dilations = optional_ints_prop()
    ceil_mode = flag_prop()
    layout = text_prop(CHANNELS_LAST)
    result = result_def(TENSOR)

    def window(self) -> Window:
        return Window.of(ints(self.kernel_shape), self.strides, self.pads, self.dilations, flag(self.ceil_mode))

    def padded(self, pads: Shape, fill: float, known: Range) -> Mapping[str, AttributeValue] | None:
        # With `ceil_mode`, the last window depends on what is padding.
        counts_alike = not flag(self.ceil_mode) and self.pads_with(fill, known, replace(self.window(), pads=pads))
        return {"pads": pads} if counts_alike else None

    def pads_with(self, fill: float, known: Range, window: Window) -> bool:
        """Whether the padding of a window counts as elements that are `fill`, among others that lie as `known`."""
        return fill == 0

    def access_map(self) -> AccessMap:
        axes = "n, *..., c" if is_channels_last(self.layout) else "n, c, *..."
        return self.accessed(f"input[{axes}] -> result[{axes}]")

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        batch, _, channels = split_sizes(self.input, self.layout)
        return (tensor(join_image(batch, self.windows(), channels, self.layout), element_of(self.input)),)

    def windows(self) -> Sizes:
        """How many windows there are along each spatial axis."""
        spatial, window = split_sizes(self.input, self.layout)[1], self.window()
        require(len(window.kernel) == len(spatial), f"kernel_shape must have {len(spatial)} elements")
        return window.outputs(spatial)

    def untransposed(self, permutation: Shape) -> Untransposed | None:
        """Only to channels last: the spatial axes may be permuted, and leading channels move to the end."""
        return untransposed(self, permutation, layout=CHANNELS_LAST)

    def scales_channels(self) -> bool:
        return is_channels_last(self.layout)


def meets_input(window: Window) -> bool:
    """Whether every window surely has an element of the input, not padding alone; a conservative check."""
    rank = len(window.kernel)
    short = all(max(window.padding(axis)) < window.kernel[axis] for axis in range(rank))
    return not any(window.pads) or (short and set(window.dilations) == {1} and not window.ceil_mode)


class Pool(Images, Expressed):
    """An operator that folds the elements of each window of each channel."""

    def border(self) -> Shape:
        """The zeros around the image that count as elements: leading ones of all spatial axes, then trailing ones."""
        return (0,) * (2 * len(self.window().kernel))

    def notation(self) -> Signature:
        window = self.window()
        rank, border = len(window.kernel), self.border()
        moved, taps = tuple(f"h{axis}" for axis in range(rank)), window_names(rank)
        read = tuple(
            f"{window.strides[axis]}*{moved[axis]} + {window.dilations[axis]}*{taps[axis]} - {window.pads[axis]}"
            for axis in range(rank)
        )
        is_last = is_channels_last(self.layout)
        before, after = ("n",) if is_last else ("n", "c"), ("c",) if is_last else ()
        borders = tuple(zip(border[:rank], border[rank:], strict=True)) if any(border) else ()
        if borders:
            borders = (*((0, 0) for _ in before), *borders, *((0, 0) for _ in after))
        extents = dict(zip((*moved, *taps), (*self.windows(), *window.kernel), strict=True))
        access = Access("input", (*before, *read, *after), borders)
        return Signature((access,), Access("result", (*before, *moved, *after)), extents)

    def expression(self, *operands: Tensor) -> Tensor:
        (x,) = operands
        return self.of_window(x, window_names(len(self.window().kernel)))

    @abstractmethod
    def of_window(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        """The result for the elements of a window, which lie along these dimensions."""


def window_names(rank: int) -> tuple[str, ...]:
    """The dimensions of windows over so many axes."""
    return tuple(f"k{axis}" for axis in range(rank))


@op_definition
class MaxPoolOp(Pool):
    """
    The largest element of each window; padding never counts (ONNX MaxPool, first result).

    ```mlir
    %y = glow_high.max_pool %x {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]} : tensor<1x56x56x64xf32>
    ```
    """

    name = "glow_high.max_pool"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.MOVEMENT

    def result_range(self, operands: Sequence[Range]) -> Range:
        return operands[0] if meets_input(self.window()) else ANY

    def chooses_elements(self) -> bool:
        return meets_input(self.window())

    def pads_with(self, fill: float, known: Range, window: Window) -> bool:
        return fill <= known.low and meets_input(window)

    def of_window(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        return reduce_max(x, along)


@op_definition
class MaxPoolWithIndicesOp(Images, HasCanonicalizationPatternsInterface):
    """
    The largest element of each window and, as i64, where it is (ONNX MaxPool with both results).

    `indices` counts the elements of the input in the order [N, C, spatial…], whatever its layout; with `column_major`
    the first spatial axis is the innermost one, and with `by_channel` each channel of each image counts from 0. Of
    equal elements the first one counts, and padding never does.
    """

    name = "glow_high.max_pool_with_indices"

    column_major = flag_prop()
    by_channel = flag_prop()
    result = result_def(TENSOR)
    indices = result_def(TENSOR)

    def padded(self, pads: Shape, fill: float, known: Range) -> Mapping[str, AttributeValue] | None:
        return None  # A border in the input counts in the indices.

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from glow_mlir.dialects.glow_high.canonicalization.pooling import PATTERNS

        return PATTERNS

    def access_map(self) -> AccessMap:
        axes = "n, *..., c" if is_channels_last(self.layout) else "n, c, *..."
        counted = axes.replace("...", "")
        if not flag(self.by_channel):
            counted = counted.replace("n", "*n").replace("c", "*c")  # Each index counts the elements of all images.
        return self.accessed(f"input[{axes}] -> result[; {axes}], indices[{counted}]")

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        (values,) = Images.infer_types(self)
        return (values, tensor(sizes_of(values), i64))

    def scales_channels(self) -> bool:
        return False


@op_definition
class AvgPoolOp(Pool):
    """
    The mean of each window (ONNX AveragePool); with `count_include_pad` padding counts as zeros.

    With `ceil_mode`, a window may reach beyond the padding; elements outside the padding never count.
    """

    name = "glow_high.avg_pool"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.ARITHMETIC

    input = operand_def(FLOATS.from_rank(3))
    count_include_pad = flag_prop()

    def padded(self, pads: Shape, fill: float, known: Range) -> Mapping[str, AttributeValue] | None:
        changes = super().padded(pads, fill, known)
        alike = flag(self.count_include_pad) or not any(self.window().pads)
        return {**changes, "count_include_pad": True} if changes is not None and alike else None

    def result_range(self, operands: Sequence[Range]) -> Range:
        return operands[0].join(ZERO).sign()

    def border(self) -> Shape:
        return self.window().pads if flag(self.count_include_pad) else Pool.border(self)

    def of_window(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        return reduce_mean(x, along)


@op_definition
class SumPoolOp(Pool):
    """
    The sum of each window of floats or integers; padding adds nothing. Sums of integers are in i32, and wrap. Those of
    8-bit or 16-bit quantized values are of the values less their zero point.

    ```mlir
    %s = glow_high.sum_pool %codes {kernel_shape = [25, 5]} : tensor<1x1x1x64xi32>
    ```
    """

    name = "glow_high.sum_pool"

    input = operand_def(SUMMANDS.from_rank(3))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        (summed,) = Images.infer_types(self)
        require(not is_per_axis(element_of(self.input)), f"sums of {element_of(self.input)} have no scale")
        element = element_of(self.input)
        return (tensor(sizes_of(summed), element if is_float(element) else i32),)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return ANY

    def read_elements(self) -> Sequence[Attribute]:
        return [storage_of(element_of(self.input))]

    def of_window(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        if is_float(x.element):
            return reduce_sum(x, along)
        wide, zero_point = converted(x, i32), zero_point_of(element_of(self.input))
        total = reduce_sum(wide, along)
        return total - size_along(wide, along, zero_point) if zero_point else total


@op_definition
class LpPoolOp(Pool):
    """The `p`-norm of each window (ONNX LpPool); padding counts as zeros."""

    name = "glow_high.lp_pool"

    p = int_prop(2)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return POSITIVE if is_float(element_of(self.results[0])) else ANY

    def of_window(self, x: Tensor, along: tuple[str, ...]) -> Tensor:
        power = size = abs(real(x))
        for bit in bin(p := integer(self.p))[3:]:
            power = power * power * size if bit == "1" else power * power
        total = reduce_sum(power, along)
        norm = total if p == 1 else sqrt(total) if p == 2 else total ** (1.0 / p)
        return converted(norm, x.element)
