"""What kernels ask of a convolution: read once from its operator or its instruction."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property

from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.kernels.convolution import ConvShape
from glow_mlir.codegen.kernels.dot_products import DotProduct, dot_product, multiplies
from glow_mlir.codegen.kernels.tile_products import TileProduct, tile_instruction, tile_product
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
    A convolution `[N, spatial…, C] → [N, spatial…, O]` in `group` groups, with its operands, the shape [O, kernel…, I]
    of its filter, packed or not, and the lines of whole images where it computes some of them.
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
        """The form of a convolution with channels last."""
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
        """The form of a convolution, channels last, whose input holds its own border; `None` for any other."""
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
        """How many filters there are, in all groups."""
        return self.plain[0]

    @property
    def depth(self) -> int:
        """Elements of a filter."""
        return math.prod(self.plain[1:])

    @property
    def has_dense_pixels(self) -> bool:
        """Whether the channels of a pixel of the input follow each other."""
        return has_unit_stride(self.input)

    @cached_property
    def by_channel(self) -> bool:
        """
        Whether the pixels of a line of the input follow each other, the channels do not, and are read by extra operand.
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
        """By how many pixels the filter moves along all axes; `None` where they differ."""
        strides = set(self.window.strides or (1,))
        return strides.pop() if len(strides) == 1 else None

    def is_square_in_one_group(self, taps: int) -> bool:
        """
        Whether it is in one group with accumulators in f32, with filters of `taps` x `taps` and dense pixels, of images
        whose sizes are numbers.
        """
        known = are_numbers(sizes_of(self.result)[1:])
        accumulators = self.element == f32 or is_half(self.element)
        return (
            self.group == 1 and self.has_dense_pixels and known and accumulators and self.window.kernel == (taps, taps)
        )

    @property
    def outputs(self) -> Shape:
        """The spatial sizes of the result, the largest that they may be."""
        return largest_shape(self.result)[1:-1]

    @cached_property
    def shape(self) -> ConvShape:
        """The sizes, of as many and as large images as there may be, with the pitches of its buffers."""
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
        """The sizes in a call."""
        batch, *outputs, _ = call.result.extents
        return dataclasses.replace(self.shape, batch=batch, outputs=tuple(outputs))

    @cached_property
    def run(self) -> int:
        """How many elements of the input that are multiplied follow each other."""
        _, run = self.shape.segments()
        assert isinstance(run, int)
        return run

    def dot(self, target: Target) -> DotProduct:
        """How a machine computes the products."""
        return dot_product(self.input, self.filter, target)

    def tile_product(self, target: Target) -> TileProduct | None:
        """How tile registers compute the products; `None` where they do not."""
        dot = self.dot(target)
        if tile_instruction(dot, target) is None or self.has_prologue or self.by_channel:
            return None
        return tile_product(dot, self.run, target)
