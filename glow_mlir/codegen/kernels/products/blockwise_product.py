"""Kernels of products with weights that are quantized in blocks and packed in memory, for any left operand."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic

from typing_extensions import TypeVar

from glow_mlir.codegen.builder.amx import MAX_ROWS, configured
from glow_mlir.codegen.builder.nests import Extents, Index, collapse, linear, nest
from glow_mlir.codegen.builder.types import i32
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.blockwise_strip import BlockwiseStrip, UnpackedPanel
from glow_mlir.codegen.kernels.products.blockwise_tile import BlockwiseTile
from glow_mlir.codegen.kernels.products.gemm import TILE_PRODUCTS, emit_panels, emit_row_tiles
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.tile_store import ExtraKind
from glow_mlir.codegen.kernels.products.tiles import Columns, Tile
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand, Tiles, tiles_of
from glow_mlir.codegen.selection.pack_operands import whole_constant
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.constants.layouts import CodeCells, matrix_panels
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.sub_byte_values import unit_values
from glow_mlir.dialects.element_types import signless, ui8
from glow_mlir.dialects.glow_high.blockwise import FACTORS, PARAMETERS, BlockwiseMatMulIntegerOp, BlockwiseMatMulOp
from glow_mlir.dialects.glow_low.memory import has_unit_stride, is_dense
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.shapes import Shape, element_of, is_empty, shape_of, size_along
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

TileT = TypeVar("TileT", bound=BlockwiseTile, default=Any)
"""A micro-kernel."""

ProductT = TypeVar("ProductT", bound=BlockwiseMatMulOp | BlockwiseMatMulIntegerOp, default=Any)


class BlockwiseProductKernel(Kernel[ProductT], Generic[ProductT]):
    """
    Products of rows and constant block-quantized weights: each panel of columns is read once, for all rows.
    """

    AXES = ("columns",)
    EPILOGUE = True
    RUN_TIME_SIZES = True

    ROWS: ClassVar[Mapping[str, str]]
    """The operands with a row for each row of the result → the names of their addresses in the micro-kernel."""

    @abstractmethod
    def tile(self, op: ProductT, target: Target) -> Tile:
        """The tile of a target: its columns are those of a panel."""

    @abstractmethod
    def micro_kernel(self, op: ProductT, target: Target) -> BlockwiseTile:
        """The micro-kernel of whole tiles, with what it does not share with those of other kernels."""

    def accepts(self, op: ProductT) -> bool:
        if is_empty(op.result) or is_empty(op.left):
            return False
        values = [getattr(op, name) for name in (*self.ROWS, "result")]
        rows = all(has_unit_stride(value) for value in values if value is not None)
        bits, block = integer(op.bits), integer(op.block)
        unit = unit_values(bits)
        whole = op.plain_shape("codes")[1] % (unit * bits // 8) == 0 and block % unit == 0
        return whole and rows and (op.bias is None or is_dense(op.bias))

    def candidates(self, op: ProductT, storage: Storage, target: Target) -> Sequence[Tiles]:
        operands = (op.codes, *op.parameters().values())
        known = all(whole_constant(value, storage) is not None for value in operands)
        return ({},) if known else ()

    def packed(self, op: ProductT, target: Target) -> Mapping[str, PackedForm]:
        panel, bits = self.tile(op, target).panel, integer(op.bits)
        found = {"codes": PackedForm(CodeCells(op.plain_shape("codes"), panel, bits), ui8)}
        # For each block, the parameters of a panel's columns are adjacent.
        for name, value in op.parameters().items():
            layout = matrix_panels(op.plain_shape(name), panel, transposed=True)
            found[name] = PackedForm(layout, element_of(value))
        return found

    def cuts(self, op: ProductT, target: Target) -> Mapping[str, int]:
        return {"columns": -(-shape_of(op.result)[-1] // self.tile(op, target).panel)}

    def emit(self, call: KernelCall[ProductT]) -> None:
        result = call.result
        inputs = {self.ROWS[name]: found for name in self.ROWS if (found := call.maybe(name)) is not None}
        operands = ProductOperands.of(call, "left", call.one("codes").pointer)
        strides = [each.strides[:-1] for each in (result, *inputs.values(), *operands.extras)]
        sizes, steps = collapse(result.sizes[:-1], strides)
        product = _Product(call, self, operands, inputs, call.extents(sizes), steps)
        strip, rows = self.strip(call.op, call.target), product.rows[-1]
        if strip is None or not tiles_of(call.op).get(TILE_PRODUCTS, 0):
            product.panels(product.panel)
            return
        by_strips = rows >= kernel_costs(call.target).blockwise_strips * MAX_ROWS
        if by_strips is not False:
            with call.b.when(by_strips), configured(call.b, product.variant(strip).sizes()):
                product.by_strips(strip)
        if by_strips is not True:
            with call.b.when(True if by_strips is False else ~by_strips):
                product.panels(product.panel)

    def strip(self, op: ProductT, target: Target) -> BlockwiseStrip | None:
        """The micro-kernel of strips in tile registers, like `micro_kernel`; `None` if there is none."""
        return None


@dataclass(frozen=True)
class _Product:
    """
    The state shared by the loops of one product: `rows` are the axes of the result but the last, merged where
    possible; `steps` are the strides along them of the result, each of the `inputs`, and each extra operand.
    """

    call: KernelCall
    kernel: BlockwiseProductKernel
    operands: ProductOperands
    inputs: Mapping[str, Operand]
    rows: Extents
    steps: Sequence[Shape]

    def panels(self, body: Callable[[Columns], None]) -> None:
        """Run `body` for each panel of columns."""
        call, columns = self.call, size_along(self.call.result.value, -1)
        tile, dot_groups = self.kernel.tile(call.op, call.target), call.one("codes").shape[1]
        emit_panels(call.b, self.operands.weights, columns, dot_groups, tile, i32, body, call.share("columns"))

    def panel(self, columns: Columns, first: Index = 0) -> None:
        """Multiply all rows of each batch, from a first one on, by the columns of a panel."""
        *batch, rows = self.rows

        def matrix(indices: list[Index]) -> None:
            self._tiles(columns, [linear(indices, step[:-1]) for step in self.steps], first, rows - first)

        nest(self.call.b, batch, matrix)

    def by_strips(self, strip: BlockwiseStrip) -> None:
        """Multiply strips of rows by all panels in tile registers, then the rows that fill no strip."""
        b, rows = self.call.b, self.rows[-1]
        whole, together = rows // MAX_ROWS, kernel_costs(b.target).blockwise_strips_together
        with b.loop(0, whole, together) as first:
            count = b.min(whole - first, together)
            self.panels(lambda columns: self._strips(strip, columns, first, count))
        start = whole * MAX_ROWS
        if rows - start != 0:
            with b.when(rows - start > 0):
                self.panels(lambda columns: self.panel(columns, start))

    def _strips(self, strip: BlockwiseStrip, columns: Columns, first: Index, count: Index) -> None:
        """Multiply some strips of each batch, from a first one on, by the columns of a panel."""
        call, b = self.call, self.call.b
        weights, tile = columns.weights, strip.tile
        if scratch := call.many("scratch"):
            weights = scratch[0].pointer
            variant = self.variant(strip)
            values, dot_groups = variant.packed_values, call.one("codes").shape[1]
            unpacked = UnpackedPanel(values, tile.panel, tile.lanes, variant.unsigned)
            unpacked.call(b, packed=columns.weights, unpacked=weights, units=dot_groups // values.words)
        vectors: list[Columns] = []
        for number in range(columns.vectors):
            skipped, is_last = number * tile.lanes, number == columns.vectors - 1
            width = columns.count - skipped if is_last else tile.lanes
            vectors.append(Columns(columns.start, weights.at(skipped, i32), 1, columns.partial and is_last, width))

        def matrix(indices: list[Index]) -> None:
            moved = [linear(indices, step[:-1]) for step in self.steps]
            with b.loop(0, count) as index:
                for number, vector in enumerate(vectors):
                    row = (first + index) * MAX_ROWS
                    self._tile(vector, moved, row, MAX_ROWS, strip, number * tile.lanes)

        nest(b, self.rows[:-1], matrix)

    def _tiles(self, columns: Columns, moved: Sequence[Index], first: Index, rows: Index) -> None:
        """Emit the tiles of some rows."""
        whole = self.kernel.micro_kernel(self.call.op, self.call.target)

        def tile(row: Index, count: int) -> None:
            self._tile(columns, moved, row, count, whole)

        emit_row_tiles(self.call.b, first, rows, whole.tile.rows, tile)

    def _tile(
        self,
        columns: Columns,
        moved: Sequence[Index],
        row: Index,
        count: int,
        whole: BlockwiseTile,
        skipped: int = 0,
    ) -> None:
        """Emit one tile of `count` rows, of the columns of a panel behind the first `skipped` ones."""
        call, operands = self.call, self.operands
        variant = replace(self.variant(whole), rows=count, vectors=columns.vectors, partial=columns.partial)
        starts = [row * step[-1] + offset for step, offset in zip(self.steps, moved, strict=True)]
        column = columns.start + skipped
        arguments: dict[str, Index] = {}
        for name in PARAMETERS:
            if (value := call.maybe(name)) is not None:
                start = columns.start * value.shape[1] + skipped
                arguments[name] = value.pointer.at(start, signless(value.element))
        for number, (name, found) in enumerate(self.inputs.items(), 1):
            arguments[name] = found.pointer.at(starts[number], signless(found.element))
            arguments[f"{name}_step"] = self.steps[number][-1]
        first = 1 + len(self.inputs)
        extras = zip(operands.extras, starts[first:], self.steps[first:], strict=True)
        for number, (extra, start, step) in enumerate(extras):
            offset = start if extra.spread else column + start
            arguments[f"extra{number}"] = extra.pointer.at(offset, extra.element)
            arguments[f"extra_step{number}"] = step[-1]
        variant.call(
            call.b,
            output=operands.out.at(column + starts[0], variant.output_element),
            packed=columns.weights,
            bias=operands.bias_at(column) if variant.bias else operands.out,
            blocks=self._depth // variant.block,
            output_step=self.steps[0][-1],
            columns=columns.count,
            **arguments,
        )

    @property
    def _depth(self) -> int:
        """The number of elements of a row."""
        return size_along(self.call.one("left").value, -1)

    def variant(self, whole: TileT) -> TileT:
        """A micro-kernel for these operands."""
        call, operands = self.call, self.operands
        extras = zip(operands.extras, self.steps[1 + len(self.inputs) :], strict=True)
        given = {name: found for name in PARAMETERS if (found := call.maybe(name)) is not None}
        elements = {name: found.element for name, found in given.items()}
        spans = [
            given[name].shape[1] // given[factors].shape[1] if factors in given else 0
            for name, factors in FACTORS.items()
        ]
        return replace(
            whole,
            epilogue=operands.epilogue,
            extras=tuple(ExtraKind(extra.element, step[-1] != 0, extra.spread) for extra, step in extras),
            bits=integer(call.op.bits),
            block=integer(call.op.block),
            rest=self._depth % integer(call.op.block),
            scales=elements["scales"],
            zero_points=elements.get("zero_points"),
            minima=elements.get("minima"),
            scale_factors=elements.get("scale_factors"),
            minimum_factors=elements.get("minimum_factors"),
            spans=tuple(spans),
            table=ints(call.op.table),
            bias=operands.bias is not None,
        )
