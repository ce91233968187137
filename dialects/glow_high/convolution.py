"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.interfaces import Arithmetic, LinearForm, LineWindow, OnQuantized
from glow_mlir.dialects.glow_high.ranges import Range
from glow_mlir.dialects.glow_high.windowed import Windowed
from glow_mlir.dialects.operand_types import FACTORS, NUMBERS, TENSOR
from glow_mlir.dialects.product_types import ProductSignature
from glow_mlir.dialects.properties import (
    int_prop,
    integer,
    ints,
    ints_prop,
    optional_ints_prop,
    optional_type_prop,
    text_prop,
)
from glow_mlir.dialects.shapes import (
    Shape,
    element_of,
    rank_of,
    require,
    shape_of,
    size_along,
    size_of,
    sizes_of,
    tensor,
)
from glow_mlir.dialects.sizes import smallest
from glow_mlir.dialects.windows import (
    CHANNELS_LAST,
    Window,
    channel_axis,
    is_channels_last,
    join_image,
    split_image,
    split_sizes,
)
from glow_mlir.support.symbols import Sizes, quotient
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class ConvOp(Windowed):
    """
    Convolution over any number of spatial axes (ONNX Conv).

    `input` is [N, spatial…, C] and `filter` [O, kernel…, C / group] in the layout `channels_last`, or
    [N, C, spatial…] and [O, C / group, kernel…] in `channels_first`; `bias` is [O]. Channels are split into `group`
    groups that do not mix. `pads` holds all leading paddings, then all trailing ones. Element types are those of a
    `ProductSignature`: with `to`, the result has the accumulator type.

    ```mlir
    %y = glow_high.conv %x, %filter, %bias {strides = [2, 2], pads = [3, 3, 3, 3]} : tensor<1x112x112x64xf32>
    ```
    """

    name = "glow_high.conv"
    COMBINES_ROWS: ClassVar[bool] = True
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.PRODUCT

    input = operand_def(FACTORS.from_rank(3))
    filter = operand_def(FACTORS.from_rank(3))
    bias = opt_operand_def(NUMBERS.of_rank(1))
    strides = optional_ints_prop()
    pads = optional_ints_prop()
    dilations = optional_ints_prop()
    group = int_prop(1)
    layout = text_prop(CHANNELS_LAST)
    to = optional_type_prop()
    result = result_def(TENSOR)

    def window(self) -> Window:
        _, kernel, _ = split_image(shape_of(self.filter), self.layout)
        return Window.of(kernel, self.strides, self.pads, self.dilations)

    def padded(self, pads: Shape, fill: float, known: Range) -> Mapping[str, AttributeValue] | None:
        return {"pads": pads} if fill == 0 else None

    def access_map(self) -> AccessMap:
        output = "o" if integer(self.group) == 1 else "*o"
        axes = f"*, {output}" if is_channels_last(self.layout) else f"{output}, *"
        return self.accessed(f"input[n, *], filter[{output}, *], bias[{output}] -> result[n; {axes}]")

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        batch, spatial, _ = split_sizes(self.input, self.layout)
        channels = size_along(self.input, channel_axis(rank_of(self.input), self.layout))
        outputs, kernel, depth = split_image(self.filter, self.layout)
        group = integer(self.group)
        require(len(kernel) == len(spatial), f"the filter has {len(kernel)} spatial axes, the input {len(spatial)}")
        require(group > 0 and channels % group == 0 and outputs % group == 0, f"{group} groups do not divide channels")
        require(depth * group == channels, f"the filter reads {depth} channels a group, the input has {channels}")
        if self.bias is not None:
            require(shape_of(self.bias) == (outputs,), f"bias must have shape ({outputs},), not {shape_of(self.bias)}")
        shape = join_image(batch, self.window().outputs(spatial), outputs, self.layout)
        return (tensor(shape, ProductSignature.of(self.input, self.filter, self.bias, self.to).output),)

    def arithmetic(self) -> Arithmetic:
        return Arithmetic(size_of(self.result) * math.prod(self.plain_shape("filter")[1:]))

    def line_window(self) -> LineWindow | None:
        if not is_channels_last(self.layout):
            return None
        window = Window.of(self.plain_shape("filter")[1:-1], self.strides, self.pads, self.dilations)
        if len(window.kernel) != 2 or any(window.pads):
            return None
        return LineWindow(window.extent(0), window.strides[0])

    def linear_form(self) -> LinearForm | None:
        if self.to is not None or not is_channels_last(self.layout):
            return None
        outputs, *kernel, depth = shape_of(self.filter)
        group, ones = integer(self.group), (1,) * len(kernel)
        return LinearForm(
            self.input,
            self.filter,
            self.bias,
            view=(group, outputs // group, *kernel, depth),
            outputs=(group, outputs // group, *ones, 1),
            inputs=(group, 1, *ones, depth),
            keeps_addends=not any(self.window().pads),
        )


@op_definition
class ConvTransposeOp(HighOp):
    """
    Transposed convolution, the gradient of `conv` with regard to its input (ONNX ConvTranspose).

    `input` is [N, spatial…, C] and `filter` [C, kernel…, O / group] in the layout `channels_last`, or [N, C, spatial…]
    and [C, O / group, kernel…] in `channels_first`; `bias` is [O]. Each spatial axis has
    (size - 1)·stride + (kernel - 1)·dilation + 1 + `output_padding` - pads elements.
    """

    name = "glow_high.conv_transpose"

    input = operand_def(NUMBERS.from_rank(3))
    filter = operand_def(NUMBERS.from_rank(3))
    bias = opt_operand_def(NUMBERS.of_rank(1))
    strides = optional_ints_prop()
    pads = optional_ints_prop()
    dilations = optional_ints_prop()
    output_padding = optional_ints_prop()
    group = int_prop(1)
    layout = text_prop(CHANNELS_LAST)
    result = result_def(TENSOR)

    def window(self) -> Window:
        """Kernel, strides, pads and dilations, with defaults filled in."""
        _, kernel, _ = split_image(shape_of(self.filter), self.layout)
        return Window.of(kernel, self.strides, self.pads, self.dilations)

    def extents(self, spatial: Sizes) -> Sizes:
        """The extent of the windows of all input elements along each spatial axis, plus `output_padding`."""
        window = self.window()
        extra = ints(self.output_padding) or (0,) * len(spatial)
        require(len(extra) == len(spatial), f"output_padding must have {len(spatial)} elements, one a spatial axis")
        require(min(extra) >= 0, "output_padding must not be negative")
        return tuple(
            (size - 1) * window.strides[axis] + window.extent(axis) + extra[axis] for axis, size in enumerate(spatial)
        )

    def access_map(self) -> AccessMap:
        output = "o" if integer(self.group) == 1 else "*o"
        axes, kernel = (f"*, {output}",) * 2 if is_channels_last(self.layout) else (f"{output}, *", f"*c, {output}, *")
        return self.accessed(f"input[n, *], filter[{kernel}], bias[{output}] -> result[n; {axes}]")

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        batch, spatial, _ = split_sizes(self.input, self.layout)
        channels = size_along(self.input, channel_axis(rank_of(self.input), self.layout))
        depth, kernel, per_group = split_image(self.filter, self.layout)
        require(depth == channels, f"the filter reads {depth} channels, the input has {channels}")
        require(len(kernel) == len(spatial), f"the filter has {len(kernel)} spatial axes, the input {len(spatial)}")
        group = integer(self.group)
        require(group > 0 and channels % group == 0, f"{group} groups do not divide {channels} channels")
        window = self.window()
        extents = self.extents(spatial)
        sizes = tuple(extent - sum(window.padding(axis)) for axis, extent in enumerate(extents))
        require(min(map(smallest, sizes)) > 0, f"the output would have the spatial sizes {sizes}")
        outputs = per_group * group
        if self.bias is not None:
            require(shape_of(self.bias) == (outputs,), f"bias must have shape ({outputs},), not {shape_of(self.bias)}")
        signature = ProductSignature.of(self.input, self.filter, self.bias)
        return (tensor(join_image(batch, sizes, outputs, self.layout), signature.output),)

    def linear_form(self) -> LinearForm | None:
        if not is_channels_last(self.layout):
            return None
        depth, *kernel, outputs = shape_of(self.filter)
        group, ones = integer(self.group), (1,) * len(kernel)
        return LinearForm(
            self.input,
            self.filter,
            self.bias,
            view=(group, depth // group, *kernel, outputs),
            outputs=(group, 1, *ones, outputs),
            inputs=(group, depth // group, *ones, 1),
            keeps_addends=False,
        )


@op_definition
class Col2ImOp(HighOp):
    """
    The image [N, C, spatial…] that is the sum of its windows, the columns of the operand (ONNX Col2Im).

    `input` is [N, C * elements, windows]. `image_shape` are the spatial sizes of the image, `block_shape` those of a
    window; elements and windows are in row-major order. Windows overlap like those of a convolution, and elements
    within the `pads` are dropped.
    """

    name = "glow_high.col2im"
    NOTATION: ClassVar[str] = "input[n, *] -> result[n, *]"

    input = operand_def(NUMBERS.of_rank(3))
    image_shape = ints_prop()
    block_shape = ints_prop()
    strides = optional_ints_prop()
    pads = optional_ints_prop()
    dilations = optional_ints_prop()
    result = result_def(TENSOR)

    def window(self) -> Window:
        """Sizes, strides, pads and dilations of the windows."""
        return Window.of(ints(self.block_shape), self.strides, self.pads, self.dilations)

    def windows(self) -> Shape:
        """How many windows there are along each spatial axis."""
        return self.window().outputs(ints(self.image_shape))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        batch, rows, columns = sizes_of(self.input)
        image, block = ints(self.image_shape), ints(self.block_shape)
        require(len(image) == len(block) > 0, f"windows of {len(block)} axes do not fit images of {len(image)}")
        elements, windows = math.prod(block), math.prod(self.windows())
        channels = quotient(rows, elements) if elements > 0 else None
        if channels is None:
            raise VerifyException(f"{rows} rows are no channels of {elements} elements each")
        require(columns == windows, f"{columns} columns do not fit {windows} windows")
        return (tensor((batch, channels, *image), element_of(self.input)),)
