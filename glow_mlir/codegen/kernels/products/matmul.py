"""Kernels of matrix products: batches of packed, register-tiled products."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from typing_extensions import TypeVar

from glow_mlir.codegen.bodies import ExtraOperand
from glow_mlir.codegen.builder.nests import Extents, Index, linear, nest, numbers
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.dot_products import DotGroupProduct, DotProduct, dot_product
from glow_mlir.codegen.kernels.products.gemm import (
    TILE_PRODUCTS,
    GemmOptions,
    UnpackedMatrix,
    emit_gemm,
    product_choices,
    product_cut,
    product_tiles,
)
from glow_mlir.codegen.kernels.products.pack import emit_packing
from glow_mlir.codegen.kernels.products.pack_panels import emit_pack_panels, emit_pack_transposed
from glow_mlir.codegen.kernels.products.product_batches import (
    batch_strides,
    exchanged,
    has_rows,
    merged_rows,
    multiplies_rows,
    row_axis,
)
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.strassen import Rows, Sizes, emit_strassen
from glow_mlir.codegen.kernels.products.strassen_kernel import StrassenKernel
from glow_mlir.codegen.kernels.products.strips import row_strips
from glow_mlir.codegen.kernels.products.tile_gemm import Origin, tile_gemm
from glow_mlir.codegen.kernels.products.tile_products import TileProduct, tile_product, with_tile_products
from glow_mlir.codegen.kernels.products.tiles import Columns
from glow_mlir.codegen.selection.kernel import (
    UNBOUNDED,
    Buffer,
    Choice,
    Kernel,
    KernelCall,
    Operand,
    Tiles,
    operands_of,
    tiles_of,
)
from glow_mlir.codegen.selection.pack_operands import whole_constant, whole_storage
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.layouts import matrix_panels
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.tiled_layout import TiledLayout
from glow_mlir.dialects.element_types import signless
from glow_mlir.dialects.glow_high.linear import MatMulOp, MatrixProduct
from glow_mlir.dialects.glow_low.memory import strides_of
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import (
    Shape,
    element_of,
    has_static_shape,
    is_empty,
    largest_shape,
    rank_of,
    shape_of,
    sizes_of,
)
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.dialects.target import Target
from glow_mlir.support.symbols import are_numbers


def _is_matrix(op: MatrixProduct) -> bool:
    """Whether the right operand of a product is a single matrix."""
    return rank_of(op.right) == 2


def _sizes(op: MatrixProduct) -> tuple[int, int, int]:
    """Return the rows of all batches, the columns and the depth of a product."""
    *rows, columns = shape_of(op.result)
    return math.prod(rows), columns, shape_of(op.left)[-1]


MAX_AXES = 4
"""The largest rank of a result of Strassen's algorithm: images, lines, pixels and columns."""


@kernel("matmul-strassen")
class StrassenMatMulKernel(StrassenKernel[MatMulOp]):
    """
    Products with a constant matrix by Strassen's algorithm: fewer products, with larger rounding errors.

    It is used where `strassen_is_faster` holds.
    """

    name = "matmul-strassen"

    def accepts(self, op: MatMulOp) -> bool:
        if flag(op.transpose_left) or not has_rows(op):
            return False
        few = rank_of(op.result) <= MAX_AXES
        suits = element_of(op.left) == f32 and not is_empty(op.right)
        return few and suits and self.knows_samples(op, _sizes(op)[0])

    def is_constant(self, op: MatMulOp, storage: Storage) -> bool:
        return _is_matrix(op) and whole_constant(op.right, storage) is not None

    def packed(self, op: MatMulOp, target: Target) -> Mapping[str, PackedForm]:
        plain = op.plain_shape("right")
        return self.packed_matrix(op, "right", plain, target, flag(op.transpose_right)) if len(plain) == 2 else {}

    def sizes(self, op: MatMulOp) -> Sizes:
        rows, columns, depth = _sizes(op)
        samples = integer(op.properties["samples"])
        return Sizes(samples, rows // samples, columns, depth)

    def emit(self, call: KernelCall[MatMulOp]) -> None:
        left, result = call.one("left"), call.result
        operands = ProductOperands.of(call, "left", call.one("right").pointer)
        missing = MAX_AXES - len(result.shape)
        extras = tuple(replace(extra, strides=(0,) * missing + extra.strides) for extra in operands.extras)
        batch = result.shape[:-2]
        rows = Rows(
            (1,) * missing + result.shape[:-1],
            (0,) * missing + batch_strides(left, batch) + left.strides[-2:-1],
            (0,) * missing + result.strides[:-1],
        )
        emit_strassen(
            call.b,
            replace(operands, extras=extras),
            rows,
            result.shape[-1],
            cut=self.halves(call.op, call.target),
            scratch=[scratch.pointer for scratch in call.many("scratch")],
            **self.shares(call),
        )


ProductT = TypeVar("ProductT", bound=MatrixProduct, default=Any)
"""The operator whose product a kernel computes."""


class ProductKernel(Kernel[ProductT]):
    """
    Batched products. The right operand is read in packed panels: a single matrix that is a constant or state is packed
    before the run; others are packed into scratch, as a whole or panel by panel, or once per batch if they are batched.
    """

    AXES = ("pack", "batches", "rows", "columns")
    SUMMING = (TILE_PRODUCTS,)
    RUN_TIME_SIZES = True

    def accepts(self, op: ProductT) -> bool:
        return multiplies_rows(op)

    def candidates(self, op: ProductT, storage: Storage, target: Target) -> Sequence[Tiles]:
        is_packed = _is_matrix(op) and whole_storage(op.right, storage) is not None
        *rows_of, last = sizes_of(op.result)
        rows_of = exchanged(rows_of, _row_axis(op, is_packed))
        sizes = [*rows_of, last, sizes_of(op.left)[-1]]
        if not is_packed:
            sizes = sizes[-3:]
        *outer, columns, depth = map(largest, sizes)
        rows, min_rows = math.prod(outer), math.prod(map(smallest, sizes[:-2]))
        found = product_tiles(target, _dot(op, target), rows, columns, depth, depth, min_rows)
        product = _tile_product(op, target)
        if product is None:
            return found
        return with_tile_products(found, product, row_strips(rows).count, rows, columns, depth, target)

    def packed(self, op: ProductT, target: Target) -> Mapping[str, PackedForm]:
        if not has_static_shape(op.right):
            return {}
        plain = op.plain_shape("right")
        return {"right": PackedForm(_layout(op, plain, target), _dot(op, target).right)} if len(plain) == 2 else {}

    def scratch(self, op: ProductT, target: Target) -> Sequence[Buffer]:
        if op.properties.get("packing") is not None:
            return ()
        shape = _layout(op, largest_shape(op.right)[-2:], target).shape
        return [((1, *shape[1:]) if _packs_by_panel(op, target) else shape, element_of(op.right))]

    def choices(self, op: ProductT, target: Target) -> Mapping[str, Choice]:
        return product_choices(_tile_product(op, target) is not None)

    def cuts(self, op: ProductT, target: Target) -> Mapping[str, int]:
        sizes = sizes_of(op.result)
        tile = _dot(op, target).tile(target)
        packed = op.properties.get("packing") is not None
        sizes = (*exchanged(sizes[:-1], _row_axis(op, packed)), sizes[-1])
        *batch, rows, columns = map(largest, sizes)
        if not packed and _is_batched(op):
            return {"batches": math.prod(batch)}
        if packed and _is_merged(op):
            rows, batch = rows * math.prod(batch), []
        by_tiles = tiles_of(op).get(TILE_PRODUCTS, 0)
        steps = row_strips(rows).count if by_tiles else -(-rows // tile.rows)
        cut = product_cut(rows, steps, columns, tile, target)
        panels = -(-columns // tile.panel)
        if not are_numbers(sizes[:-1]) and panels >= target.policy.threads:
            cut = ("columns", panels)  # There may be only one row.
        min_batches = math.prod(map(smallest, sizes[: len(batch)]))
        if min_batches >= kernel_costs(target).parts_per_thread * target.policy.threads:
            cut = ("batches", math.prod(batch))
        is_packed = packed or _packs_by_panel(op, target)
        return dict([cut] if is_packed else [("pack", -(-columns // tile.panel)), cut])

    def private(self, op: ProductT) -> Sequence[int]:
        return (0,) if op.properties.get("packing") is None and _is_batched(op) else ()

    def emit(self, call: KernelCall[ProductT]) -> None:
        left, result = call.one("left"), call.result
        columns, depth = result.extents[-1], left.extents[-1]
        packing = call.op.properties.get("packing")
        axis = _row_axis(call.op, packing is not None)
        *batch, rows = exchanged(result.extents[:-1], axis)
        right = call.one("right")
        operands = ProductOperands.of(call, "left", right.pointer, _dot(call.op, call.target))
        extras = operands.extras
        options = GemmOptions.of(tiles_of(call.op), rows=call.share("rows"), columns=call.share("columns"))
        if packing is not None:
            sizes = [left.sizes, *[result.sizes] * (1 + len(extras))]
            strides = _all_strides(left, result, extras)
            for predicate in call.many("predicate"):
                sizes.append((*predicate.sizes, 1))
                strides.append((*predicate.strides, 1))
            merged = merged_rows(sizes, strides)
            if merged is not None:
                ((rows,), batch) = call.extents((merged,)), []
        row_strides = [
            exchanged((*batch_strides(left, result.extents[:-2]), left.strides[-2]), axis),
            *(exchanged(strides[:-1], axis) for strides in (result.strides, *(extra.strides for extra in extras))),
        ]
        steps = [strides[:-1] if batch else () for strides in row_strides]
        pitches = row_strides[0][-1], row_strides[1][-1]
        extras = tuple(
            replace(extra, strides=(*strides, extra.strides[-1]))
            for extra, strides in zip(extras, row_strides[2:], strict=True)
        )
        operands = replace(operands, extras=extras)
        by_tiles = nullcontext()
        if options.tile_products and call.runs(*self.AXES[1:]):
            known_rows, known_columns, known_depth = numbers((rows, columns, depth))
            by_tiles = tile_gemm(call.b, operands, known_rows, known_columns, known_depth, *pitches, options)
        with by_tiles as tiles:

            def product(indices: list[Index], packed: Value) -> None:
                source, target, *starts = (linear(indices, step) for step in steps)
                unpacked = self._unpacked(call)
                # A panel that is not packed yet cannot be fetched.
                prefetch = options.prefetch and unpacked is None
                given = replace(options, wants=self.wants(call, indices), unpacked=unpacked, prefetch=prefetch)
                if tiles is not None:
                    tiles.emit(Origin(source, (target, *starts), packed))
                    return
                matrices = replace(
                    operands,
                    out=result.pointer.at(target, operands.output_element),
                    inp=left.pointer.at(source, operands.dot.memory),
                    weights=packed,
                    extras=tuple(extra.moved(start) for extra, start in zip(extras, starts, strict=True)),
                )
                emit_gemm(call.b, matrices, rows, columns, depth, *pitches, options=given)

            self._phases(call, batch, product)

    def wants(self, call: KernelCall[ProductT], batch: list[Index]) -> Callable[[Index, int], Value] | None:
        """Return (first row, rows) → whether any of these rows of a batch is used; `None` if all are."""
        return None

    def _phases(
        self, call: KernelCall[ProductT], batch: Extents, product: Callable[[list[Index], Value], None]
    ) -> None:
        """Pack the right operand if it is not packed, and run `product` for each batch."""
        right, batches = call.one("right"), call.share("batches")
        if call.op.properties.get("packing") is not None:
            nest(call.b, batch, lambda indices: product(indices, right.pointer), batches)
            return
        columns, depth = call.result.extents[-1], call.one("left").extents[-1]
        scratch = call.many("scratch")[0]
        right_steps = batch_strides(right, batch)
        if not _is_batched(call.op):
            if call.runs("pack") and not _packs_by_panel(call.op, call.target):
                self._pack(call, right, 0, scratch, columns, depth, call.share("pack"))
            if call.runs(*self.AXES[1:]):
                nest(call.b, batch, lambda indices: product(indices, scratch.pointer), batches)
            return

        def both(indices: list[Index]) -> None:
            self._pack(call, right, linear(indices, right_steps), scratch, columns, depth, call.share("pack"))
            product(indices, scratch.pointer)

        nest(call.b, batch, both, batches)

    def _unpacked(self, call: KernelCall[ProductT]) -> UnpackedMatrix | None:
        """Return the right operand if its panels are packed one by one; `None` if all are packed before."""
        if not _packs_by_panel(call.op, call.target):
            return None
        right, depth, scratch = call.one("right"), call.one("left").extents[-1], call.many("scratch")[0]
        pitch, is_turned = right.strides[-2], flag(call.op.transpose_right)

        def pack(columns: Columns) -> None:
            start = columns.start * pitch if is_turned else columns.start
            self._pack(call, right, start, scratch, columns.count, depth, ALL)

        return UnpackedMatrix(right.pointer, pitch, is_turned, pack)

    def _pack(
        self,
        call: KernelCall[ProductT],
        right: Operand,
        offset: Index,
        scratch: Operand,
        columns: Index,
        depth: Index,
        share: Partition,
    ) -> None:
        pitch = right.strides[-2]
        dot, element = _dot(call.op, call.target), signless(right.element)
        tile = dot.tile(call.target)
        if isinstance(dot, DotGroupProduct):
            layout = _layout(call.op, right.shape[-2:], call.target)
            emit_packing(call.b, layout, scratch, Box(right, right.strides[-2:], offset), share)
            return
        if flag(call.op.transpose_right):
            matrix = Box(right, (pitch, 1), offset)
            emit_pack_transposed(call.b, Box(scratch, ()), matrix, columns, depth, tile=tile, share=share)
            return
        source = right.pointer.at(offset, element)
        emit_pack_panels(
            call.b, scratch.pointer, source, columns, depth, pitch, element=element, tile=tile, share=share
        )


@kernel("matmul")
class MatMulKernel(ProductKernel[MatMulOp]):
    """Products that compute all rows."""

    name = "matmul"
    EPILOGUE = True


def _dot(op: MatrixProduct, target: Target) -> DotProduct:
    """Return how a target computes the products of an instruction."""
    return dot_product(op.left, op.right, target)


def _layout(op: MatrixProduct, plain: Shape, target: Target) -> TiledLayout:
    """Return the layout in which a right matrix of shape `plain` is read."""
    dot, transposed = _dot(op, target), flag(op.transpose_right)
    interleave = dot.interleave(plain[1 if transposed else 0])
    return matrix_panels(plain, dot.tile(target).panel, interleave, transposed=transposed)


def _tile_product(op: MatrixProduct, target: Target) -> TileProduct | None:
    """Return how tile registers compute an instruction's products; `None` where they do not, as for symbolic sizes."""
    if not all(map(has_static_shape, (op.left, op.result))):
        return None
    return tile_product(_dot(op, target), shape_of(op.left)[-1], target)


def _packs_by_panel(op: MatrixProduct, target: Target) -> bool:
    """
    Whether each panel of a matrix that is not packed before the run is packed in front of its tiles, in a buffer of one
    panel that stays in the cache: if its tiles are in one block of rows, and no other thread reads the panel.
    """
    if op.properties.get("packing") is not None or _is_batched(op) or not has_static_shape(op.result):
        return False
    if tiles_of(op).get(TILE_PRODUCTS, 0) or isinstance(_dot(op, target), DotGroupProduct):
        return False
    *batch, rows = exchanged(shape_of(op.result)[:-1], _row_axis(op, False))
    is_one_block = math.prod(batch) == 1 and rows <= tiles_of(op).get("rows", UNBOUNDED)
    return is_one_block and target.policy.threads == 1


def _is_batched(op: MatrixProduct) -> bool:
    """Whether the right operand has different matrices for some batches."""
    return any(size != 1 for size in sizes_of(op.right)[:-2])


def _row_axis(op: MatrixProduct, is_packed: bool) -> int:
    """
    Return the axis of the result whose rows are multiplied together: the last but one, unless one matrix multiplies a
    batch of few rows whose sizes are known; a packed matrix multiplies all rows that are evenly spaced.
    """
    last = rank_of(op.result) - 2
    few = not _is_batched(op) and has_static_shape(op.result) and not operands_of(op, "predicate")
    return row_axis(shape_of(op.result)[:-1]) if few and not (is_packed and _is_merged(op)) else last


def _is_merged(op: MatrixProduct) -> bool:
    """
    Whether all batches are multiplied as one matrix, as far as it is known without the epilogue's extra operands.
    """
    matrices, rows = (op.left, op.result), operands_of(op, "predicate")
    sizes = [*map(sizes_of, matrices), *((*sizes_of(value), 1) for value in rows)]
    return merged_rows(sizes, [*map(strides_of, matrices), *((*strides_of(value), 1) for value in rows)]) is not None


def _all_strides(left: Operand, result: Operand, extras: Sequence[ExtraOperand]) -> list[Shape]:
    """Return the strides of left operand, result and extra operands."""
    return [left.strides, result.strides, *(extra.strides for extra in extras)]
