"""Kernels of convolution instructions: operands and packing around the loop nests of `convolution`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from glow_mlir.codegen.bodies import ExtraOperand, prologue_of
from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.convolution import conv_cut, conv_strips, emit_conv
from glow_mlir.codegen.kernels.products.convolution_form import ConvolutionForm
from glow_mlir.codegen.kernels.products.depthwise import emit_depthwise
from glow_mlir.codegen.kernels.products.gemm import TILE_PRODUCTS, GemmOptions, product_choices, product_tiles
from glow_mlir.codegen.kernels.products.packed_operand import PACK, packed_operand, packing_cuts, packing_scratch
from glow_mlir.codegen.kernels.products.pointwise_prologue import (
    BlockedConv,
    SharedBlocks,
    block_lines,
    shared_blocks,
)
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.strassen import Rows, Sizes, emit_strassen
from glow_mlir.codegen.kernels.products.strassen_kernel import StrassenKernel
from glow_mlir.codegen.kernels.products.tile_products import (
    tile_products_per_vector_product,
    with_tile_products,
)
from glow_mlir.codegen.kernels.products.tiles import tile_for
from glow_mlir.codegen.kernels.products.winograd import WinogradShape, emit_winograd
from glow_mlir.codegen.math.half import is_half
from glow_mlir.codegen.selection.kernel import (
    YES_OR_NO,
    Buffer,
    Choice,
    Kernel,
    KernelCall,
    Tiles,
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
from glow_mlir.dialects.shapes import element_of, largest_shape, shape_of, size_along, sizes_of
from glow_mlir.dialects.sizes import smallest
from glow_mlir.dialects.target import Target
from glow_mlir.support.symbols import Size, numbers_in

MAX_SLICES = 32
"""The largest number of two-dimensional slices of a filter: a depthwise kernel has code for each."""


@kernel("conv-depthwise")
class DepthwiseConvKernel(Kernel[ConvOp]):
    """Depthwise convolution, one filter per channel: vectors run over the channels."""

    name = "conv-depthwise"
    AXES = (PACK, "images", "lines")
    RUN_TIME_SIZES = True
    EPILOGUE = True
    ROW_TILING = True

    def accepts(self, op: ConvOp) -> bool:
        form = ConvolutionForm.read_by_kernels(op)
        if form is None or not form.has_dense_pixels:
            return False
        return form.plain[-1] == 1 and form.filters == form.group and math.prod(form.plain[1:-3]) <= MAX_SLICES

    def packed(self, op: ConvOp, target: Target) -> Mapping[str, PackedForm]:
        form = ConvolutionForm.of(op)
        return {"filter": PackedForm(depthwise_filters(form.plain), form.dot(target).right)}

    def scratch(self, op: ConvOp, target: Target) -> Sequence[Buffer]:
        return packing_scratch(op, self.packed(op, target))

    def emit(self, call: KernelCall[ConvOp]) -> None:
        packed, form = _packed_filter(call, self), ConvolutionForm.of(call.op)
        if call.runs("images", "lines"):
            operands = ProductOperands.of(call, "input", packed, form.dot(call.target))
            images, lines = call.share("images"), call.share("lines")
            emit_depthwise(call.b, operands, form.shape_at(call), images=images, lines=lines)

    def cuts(self, op: ConvOp, target: Target) -> Mapping[str, int]:
        pack = packing_cuts(op, self.packed(op, target), target)
        # A symbolic size may be 0.
        batch, *outputs, _ = (max(1, smallest(size)) for size in sizes_of(op.result))
        by_images = (
            batch >= kernel_costs(target).parts_per_thread * target.policy.threads
            or batch % target.policy.threads == 0
            or len(outputs) == 1
        )
        return {**pack, "images": batch} if by_images else {**pack, "lines": outputs[0]}


def _packed_filter(call: KernelCall[ConvOp], by: Kernel[ConvOp], at: int = 0) -> Value:
    """Return the filter in the layout of a kernel; one that is not packed yet is packed into scratch buffer `at`."""
    scratch = call.many("scratch")[at:] or [call.one("filter")]
    return packed_operand(call, "filter", by.packed(call.op, call.target)["filter"], scratch[0])


@kernel("conv-winograd")
class WinogradConvKernel(Kernel[ConvOp]):
    """
    3x3 filters with stride 1 or 2 and one group by Winograd's algorithm: fewer products, but larger rounding errors.

    It is used where `WinogradShape` finds it faster. Constant filters are transformed at compile time, state when it
    changes, other filters into scratch in each call.
    """

    name = "conv-winograd"
    AXES = (PACK, "tiles", "transform", "columns")
    SUMMING = ("height", "width")
    LEAN = False
    STRICT = False
    STRIDED_INNER = True
    EPILOGUE = True
    RUN_TIME_SIZES = True

    def accepts(self, op: ConvOp) -> bool:
        form = ConvolutionForm.read_by_kernels(op)
        if form is None or not form.is_square_in_one_group(TAPS):
            return False
        return max(form.window.dilations) == 1 and form.stride in STRIDES

    def suits(self, op: ConvOp, target: Target) -> bool:
        return _winograd_shape(op, target).suits(target, f32)

    def candidates(self, op: ConvOp, storage: Storage, target: Target) -> Sequence[Tiles]:
        return _winograd_shape(op, target, _packs_before(op, storage)).candidates(target, f32)

    def is_profitable(self, op: ConvOp, storage: Storage, target: Target) -> bool:
        return _winograd_shape(op, target, _packs_before(op, storage)).forms(target, f32)[0] is not None

    def packed(self, op: ConvOp, target: Target) -> Mapping[str, PackedForm]:
        cut = _winograd_shape(op, target).blocking(target, f32, tiles_of(op))
        return {"filter": PackedForm(winograd_panels(ConvolutionForm.of(op).plain, cut.panel, cut.form), f32)}

    def scratch(self, op: ConvOp, target: Target) -> Sequence[Buffer]:
        cut = _winograd_shape(op, target).blocking(target, f32, tiles_of(op))
        return [*((shape, f32) for shape in cut.scratch()), *packing_scratch(op, self.packed(op, target))]

    def choices(self, op: ConvOp, target: Target) -> Mapping[str, Choice]:
        tiles, shape = tiles_of(op), _winograd_shape(op, target)
        form = {side: Choice(OUTPUTS, needed=True) for side in ("height", "width")}
        if any(tiles.get(side) not in choice.values for side, choice in form.items()):
            return {**form, "block": Choice(range(1, 2)), "prefetch": Choice(YES_OR_NO)}
        max_block = shape.tiles(TileForm(tiles["height"], tiles["width"], shape.stride))
        blocks = range(min(max_block, tile_for(target, f32).rows), max_block + 1)
        return {**form, "block": Choice(blocks, needed=True), "prefetch": Choice(YES_OR_NO, needed=True)}

    def cuts(self, op: ConvOp, target: Target) -> Mapping[str, int]:
        cut = _winograd_shape(op, target).blocking(target, f32, tiles_of(op))
        panels = -(-ConvolutionForm.of(op).filters // cut.panel)
        pack = packing_cuts(op, self.packed(op, target), target)
        if cut.block < cut.tiles:
            return {**pack, "tiles": -(-cut.tiles // cut.block)}
        return {**pack, "transform": cut.tiles, "columns": panels}

    def private(self, op: ConvOp) -> Sequence[int]:
        # Inputs, products and patch; where threads share the columns, they share the inputs of a block.
        return (1, 2) if "columns" in partitions_of(op) else (0, 1, 2)

    def emit(self, call: KernelCall[ConvOp]) -> None:
        cut = _winograd_shape(call.op, call.target).blocking(call.target, f32, tiles_of(call.op))
        packed, scratch = _packed_filter(call, self, at=len(cut.scratch())), call.many("scratch")
        if not call.runs(*self.AXES[1:]):
            return
        emit_winograd(
            call.b,
            ProductOperands.of(call, "input", packed),
            ConvolutionForm.of(call.op).shape_at(call),
            cut=cut,
            source=call.one("input").element,
            scratch=[buffer.pointer for buffer in scratch[: len(cut.scratch())]],
            tiles=call.share("tiles"),
            transform=call.share("transform") if call.runs("tiles", "transform") else None,
            columns=call.share("columns") if call.runs("tiles", "columns") else None,
        )


def _packs_before(op: ConvOp, storage: Storage) -> bool:
    """Whether filters are transformed before the run: constants, and state that the function does not change."""
    return whole_storage(op.filter, storage) is not None


def _winograd_shape(op: ConvOp, target: Target, is_packed: bool = True) -> WinogradShape:
    """Return the sizes for Winograd's algorithm; `is_packed` if filters are transformed before the run."""
    form = ConvolutionForm.of(op)
    batch, *extents, _ = largest_shape(form.result)
    assert form.stride is not None
    product = form.tile_product(target)
    direct = form.dot(target).group if product is None else tile_products_per_vector_product(product, target)
    return WinogradShape(extents, batch, form.plain[-1], form.filters, form.stride, direct, is_packed)


@kernel("conv-strassen")
class StrassenConvKernel(StrassenKernel[ConvOp]):
    """
    1x1 filters in one group, as a matrix product by Strassen's algorithm.

    It is used for constant filters, where `strassen_is_faster` holds.
    """

    name = "conv-strassen"
    STRIDED_INNER = True
    PROLOGUE = True

    def accepts(self, op: ConvOp) -> bool:
        form = ConvolutionForm.read_by_kernels(op)
        if form is None or not form.is_square_in_one_group(1) or form.element != f32:
            return False
        return self.knows_samples(op, shape_of(form.result)[0])

    def is_constant(self, op: ConvOp, storage: Storage) -> bool:
        return whole_constant(op.filter, storage) is not None

    def packed(self, op: ConvOp, target: Target) -> Mapping[str, PackedForm]:
        return self.packed_matrix(op, "filter", ConvolutionForm.of(op).plain, target, transposed=True)

    def sizes(self, op: ConvOp) -> Sizes:
        form = ConvolutionForm.of(op)
        images, *pixels, columns = shape_of(form.result)
        return Sizes(images, math.prod(pixels), columns, form.plain[-1])

    def emit(self, call: KernelCall[ConvOp]) -> None:
        shape = ConvolutionForm.of(call.op).shape_at(call)
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
class ConvKernel(Kernel[ConvOp]):
    """
    Convolution as an implicit matrix product. Filters that are constants or state are packed before the run, others
    into scratch.

    A prologue needs 1x1 filters and is applied block by block. Either threads share each block: first its `lines`, for
    the prologue, then its `rows` or `columns`, for the product. Or threads share the `blocks`, and each does both steps
    for its own.
    """

    name = "conv"
    AXES = (PACK, "images", "lines", "rows", "columns", "blocks")
    SUMMING = (TILE_PRODUCTS,)
    STRIDED_INNER = True
    EPILOGUE = True
    PROLOGUE = True
    ROW_TILING = True
    RUN_TIME_SIZES = True

    def accepts(self, op: ConvOp) -> bool:
        form = ConvolutionForm.read_by_kernels(op)
        if form is None:
            return False
        if form.has_prologue:
            wide = is_float(form.element) and not is_half(form.element)
            return form.has_dense_pixels and form.is_pointwise and wide
        return form.has_dense_pixels or form.by_channel

    def candidates(self, op: ConvOp, storage: Storage, target: Target) -> Sequence[Tiles]:
        form = ConvolutionForm.of(op)
        channels = size_along(form.input, -1)
        if form.by_channel and channels > kernel_costs(target).plane_channels:
            return ()
        outputs = form.outputs
        if form.has_prologue:
            outputs = (block_lines(outputs, target), *outputs[1:])
        # A prologue writes the pixels contiguously.
        step = channels * (1 if form.has_prologue else math.prod(form.window.strides))
        sizes = math.prod(outputs), form.filters // form.group, form.depth
        found = product_tiles(target, form.dot(target), *sizes, step)
        # A prologue is applied to blocks of the size of the scratch buffer.
        if form.has_prologue:
            return [tiles for tiles in found if tiles.get("rows") == found[0].get("rows")]
        product = form.tile_product(target)
        if product is None:
            return found
        # Results must not depend on which lines of an image are computed.
        shape = form.shape.of_whole_images
        pixels = math.prod(numbers_in(shape.outputs))
        return with_tile_products(found, product, conv_strips(shape).count, pixels, *sizes[1:], target)

    def packed(self, op: ConvOp, target: Target) -> Mapping[str, PackedForm]:
        form = ConvolutionForm.of(op)
        dot = form.dot(target)
        panel, interleave = dot.tile(target).panel, dot.interleave(form.run)
        layout = filter_panels(form.plain, panel, form.group, interleave, by_channel=form.by_channel)
        return {"filter": PackedForm(layout, dot.right)}

    def scratch(self, op: ConvOp, target: Target) -> Sequence[Buffer]:
        found, form = packing_scratch(op, self.packed(op, target)), ConvolutionForm.of(op)
        if form.has_prologue:
            outputs = block_lines(form.outputs, target), *form.outputs[1:]
            found.append(((*outputs, form.plain[-1]), element_of(form.filter)))
        return found

    def choices(self, op: ConvOp, target: Target) -> Mapping[str, Choice]:
        return product_choices(ConvolutionForm.of(op).tile_product(target) is not None)

    def cuts(self, op: ConvOp, target: Target) -> Mapping[str, int]:
        pack, form = packing_cuts(op, self.packed(op, target), target), ConvolutionForm.of(op)
        tile, by_tiles = form.dot(target).tile(target), bool(tiles_of(op).get(TILE_PRODUCTS, 0))
        if form.has_prologue:
            lines, shared = block_lines(form.outputs, target), _shared_blocks(form, target)
            if shared is not None:
                return {**pack, "lines": lines, shared.axis: shared.steps}
            return {**pack, "blocks": -(-form.outputs[0] // lines)}
        # A symbolic number of images may be 1 or 0.
        shape = dataclasses.replace(form.shape, batch=max(1, smallest(sizes_of(form.input)[0])))
        axis, steps = conv_cut(shape, tile, target, by_tiles)
        return {**pack, axis: steps}

    def rounds(self, op: ConvOp, axis: str, target: Target) -> Size:
        form = ConvolutionForm.of(op)
        shared = _shared_blocks(form, target) if form.has_prologue else None
        return 1 if shared is None or axis not in ("lines", shared.axis) else sizes_of(op.input)[0] * shared.count

    def private(self, op: ConvOp) -> Sequence[int]:
        is_shared = "lines" in partitions_of(op) or not ConvolutionForm.of(op).has_prologue
        return () if is_shared else (int(op.properties.get("packing") is None),)

    def emit(self, call: KernelCall[ConvOp]) -> None:
        packed, prologue = _packed_filter(call, self), prologue_of(call)
        if not call.runs(*self.AXES[1:]):
            return
        form = ConvolutionForm.of(call.op)
        operands, shape = ProductOperands.of(call, "input", packed, form.dot(call.target)), form.shape_at(call)
        if prologue is None:
            shares = (call.share(axis) for axis in ("rows", "columns", "images"))
            emit_conv(call.b, operands, shape, options=GemmOptions.of(tiles_of(call.op), *shares))
            return
        source, shared = call.one("input"), _shared_blocks(form, call.target)
        shares = GemmOptions.of(tiles_of(call.op), rows=call.share("rows"), columns=call.share("columns"))
        BlockedConv(
            b=call.b,
            shape=shape,
            outputs=form.outputs,
            channels=size_along(form.input, -1),
            operands=operands,
            source=ExtraOperand(source.pointer, source.element, source.strides),
            prologue=prologue,
            scratch=call.many("scratch")[-1].pointer,
            share=call.share("blocks"),
            body=call.share("lines") if call.runs("lines", "blocks") else None,
            options=shares if call.runs("rows", "columns", "blocks") else None,
            block=call.round,
            blocks=1 if shared is None else shared.count,
        ).emit()


def _shared_blocks(form: ConvolutionForm, target: Target) -> SharedBlocks | None:
    """Return how threads share the blocks of a convolution with a prologue."""
    return shared_blocks(form.shape, form.outputs, size_along(form.input, -1), form.dot(target).tile(target), target)
