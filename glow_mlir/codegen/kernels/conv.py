"""The kernel of convolution instructions: operands and packing around `convolution`'s loop nests."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from glow_mlir.codegen.bodies import Plane, prologue_of
from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.convolution import ConvShape, conv_cut, conv_strips, emit_conv
from glow_mlir.codegen.kernels.depthwise import emit_depthwise
from glow_mlir.codegen.kernels.dot_products import DotProduct, dot_product, multiplies
from glow_mlir.codegen.kernels.gemm import TILE_PRODUCTS, GemmOptions, product_choices, product_tiles
from glow_mlir.codegen.kernels.packed_operand import PACK, packed_operand, packing_cuts, packing_scratch
from glow_mlir.codegen.kernels.pointwise_prologue import BlockedConv, block_lines
from glow_mlir.codegen.kernels.product_operands import ProductOperands
from glow_mlir.codegen.kernels.strassen import Rows, Sizes, emit_strassen
from glow_mlir.codegen.kernels.strassen_kernel import StrassenKernel
from glow_mlir.codegen.kernels.tile_products import (
    TileProduct,
    tile_instruction,
    tile_product,
    tile_products_in_time_of_one,
    with_tile_products,
)
from glow_mlir.codegen.kernels.winograd import WinogradShape, emit_winograd
from glow_mlir.codegen.math.half import is_half
from glow_mlir.codegen.selection.kernel import (
    YES_OR_NO,
    Buffer,
    Choice,
    Kernel,
    KernelCall,
    Tiles,
    kind_of,
    tiles_of,
)
from glow_mlir.codegen.selection.pack_operands import whole_constant, whole_storage
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.codegen.selection.partitions import partitions_of
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.layouts import depthwise_filters, filter_panels, winograd_panels
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.winograd import OUTPUTS, STRIDES, TAPS, TileForm
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import has_unit_stride, is_dense, strides_of
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.shapes import Shape, element_of, is_empty, largest_shape, shape_of, size_along, sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.dialects.target import Target
from glow_mlir.dialects.windows import CHANNELS_LAST, Window


def accepts_conv(op: Operation) -> bool:
    """Whether `op` is a convolution, channels last, whose input holds its own border."""
    if kind_of(op) is not ConvOp:
        return False
    layout, pads = op.properties["layout"], op.properties.get("pads")
    assert isinstance(layout, StringAttr)
    dense = all(is_dense(value) for value in (getattr(op, "filter"), getattr(op, "bias")) if value is not None)
    channels = (sizes_of(getattr(op, name))[-1] for name in ("input", "result"))
    return (
        layout.data == CHANNELS_LAST
        and all(isinstance(size, int) for size in channels)
        and dense
        and has_unit_stride(getattr(op, "result"))
        and not any(ints(pads))
        and multiplies(op, getattr(op, "input"), getattr(op, "filter"))
        and not is_empty(getattr(op, "filter"))
    )


def dot_of(op: Operation, target: Target) -> DotProduct:
    """How a machine computes the products of a convolution."""
    return dot_product(getattr(op, "input"), getattr(op, "filter"), target)


def group_of(op: Operation) -> int:
    """Into how many groups the channels are split."""
    return integer(op.properties["group"])


def reads_by_channel(op: Operation) -> bool:
    """Whether the pixels of a line of the input follow each other, the channels do not, and are read plane by plane."""
    image = getattr(op, "input")
    if has_unit_stride(image):
        return False
    return strides_of(image)[-2] == 1 and max(_dilations(op)[-1:], default=1) == 1


def _dilations(op: Operation) -> Shape:
    dilations = op.properties.get("dilations")
    return () if dilations is None else ints(dilations)


def filter_shape(op: Operation) -> Shape:
    """The shape [O, kernel…, I] of the filter, packed or not."""
    return op.plain_shape("filter") if isinstance(op, DerivedInstruction) else shape_of(getattr(op, "filter"))


def shape_of_call(call: KernelCall) -> ConvShape:
    """The sizes of the convolution of a call, with the pitches of its buffers."""
    batch, *outputs, _ = call.result.extents
    return dataclasses.replace(shape_of_conv(call.op), batch=batch, outputs=tuple(outputs))


def outputs_of(op: Operation) -> Shape:
    """The spatial sizes of the result, the largest that they may be."""
    return largest_shape(getattr(op, "result"))[1:-1]


def shape_of_conv(op: Operation) -> ConvShape:
    """The sizes of a convolution, of as many and as large images as there may be, with the pitches of its buffers."""
    source, result = getattr(op, "input"), getattr(op, "result")
    into, out_of = strides_of(result), strides_of(source)
    filters, *kernel_sizes, channels = filter_shape(op)
    window = Window.of(
        tuple(kernel_sizes),
        op.properties.get("strides"),  # pyright: ignore[reportArgumentType]
        None,
        op.properties.get("dilations"),  # pyright: ignore[reportArgumentType]
    )
    group = group_of(op)
    return ConvShape(
        outputs=outputs_of(op),
        kernel=window.kernel,
        channels=channels,
        filters=filters // group,
        input_pitches=out_of[1:-1],
        output_pitches=into[1:-1],
        strides=window.strides,
        dilations=window.dilations,
        groups=group,
        batch=largest(sizes_of(source)[0]),
        input_image=out_of[0],
        output_image=into[0],
        channel_pitch=1 if has_unit_stride(source) else out_of[-1],
        image_lines=integer(op.properties["image_lines"]) if "image_lines" in op.properties else None,
    )


def has_prologue(op: Operation) -> bool:
    """Whether an instruction has a prologue; operators have none."""
    return isinstance(op, DerivedInstruction) and op.prologue is not None


def is_pointwise(op: Operation) -> bool:
    """Whether every output reads one pixel, in one group."""
    _, *kernel_sizes, _ = filter_shape(op)
    return math.prod(kernel_sizes) == 1 and group_of(op) == 1


MOST_UNROLLED = 64
"""Elements of a depthwise filter that are still unrolled; larger filters take the general kernel."""


@kernel("conv-depthwise")
class DepthwiseConvKernel(Kernel):
    """One filter a channel: vectors run over the channels."""

    name = "conv-depthwise"
    AXES = (PACK, "images", "lines")
    RUN_TIME_SIZES = True
    EPILOGUE = True
    ROW_TILING = True

    def accepts(self, op: Operation) -> bool:
        if not accepts_conv(op) or not has_unit_stride(getattr(op, "input")):
            return False
        filters, *kernel_sizes, depth = filter_shape(op)
        return depth == 1 and filters == group_of(op) and math.prod(kernel_sizes) <= MOST_UNROLLED

    def packed(self, op: Instruction, target: Target) -> Mapping[str, PackedForm]:
        return {"filter": PackedForm(depthwise_filters(filter_shape(op)), dot_of(op, target).right)}

    def scratch(self, op: Instruction, target: Target) -> Sequence[Buffer]:
        return packing_scratch(op, self.packed(op, target))

    def emit(self, call: KernelCall) -> None:
        packed = _packed_filter(call, self)
        if call.runs("images", "lines"):
            operands = ProductOperands.of(call, "input", packed, dot_of(call.op, call.target).singly)
            emit_depthwise(
                call.b, operands, shape_of_call(call), images=call.share("images"), lines=call.share("lines")
            )

    def cuts(self, op: Instruction, target: Target) -> Mapping[str, int]:
        pack = packing_cuts(op, self.packed(op, target), target)
        batch, *outputs, _ = map(smallest, sizes_of(getattr(op, "result")))
        by_images = (
            batch >= kernel_costs(target).parts_per_thread * target.policy.threads
            or batch % target.policy.threads == 0
            or len(outputs) == 1
        )
        return {**pack, "images": batch} if by_images else {**pack, "lines": outputs[0]}


def _packed_filter(call: KernelCall, by: Kernel, at: int = 0) -> Value:
    """The filter in the layout of a kernel, whose scratch number `at` it is packed into where it is not packed."""
    scratch = call.many("scratch")[at:] or [call.one("filter")]
    return packed_operand(call, "filter", by.packed(call.op, call.target)["filter"], scratch[0])


def _is_square_in_one_group(op: Operation, taps: int) -> bool:
    """
    Whether `op` is a convolution in one group with sums in f32, with filters of `taps` x `taps` and dense pixels, of
    images whose sizes are numbers.
    """
    if not accepts_conv(op) or not has_unit_stride(getattr(op, "input")) or group_of(op) != 1:
        return False
    if not all(isinstance(size, int) for size in sizes_of(getattr(op, "result"))[1:]):
        return False
    _, *kernel_sizes, _ = filter_shape(op)
    source = element_of(getattr(op, "input"))
    return kernel_sizes == [taps, taps] and (source == f32 or is_half(source))


@kernel("conv-winograd")
class WinogradConvKernel(Kernel):
    """
    3x3 filters that move by one pixel or by two, in one group: fewer products, with larger rounding errors.

    It is used where `WinogradShape` finds it faster: constants are transformed at compile time, state where it
    changes, and other filters into scratch.
    """

    name = "conv-winograd"
    AXES = (PACK, "tiles", "transform", "columns")
    SUMMING = ("height", "width")
    LEAN = False
    STRICT = False
    STRIDED_INNER = True
    EPILOGUE = True
    RUN_TIME_SIZES = True

    def accepts(self, op: Operation) -> bool:
        square = _is_square_in_one_group(op, TAPS)
        return square and max(_dilations(op), default=1) == 1 and _stride_of(op) in STRIDES

    def candidates(self, op: Operation, storage: Storage, target: Target) -> Sequence[Tiles]:
        return _winograd_shape(op, target, _packs_before(op, storage)).candidates(target, f32)

    def is_profitable(self, op: Operation, storage: Storage, target: Target) -> bool:
        return _winograd_shape(op, target, _packs_before(op, storage)).forms(target, f32)[0] is not None

    def packed(self, op: Instruction, target: Target) -> Mapping[str, PackedForm]:
        whole = _winograd_shape(op, target)
        if not whole.suits(target, f32):
            return {}
        cut = whole.blocking(target, f32, tiles_of(op))
        return {"filter": PackedForm(winograd_panels(filter_shape(op), cut.panel, cut.form), f32)}

    def scratch(self, op: Instruction, target: Target) -> Sequence[Buffer]:
        cut = _winograd_shape(op, target).blocking(target, f32, tiles_of(op))
        return [*((shape, f32) for shape in cut.scratch()), *packing_scratch(op, self.packed(op, target))]

    def choices(self, op: Instruction, target: Target) -> Mapping[str, Choice]:
        tiles, shape = tiles_of(op), _winograd_shape(op, target)
        form = {side: Choice(OUTPUTS, needed=True) for side in ("height", "width")}
        if any(tiles.get(side) not in choice.values for side, choice in form.items()):
            return {**form, "block": Choice(range(1, 2)), "prefetch": Choice(YES_OR_NO)}
        most = shape.tiles(TileForm(tiles["height"], tiles["width"], shape.stride))
        return {**form, "block": Choice(range(1, most + 1), needed=True), "prefetch": Choice(YES_OR_NO, needed=True)}

    def cuts(self, op: Instruction, target: Target) -> Mapping[str, int]:
        cut = _winograd_shape(op, target).blocking(target, f32, tiles_of(op))
        panels = -(-filter_shape(op)[0] // cut.panel)
        pack = packing_cuts(op, self.packed(op, target), target)
        if cut.block < cut.tiles:
            return {**pack, "tiles": -(-cut.tiles // cut.block)}
        return {**pack, "transform": cut.tiles, "columns": panels}

    def private(self, op: Instruction) -> Sequence[int]:
        # Inputs, products and patch; the panels of a block share its inputs.
        return (1, 2) if "columns" in partitions_of(op) else (0, 1, 2)

    def emit(self, call: KernelCall) -> None:
        cut = _winograd_shape(call.op, call.target).blocking(call.target, f32, tiles_of(call.op))
        packed, scratch = _packed_filter(call, self, at=len(cut.scratch())), call.many("scratch")
        if not call.runs(*self.AXES[1:]):
            return
        emit_winograd(
            call.b,
            ProductOperands.of(call, "input", packed),
            shape_of_call(call),
            cut=cut,
            source=call.one("input").element,
            scratch=[buffer.pointer for buffer in scratch[: len(cut.scratch())]],
            tiles=call.share("tiles"),
            transform=call.share("transform") if call.runs("tiles", "transform") else None,
            columns=call.share("columns") if call.runs("tiles", "columns") else None,
        )


def _strides_of(op: Operation) -> Shape:
    """By how many pixels the filter moves along each axis; empty where it moves by one."""
    return ints(op.properties["strides"]) if "strides" in op.properties else ()


def _stride_of(op: Operation) -> int | None:
    """By how many pixels the filter moves along all axes; `None` where they differ."""
    strides = set(_strides_of(op) or (1,))
    return strides.pop() if len(strides) == 1 else None


def _packs_before(op: Operation, storage: Storage) -> bool:
    """Whether filters are transformed before the run: constants, and state that the function leaves as it is."""
    return whole_storage(getattr(op, "filter"), storage) is not None


def _winograd_shape(op: Operation, target: Target, is_packed: bool = True) -> WinogradShape:
    """The sizes of a convolution that Winograd's algorithm can do, and whether its filters are packed before."""
    filters, *_, channels = filter_shape(op)
    batch, *extents, _ = largest_shape(getattr(op, "result"))
    stride = _stride_of(op)
    assert stride is not None
    product = _tile_product(op, target)
    direct = dot_of(op, target).group if product is None else tile_products_in_time_of_one(product, target)
    return WinogradShape(extents, batch, channels, filters, stride, direct, is_packed)


@kernel("conv-strassen")
class StrassenConvKernel(StrassenKernel):
    """
    Filters of one element over images, in one group, as a matrix product by Strassen's algorithm.

    It is used for constant filters, where `strassen_is_faster` says that it is faster.
    """

    name = "conv-strassen"
    STRIDED_INNER = True
    PROLOGUE = True

    def accepts(self, op: Operation) -> bool:
        if not _is_square_in_one_group(op, 1) or element_of(getattr(op, "input")) != f32:
            return False
        return self.knows_samples(op, shape_of(getattr(op, "result"))[0])

    def is_constant(self, op: Operation, storage: Storage) -> bool:
        return whole_constant(getattr(op, "filter"), storage) is not None

    def packed(self, op: Instruction, target: Target) -> Mapping[str, PackedForm]:
        return self.packed_matrix(op, "filter", filter_shape(op), target, transposed=True)

    def sizes(self, op: Operation) -> Sizes:
        images, *pixels, columns = shape_of(getattr(op, "result"))
        return Sizes(images, math.prod(pixels), columns, filter_shape(op)[-1])

    def emit(self, call: KernelCall) -> None:
        shape = shape_of_call(call)
        steps = [stride * pitch for stride, pitch in zip(shape.strides, shape.input_pitches, strict=True)]
        source, result = call.one("input"), call.result
        emit_strassen(
            call.b,
            ProductOperands.of(call, "input", call.one("filter").pointer),
            Rows(result.shape[:-1], (source.strides[0], *steps), result.strides[:-1]),
            result.shape[-1],
            cut=self.halves(call.op, call.target),
            scratch=[scratch.pointer for scratch in call.many("scratch")],
            prologue=prologue_of(call),
            **self.shares(call),
        )


@kernel("conv")
class ConvKernel(Kernel):
    """
    Convolution as an implicit matrix product; filters of constants and state are packed before the run, others into
    scratch.

    A prologue is applied block by block, which needs a kernel of one element.
    """

    name = "conv"
    AXES = (PACK, "images", "rows", "columns", "blocks")
    SUMMING = (TILE_PRODUCTS,)
    STRIDED_INNER = True
    EPILOGUE = True
    PROLOGUE = True
    ROW_TILING = True
    RUN_TIME_SIZES = True

    def accepts(self, op: Operation) -> bool:
        if not accepts_conv(op):
            return False
        even, source = has_unit_stride(getattr(op, "input")), element_of(getattr(op, "input"))
        if has_prologue(op):
            return even and is_pointwise(op) and is_float(source) and not is_half(source)
        return even or reads_by_channel(op)

    def candidates(self, op: Operation, storage: Storage, target: Target) -> Sequence[Tiles]:
        filters, *rest = filter_shape(op)
        if reads_by_channel(op) and size_along(getattr(op, "input"), -1) > kernel_costs(target).plane_channels:
            return ()
        outputs, dot = outputs_of(op), dot_of(op, target)
        if has_prologue(op):
            outputs = (block_lines(outputs, target), *outputs[1:])
        # A prologue leaves the pixels that are read beside each other.
        step = size_along(getattr(op, "input"), -1) * (1 if has_prologue(op) else math.prod(_strides_of(op)))
        sizes = math.prod(outputs), filters // group_of(op), math.prod(rest)
        found = product_tiles(target, dot, *sizes, step)
        # A prologue is applied to blocks, whose size is that of the scratch buffer.
        if has_prologue(op):
            return [tiles for tiles in found if tiles.get("rows") == found[0].get("rows")]
        product = _tile_product(op, target)
        if product is None:
            return found
        # Among all lines of an image, some are computed as they would be among others.
        shape = shape_of_conv(op).of_whole_images
        pixels = math.prod(number for number in shape.outputs if isinstance(number, int))
        return with_tile_products(found, product, conv_strips(shape).count, pixels, *sizes[1:], target)

    def packed(self, op: Instruction, target: Target) -> Mapping[str, PackedForm]:
        group, dot, run = group_of(op), dot_of(op, target), _run_of(op)
        panel, by_channel = dot.tile(target).panel, reads_by_channel(op)
        layout = filter_panels(filter_shape(op), panel, group, dot.interleave(run), by_channel=by_channel)
        return {"filter": PackedForm(layout, dot.right)}

    def scratch(self, op: Instruction, target: Target) -> Sequence[Buffer]:
        found = packing_scratch(op, self.packed(op, target))
        if has_prologue(op):
            outputs, element = outputs_of(op), element_of(getattr(op, "filter"))
            found.append(((block_lines(outputs, target), *outputs[1:], filter_shape(op)[-1]), element))
        return found

    def choices(self, op: Instruction, target: Target) -> Mapping[str, Choice]:
        return product_choices(_tile_product(op, target) is not None)

    def cuts(self, op: Instruction, target: Target) -> Mapping[str, int]:
        pack = packing_cuts(op, self.packed(op, target), target)
        if has_prologue(op):
            outputs = outputs_of(op)
            return {**pack, "blocks": -(-outputs[0] // block_lines(outputs, target))}
        tile, by_tiles = dot_of(op, target).tile(target), bool(tiles_of(op).get(TILE_PRODUCTS, 0))
        # Where symbols decide how many images there are, there may be one.
        shape = dataclasses.replace(shape_of_conv(op), batch=smallest(sizes_of(getattr(op, "input"))[0]))
        axis, steps = conv_cut(shape, tile, target, by_tiles)
        return {**pack, axis: steps}

    def private(self, op: Instruction) -> Sequence[int]:
        return (int(op.properties.get("packing") is None),) if has_prologue(op) else ()

    def emit(self, call: KernelCall) -> None:
        packed, prologue = _packed_filter(call, self), prologue_of(call)
        if not call.runs(*self.AXES[1:]):
            return
        operands = ProductOperands.of(call, "input", packed, dot_of(call.op, call.target))
        shape = shape_of_call(call)
        if prologue is None:
            shares = (call.share(axis) for axis in ("rows", "columns", "images"))
            emit_conv(call.b, operands, shape, options=GemmOptions.of(tiles_of(call.op), *shares))
            return
        source = call.one("input")
        BlockedConv(
            b=call.b,
            shape=shape,
            outputs=outputs_of(call.op),
            channels=size_along(source.value, -1),
            operands=operands,
            source=Plane(source.pointer, source.element, source.strides),
            prologue=prologue,
            scratch=call.many("scratch")[-1].pointer,
            share=call.share("blocks"),
            options=GemmOptions.of(tiles_of(call.op)),
        ).emit()


def _tile_product(op: Operation, target: Target) -> TileProduct | None:
    """How tile registers compute the products of an instruction; `None` where they do not."""
    dot = dot_of(op, target)
    if tile_instruction(dot, target) is None or has_prologue(op) or reads_by_channel(op):
        return None
    return tile_product(dot, _run_of(op), target)


def _run_of(op: Operation) -> int:
    """How many elements of the input that are multiplied follow each other."""
    _, run = shape_of_conv(op).segments()
    assert isinstance(run, int)
    return run
