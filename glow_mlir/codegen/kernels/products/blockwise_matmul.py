"""The kernel of products with weights that are quantized in blocks and packed in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from glow_mlir.codegen.builder.nests import Extents, Index, collapse, linear, nest
from glow_mlir.codegen.builder.types import f32, i32
from glow_mlir.codegen.kernels.products.blockwise_tile import BlockwiseTile
from glow_mlir.codegen.kernels.products.dot_products import MULTIPLY_ADDS_F32
from glow_mlir.codegen.kernels.products.gemm import emit_panels, emit_row_tiles
from glow_mlir.codegen.kernels.products.micro_gemm import partial_accumulators
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.tile_store import ExtraKind
from glow_mlir.codegen.kernels.products.tiles import Columns, balanced, tile_for
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Tiles
from glow_mlir.codegen.selection.pack_operands import whole_constant
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.layouts import CodeCells, matrix_panels
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BYTES
from glow_mlir.dialects.element_types import signless, ui8
from glow_mlir.dialects.glow_high.blockwise import BlockwiseMatMulOp
from glow_mlir.dialects.glow_low.memory import has_unit_stride, is_dense
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import Shape, element_of, is_empty, shape_of, size_along
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@kernel("blockwise-matmul")
class BlockwiseMatMulKernel(Kernel[BlockwiseMatMulOp]):
    """
    Products of rows and constant block-quantized weights: each panel of columns is read once, for all rows.
    """

    name = "blockwise-matmul"
    AXES = ("columns",)
    EPILOGUE = True
    RUN_TIME_SIZES = True

    def accepts(self, op: BlockwiseMatMulOp) -> bool:
        if integer(op.left_bits) or is_empty(op.result) or is_empty(op.left):
            return False
        in_bytes, rows = op.plain_shape("codes")[1], all(map(has_unit_stride, (op.left, op.result)))
        return in_bytes % DOT_GROUP_BYTES == 0 and rows and (op.bias is None or is_dense(op.bias))

    def candidates(self, op: BlockwiseMatMulOp, storage: Storage, target: Target) -> Sequence[Tiles]:
        operands = (op.codes, op.scales, op.zero_points)
        known = all(value is None or whole_constant(value, storage) is not None for value in operands)
        return ({},) if known else ()

    def packed(self, op: BlockwiseMatMulOp, target: Target) -> Mapping[str, PackedForm]:
        panel, bits = tile_for(target, f32).panel, integer(op.bits)
        found = {"codes": PackedForm(CodeCells(op.plain_shape("codes"), panel, bits), ui8)}
        # For each block, the parameters of a panel's columns are adjacent.
        for name, value in (("scales", op.scales), ("zero_points", op.zero_points)):
            if value is not None:
                layout = matrix_panels(op.plain_shape(name), panel, transposed=True)
                found[name] = PackedForm(layout, element_of(value))
        return found

    def cuts(self, op: BlockwiseMatMulOp, target: Target) -> Mapping[str, int]:
        return {"columns": -(-shape_of(op.result)[-1] // tile_for(target, f32).panel)}

    def emit(self, call: KernelCall[BlockwiseMatMulOp]) -> None:
        left, result = call.one("left"), call.result
        operands = ProductOperands.of(call, "left", call.one("codes").pointer)
        strides = [left.strides[:-1], result.strides[:-1], *(extra.strides[:-1] for extra in operands.extras)]
        sizes, steps = collapse(result.sizes[:-1], strides)
        product = _Product(call, operands, call.extents(sizes), steps)
        dot_groups = call.one("codes").shape[1]
        tile, columns = tile_for(call.target, f32), size_along(result.value, -1)
        emit_panels(call.b, operands.weights, columns, dot_groups, tile, i32, product.panel, call.share("columns"))


@dataclass(frozen=True)
class _Product:
    """
    The state shared by the loops of one product: `rows` are the axes of the result but the last, merged where
    possible; `steps` are the strides along them of the left operand, the result, and each extra operand.
    """

    call: KernelCall[BlockwiseMatMulOp]
    operands: ProductOperands
    rows: Extents
    steps: Sequence[Shape]

    def panel(self, columns: Columns) -> None:
        """Multiply all rows by the columns of a panel."""
        *batch, rows = self.rows

        def matrix(indices: list[Index]) -> None:
            moved = [linear(indices, step[:-1]) for step in self.steps]
            emit_row_tiles(
                self.call.b, 0, rows, tile_for(self.call.target, f32).rows, partial(self._tile, columns, moved)
            )

        nest(self.call.b, batch, matrix)

    def _tile(self, columns: Columns, moved: Sequence[Index], row: Index, count: int) -> None:
        """Emit one tile of `count` rows."""
        call, operands, variant = self.call, self.operands, self._variant(columns, count)
        starts = [row * step[-1] + offset for step, offset in zip(self.steps, moved, strict=True)]
        arguments: dict[str, Index] = {}
        for name in ("scales", "zero_points"):
            if (value := call.maybe(name)) is not None:
                blocks = value.shape[1]
                arguments[name] = value.pointer.at(columns.start * blocks, signless(value.element))
        for number, (extra, start, step) in enumerate(zip(operands.extras, starts[2:], self.steps[2:], strict=True)):
            offset = start if extra.spread else columns.start + start
            arguments[f"extra{number}"] = extra.pointer.at(offset, extra.element)
            arguments[f"extra_step{number}"] = step[-1]
        variant.call(
            call.b,
            output=operands.out.at(columns.start + starts[1], variant.output_element),
            input=operands.inp.at(starts[0], f32),
            packed=columns.weights,
            bias=operands.bias_at(columns.start) if variant.bias else operands.out,
            blocks=self._depth // variant.block,
            input_step=self.steps[0][-1],
            output_step=self.steps[1][-1],
            columns=columns.count,
            **arguments,
        )

    @property
    def _depth(self) -> int:
        """The number of elements of a row."""
        return size_along(self.call.one("left").value, -1)

    def _variant(self, columns: Columns, count: int) -> BlockwiseTile:
        """Return the function for a tile of `count` rows."""
        call, operands, tile = self.call, self.operands, tile_for(self.call.target, f32)
        block, zero_points = integer(call.op.block), call.maybe("zero_points")
        rows = self.rows[-1]
        min_rows = balanced(rows, tile.rows)[-1][1] if isinstance(rows, int) else 1
        extras = zip(operands.extras, self.steps[2:], strict=True)
        return BlockwiseTile(
            MULTIPLY_ADDS_F32,
            tile,
            count,
            columns.vectors,
            columns.partial,
            epilogue=operands.epilogue,
            extras=tuple(ExtraKind(extra.element, step[-1] != 0, extra.spread) for extra, step in extras),
            bits=integer(call.op.bits),
            block=block,
            value_type=call.op.element,
            rest=self._depth % block,
            scale=signless(call.one("scales").element),
            zero_point=None if zero_points is None else signless(zero_points.element),
            bias=operands.bias is not None,
            ways=1 if call.target.is_strict else partial_accumulators(tile, min_rows, columns.vectors),
        )
