"""The form of a convolution for kernels, read once from its operator or instruction."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property

from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.kernels.products.convolution import ConvShape
from glow_mlir.codegen.kernels.products.dot_products import DotProduct, dot_product, multiplies
from glow_mlir.codegen.kernels.products.tile_products import TileProduct, tile_instruction, tile_product
from glow_mlir.codegen.math.half import is_half
from glow_mlir.codegen.selection.kernel import KernelCall
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import has_unit_stride, is_dense, strides_of
from glow_mlir.dialects.properties import integer, ints, text
from glow_mlir.dialects.shapes import Shape, element_of, is_empty, largest_shape, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.dialects.target import Target
from glow_mlir.dialects.windows import CHANNELS_LAST, Window
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import are_numbers


@dataclass(frozen=True)
class ConvolutionForm:
    """
    A convolution `[N, spatial…, C] → [N, spatial…, O]` in `group` groups.

    `plain` is the shape `[O, kernel…, I]` of the filter before packing. `image_lines` is the number of lines of whole
    images, if the convolution computes only some of them.
    """

    input: SSAValue
    filter: SSAValue
    result: SSAValue
    plain: Shape
    group: int
    window: Window
    image_lines: int | None
    has_prologue: bool

    @staticmethod
    def of(op: ConvOp) -> ConvolutionForm:
        """Return the form of a convolution with channels last."""
        plain, image_lines = op.plain_shape("filter"), op.properties.get("image_lines")
        return ConvolutionForm(
            op.input,
            op.filter,
            op.result,
            plain,
            integer(op.group),
            Window.of(plain[1:-1], op.strides, None, op.dilations),
            None if image_lines is None else integer(image_lines),
            isinstance(op, DerivedInstruction) and op.prologue is not None,
        )

    @staticmethod
    def read_by_kernels(op: ConvOp) -> ConvolutionForm | None:
        """Return the form of a convolution with channels last whose input includes its border; `None` for any other."""
        fits = (
            text(op.layout) == CHANNELS_LAST
            and all(isinstance(sizes_of(value)[-1], int) for value in (op.input, op.result))
            and all(is_dense(value) for value in (op.filter, op.bias) if value is not None)
            and has_unit_stride(op.result)
            and not any(ints(op.pads))
            and multiplies(op, op.input, op.filter)
            and not is_empty(op.filter)
        )
        return ConvolutionForm.of(op) if fits else None

    @property
    def element(self) -> Attribute:
        """The element type of the input."""
        return element_of(self.input)

    @property
    def filters(self) -> int:
        """The number of filters of all groups."""
        return self.plain[0]

    @property
    def depth(self) -> int:
        """The number of elements of a filter."""
        return math.prod(self.plain[1:])

    @property
    def has_dense_pixels(self) -> bool:
        """Whether the channels of an input pixel are contiguous."""
        return has_unit_stride(self.input)

    @cached_property
    def by_channel(self) -> bool:
        """
        Whether the pixels of an input line are contiguous, but the channels are not, so that each channel is a plane.
        """
        if self.has_dense_pixels:
            return False
        return strides_of(self.input)[-2] == 1 and max(self.window.dilations[-1:], default=1) == 1

    @property
    def is_pointwise(self) -> bool:
        """Whether every output reads one pixel, in one group."""
        return math.prod(self.window.kernel) == 1 and self.group == 1

    @property
    def stride(self) -> int | None:
        """The stride of the filter in pixels along all axes; `None` where strides differ."""
        strides = set(self.window.strides or (1,))
        return strides.pop() if len(strides) == 1 else None

    def is_square_in_one_group(self, taps: int) -> bool:
        """
        Whether it has one group, f32 accumulators, filters of `taps` x `taps`, dense pixels and images of known sizes.
        """
        known = are_numbers(sizes_of(self.result)[1:])
        accumulators = self.element == f32 or is_half(self.element)
        return (
            self.group == 1 and self.has_dense_pixels and known and accumulators and self.window.kernel == (taps, taps)
        )

    @property
    def outputs(self) -> Shape:
        """The largest spatial sizes that the result may have."""
        return largest_shape(self.result)[1:-1]

    @cached_property
    def shape(self) -> ConvShape:
        """The sizes for the largest possible images and batch, with the pitches of the buffers."""
        into, out_of = strides_of(self.result), strides_of(self.input)
        return ConvShape(
            outputs=self.outputs,
            kernel=self.window.kernel,
            channels=self.plain[-1],
            filters=self.filters // self.group,
            input_pitches=out_of[1:-1],
            output_pitches=into[1:-1],
            strides=self.window.strides,
            dilations=self.window.dilations,
            groups=self.group,
            batch=largest(sizes_of(self.input)[0]),
            input_image=out_of[0],
            output_image=into[0],
            channel_pitch=1 if self.has_dense_pixels else out_of[-1],
            image_lines=self.image_lines,
        )

    def shape_at(self, call: KernelCall[ConvOp]) -> ConvShape:
        """Return the sizes in a call."""
        batch, *outputs, _ = call.result.extents
        return dataclasses.replace(self.shape, batch=batch, outputs=tuple(outputs))

    @cached_property
    def run(self) -> int:
        """The length of a contiguous run of input elements that are multiplied."""
        _, run = self.shape.segments()
        assert isinstance(run, int)
        return run

    def dot(self, target: Target) -> DotProduct:
        """Return how a target computes the products."""
        return dot_product(self.input, self.filter, target)

    def tile_product(self, target: Target) -> TileProduct | None:
        """Return how tile registers compute the products; `None` where they do not."""
        dot = self.dot(target)
        if tile_instruction(dot, target) is None or self.has_prologue or self.by_channel:
            return None
        return tile_product(dot, self.run, target)
