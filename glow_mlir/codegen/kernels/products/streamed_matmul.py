"""The kernel of products of few rows, or one column, with a matrix that is read once and in place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from glow_mlir.codegen.builder.nests import Extents, Index, chunks, linear, nest
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.dot_products import DotGroupProduct, DotProduct, dot_product
from glow_mlir.codegen.kernels.products.gemm import emit_blocks, emit_gemm, emit_panels, emit_row_tiles
from glow_mlir.codegen.kernels.products.micro_gemm import MAX_TERMS
from glow_mlir.codegen.kernels.products.pack_panels import emit_pack_transposed
from glow_mlir.codegen.kernels.products.product_batches import batch_strides, merged_rows, multiplies_rows
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.streamed_sums import (
    STREAMED_ROWS,
    STREAMS,
    StreamedStore,
    StreamedSums,
    vectors_of,
)
from glow_mlir.codegen.kernels.products.tile_store import ExtraKind
from glow_mlir.codegen.kernels.products.tiles import Columns, Tile
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall, Tiles, operands_of
from glow_mlir.codegen.selection.pack_before_loops import loop_around
from glow_mlir.codegen.selection.pack_operands import whole_storage
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.affine_maps import strides_over
from glow_mlir.dialects.element_types import bit_width, is_float
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import strides_of
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import Shape, element_of, sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes


@dataclass(frozen=True)
class _Form:
    """
    A product as `rows` rows of the operand `few` by the matrix of the operand `stream`, in batches of sizes `batch`.

    The matrix is [depth, columns], with strides `steps`; one of them is 1. If the product `is_turned`, the right
    operand is a column: it is the row, the left operand is the matrix, transposed, and so is the result.
    """

    few: str
    stream: str
    batch: Sizes
    rows: Size
    columns: Size
    depth: Size
    steps: tuple[int, int]

    @property
    def is_turned(self) -> bool:
        """Whether left and right operand change places."""
        return self.few == "right"

    @property
    def is_transposed(self) -> bool:
        """Whether the columns of the matrix are contiguous, rather than its rows."""
        return self.steps[1] != 1

    @staticmethod
    def of(op: MatMulOp) -> _Form | None:
        """Return the form of a product; `None` if it has none, such as one whose batches are not evenly spaced."""
        *batch, rows, columns = sizes_of(op.result)
        depth, merged = sizes_of(op.left)[-1], None
        if all(size == 1 for size in sizes_of(op.right)[:-2]):
            strides = [strides_of(op.left), strides_of(op.result), *_extra_strides(op)]
            shapes = [sizes_of(op.left), *[sizes_of(op.result)] * (len(strides) - 1)]
            merged = merged_rows(shapes, strides)
            if merged is None and columns != 1:
                return None
        if merged is not None:
            batch, rows = [], merged
        outer, inner = strides_of(op.right)[-2:]
        if flag(op.transpose_right):
            outer, inner = inner, outer
        if columns == 1 and rows != 1:
            steps = (1, strides_of(op.left)[-2])
            return _Form("right", "left", tuple(batch), 1, rows, depth, steps) if outer == 1 or depth == 1 else None
        return _Form("left", "right", tuple(batch), rows, columns, depth, (outer, inner))


def _extra_strides(op: MatMulOp) -> list[Shape]:
    """Return the strides of the extra operands of the epilogue over the axes of the result."""
    body = op.epilogue if isinstance(op, DerivedInstruction) else None
    if body is None:
        return []
    extras = [*operands_of(op, "epilogue_targets"), *operands_of(op, "epilogue_sources")]
    return [strides_over(affine, strides_of(extra)) for extra, affine in zip(extras, body.maps, strict=True)]


@kernel("matmul-streamed")
class StreamedMatMulKernel(Kernel[MatMulOp]):
    """
    Batched products of few rows, or of a single column, with matrices that are neither constants nor state: packing
    them would take longer than the product.

    Sums stay in a nearby cache while rows of the matrix pass by. A transposed matrix is packed in pieces, each of which
    is read while it is still in that cache. Sums have the same order as those of packed products.
    """

    name = "matmul-streamed"
    AXES = ("batches", "columns")
    EPILOGUE = True
    RUN_TIME_SIZES = True

    def accepts(self, op: MatMulOp) -> bool:
        return multiplies_rows(op)

    def suits(self, op: MatMulOp, target: Target) -> bool:
        dot, form = _grouped_dot(op, target), _Form.of(op)
        if isinstance(dot, DotGroupProduct) and (form is None or form.is_transposed or is_float(dot.accumulators)):
            return False
        return _dot(op, target).lanes(target) > 1

    def candidates(self, op: MatMulOp, storage: Storage, target: Target) -> Sequence[Tiles]:
        form = _Form.of(op)
        if form is None or largest(form.rows) > _most_rows(op, target) or not self.suits(op, target):
            return ()
        if largest(form.columns) < _dot(op, target).lanes(target) or whole_storage(op.right, storage) is not None:
            return ()
        if loop_around(op, op.right) is not None:  # It is packed once for all trips.
            return ()
        return ({},)

    def scratch(self, op: MatMulOp, target: Target) -> Sequence[Buffer]:
        form, dot = _form(op), _dot(op, target)
        rows, block = largest(form.rows), _block(form, dot, target)
        found: list[Buffer] = [((_copies(dot, target), rows, block), dot.accumulators)]
        if form.is_transposed:
            found.append(((_chunk(form, dot, target), block), element_of(getattr(op, form.stream))))
        return found

    def private(self, op: MatMulOp) -> Sequence[int]:
        return range(1 + _form(op).is_transposed)

    def cuts(self, op: MatMulOp, target: Target) -> Mapping[str, int]:
        form = _form(op)
        batches = math.prod(map(smallest, form.batch))
        if batches >= kernel_costs(target).parts_per_thread * target.policy.threads:
            return {"batches": math.prod(map(largest, form.batch))}
        panels = -(-largest(form.columns) // _dot(op, target).tile(target).panel)
        if form.is_transposed:
            return {"columns": panels}
        # Rows of a narrow strip of the matrix are short, and far apart.
        return {"columns": min(panels, kernel_costs(target).parts_per_thread * target.policy.threads)}

    def emit(self, call: KernelCall[MatMulOp]) -> None:
        _StreamedProduct.of(call).emit()


def _form(op: MatMulOp) -> _Form:
    """Return the form of a product that the kernel accepts."""
    form = _Form.of(op)
    assert form is not None, "the kernel accepts only products that have a form"
    return form


def _grouped_dot(op: MatMulOp, target: Target) -> DotProduct:
    """Return how a target computes the products of an instruction best; its left operand is that of few rows."""
    form = _Form.of(op)
    is_turned = form is not None and form.is_turned
    return dot_product(*((op.right, op.left) if is_turned else (op.left, op.right)), target)


def _dot(op: MatMulOp, target: Target) -> DotProduct:
    """
    Return how a target computes the products of an instruction: dot groups, unless they need the sums of columns.
    """
    dot = _grouped_dot(op, target)
    return dot.singly if dot.start else dot


def _most_rows(op: MatMulOp, target: Target) -> int:
    """Return the maximum number of rows for which streaming is faster than packing."""
    dot, costs = _grouped_dot(op, target), kernel_costs(target)
    if not isinstance(dot, DotGroupProduct):
        return costs.streamed_rows
    return costs.streamed_widened_rows if dot.start else costs.streamed_dot_group_rows


def _copies(dot: DotProduct, target: Target) -> int:
    """Return how many sums there are for each result: those of some products apart where sums have a fixed order."""
    return 2 if target.is_strict and is_float(dot.accumulators) else 1


def _block(form: _Form, dot: DotProduct, target: Target) -> int:
    """Return the maximum number of columns whose sums are computed together: whole panels."""
    panel = dot.tile(target).panel
    if form.is_transposed:
        return panel
    fitting = kernel_costs(target).streamed_sums // largest(form.rows)
    return max(1, min(fitting, largest(form.columns) + panel - 1) // panel) * panel


def _chunk(form: _Form, dot: DotProduct, target: Target) -> int:
    """Return the number of rows of a transposed matrix that are packed together."""
    fitting = kernel_costs(target).streamed_sums // dot.tile(target).panel
    return min(max(1, fitting // MAX_TERMS) * MAX_TERMS, largest(form.depth))


@dataclass(frozen=True)
class _StreamedProduct:
    """The state shared by the loops of one product; `rows`, `columns` and `depth` are those of its form."""

    call: KernelCall[MatMulOp]
    form: _Form
    dot: DotProduct
    operands: ProductOperands
    batch: Extents
    rows: Index
    columns: Index
    depth: Index

    @staticmethod
    def of(call: KernelCall[MatMulOp]) -> _StreamedProduct:
        """Return the product of a call."""
        form, dot = _form(call.op), _dot(call.op, call.target)
        operands = ProductOperands.of(call, form.few, call.one(form.stream).pointer, dot)
        sizes = call.extents((form.rows, form.columns, form.depth))
        return _StreamedProduct(call, form, dot, operands, call.extents(form.batch), *sizes)

    @property
    def _tile(self) -> Tile:
        return self.dot.tile(self.call.target)

    def emit(self) -> None:
        """Emit the loops over batches and blocks of columns."""
        call, form = self.call, self.form
        share = call.share("columns")
        block, columns = _block(form, self.dot, call.target), self.columns
        if not share.is_all and not form.is_transposed:
            columns = call.b.index(columns)  # All columns of a call are one strip, however many parts they are.

        def product(indices: list[Index]) -> None:
            emit_blocks(call.b, columns, self._tile.panel, block, partial(self._columns, indices), share)

        nest(call.b, self.batch, product, call.share("batches"))

    def _offset(self, name: str, indices: list[Index]) -> Index:
        """Return the offset of a batch in the left or right operand."""
        return linear(indices, batch_strides(self.call.one(name), self.batch)) if self.batch else 0

    def _columns(self, indices: list[Index], first: Index, columns: Index) -> None:
        """Emit the product of all rows with a block of columns."""
        b, dot, form = self.call.b, self.dot, self.form
        sums = self.call.many("scratch")[0]
        start = partial(self._bias, first)
        self._each_sum(columns, lambda at, mask: sums.pointer.at(at[1], dot.accumulators).store(start(at[0], mask)))
        source = self.operands.inp.at(self._offset(form.few, indices), dot.memory)
        matrix = self._offset(form.stream, indices) + first * form.steps[1]
        if form.is_transposed:
            self._transposed(source, matrix, columns)
        elif _copies(dot, self.call.target) == 1:
            self._streamed(sums.pointer, source, matrix, columns, self.depth)
        else:
            own = sums.pointer.at(sums.strides[0], dot.accumulators)
            with b.loop(0, self.depth, MAX_TERMS) as step:
                zero = b.constant(0.0, vector(dot.accumulators, self._tile.lanes))
                self._each_sum(columns, lambda at, _: own.at(at[1], dot.accumulators).store(zero))
                count = b.min(b.index(self.depth) - step, MAX_TERMS)
                self._streamed(own, source.at(step, dot.memory), step * form.steps[0] + matrix, columns, count)
                self._each_sum(columns, lambda at, _: self._add(sums.pointer, own, at[1]))
        self._store(indices, first, columns)

    def _each_sum(self, columns: Index, body: Callable[[tuple[Index, Index], Value | None], None]) -> None:
        """Run `body((column, offset), mask)` for each vector of sums, some of whose lanes may be no columns."""
        b, lanes, step = self.call.b, self._tile.lanes, self.call.many("scratch")[0].strides[1]
        with b.loop(0, self.rows) as row:
            offset = row * step
            bits = bit_width(self.dot.accumulators)
            vectors_of(b, columns, lanes, bits, lambda column, mask: body((column, offset + column), mask))

    def _bias(self, first: Index, column: Index, mask: Value | None) -> Value:
        """Return the first sums of a vector of columns: the bias, or zero."""
        b, element, bias = self.call.b, self.dot.accumulators, self.operands.bias
        type_ = vector(element, self._tile.lanes)
        if bias is None:
            return b.constant(0.0, type_)
        if self.form.is_turned:
            return b.splat(bias.load(element), self._tile.lanes)
        address = bias.at(first + column, element)
        return address.load(type_) if mask is None else b.load_masked(address, type_, mask)

    def _add(self, sums: Value, own: Value, offset: Index) -> None:
        """Add a vector of the sums of some products to that of all sums."""
        type_ = vector(self.dot.accumulators, self._tile.lanes)
        total, part = (address.at(offset, self.dot.accumulators) for address in (sums, own))
        total.store(total.load(type_) + part.load(type_))

    def _streamed(self, sums: Value, source: Value, matrix: Index, columns: Index, depth: Index) -> None:
        """Add the products with a matrix whose rows are contiguous."""
        b, dot, form = self.call.b, self.dot, self.form
        step, pitch = self.call.many("scratch")[0].strides[1], self.call.one(form.few).strides[-2]
        for start, stop, steps in chunks(depth, STREAMS, dot.group):
            summed = dot.singly if steps % dot.group else dot
            with b.loop(start, stop, steps) as index:

                def rows(
                    row: Index, count: int, steps: int = steps, index: Value = index, dot: DotProduct = summed
                ) -> None:
                    StreamedSums(dot, count, steps, self._tile.lanes).call(
                        b,
                        sums=sums.at(row * step, dot.accumulators),
                        input=source.at(row * pitch + index, dot.memory),
                        weights=self.operands.weights.at(index * form.steps[0] + matrix, dot.singly.right_group),
                        sums_step=step,
                        input_step=pitch,
                        weights_step=form.steps[0],
                        columns=columns,
                    )

                emit_row_tiles(b, 0, self.rows, STREAMED_ROWS, rows)

    def _transposed(self, source: Value, matrix: Index, columns: Index) -> None:
        """Add the products with a matrix whose columns are contiguous, packed in pieces."""
        b, dot, call, form = self.call.b, self.dot, self.call, self.form
        sums, packed = call.many("scratch")
        few, stream = call.one(form.few), call.one(form.stream)
        chunk = packed.shape[0]
        operands = replace(self.operands, out=sums.pointer, weights=packed.pointer, bias=None, epilogue=None, extras=())
        pitch = 0 if form.is_turned else few.strides[-2]
        with b.loop(0, self.depth, chunk) as step:
            depth = self.depth - step if isinstance(self.depth, Value) or self.depth > chunk else self.depth
            if isinstance(depth, Value):
                depth = b.min(depth, chunk)
            box = Box(stream, (form.steps[1], 1), matrix + step)
            emit_pack_transposed(b, Box(packed, ()), box, columns, depth, tile=self._tile)
            moved = replace(operands, inp=source.at(step, dot.memory))
            emit_gemm(b, moved, self.rows, columns, depth, pitch, sums.strides[1], accumulate=True)

    def _store(self, indices: list[Index], first: Index, columns: Index) -> None:
        """Apply the epilogue to the sums of a block of columns, and store them."""
        b, call, operands, tile = self.call.b, self.call, self.operands, self._tile
        result, sums, turned = call.result, call.many("scratch")[0], self.form.is_turned
        strides = [result.strides, *(extra.strides for extra in operands.extras)]
        batch = [linear(indices, step[:-2]) if self.batch else 0 for step in strides]
        kinds = tuple(ExtraKind(extra.element, extra.strides[-2] != 0, extra.spread) for extra in operands.extras)
        store = StreamedStore(self.dot, tile, 1, 1, epilogue=operands.epilogue, extras=kinds)

        def panel(part: Columns, row: Index, count: int, skipped: Index = 0) -> None:
            starts = [(row + skipped) * step[-2] + offset for step, offset in zip(strides, batch, strict=True)]
            column = part.start if turned else part.start + first
            arguments: dict[str, Index] = {}
            for number, (extra, start) in enumerate(zip(operands.extras, starts[1:], strict=True)):
                arguments[f"extra{number}"] = extra.pointer.at(start if extra.spread else start + column, extra.element)
                arguments[f"extra_step{number}"] = extra.strides[-2]
            replace(store, rows=count, vectors=part.vectors, partial=part.partial).call(
                b,
                output=operands.out.at(starts[0] + column, store.output_element),
                sums=part.weights.at(row * (1 if turned else sums.strides[1]), store.element),
                output_step=result.strides[-2],
                sums_step=1 if turned else sums.strides[1],
                columns=part.count,
                **arguments,
            )

        if turned:
            one = Columns(0, sums.pointer, 1, True, 1)
            emit_row_tiles(b, 0, columns, tile.rows, lambda row, count: panel(one, row, count, first))
            return
        emit_panels(
            *(b, sums.pointer, columns, 1, tile, self.dot.accumulators),
            lambda part: emit_row_tiles(b, 0, self.rows, tile.rows, partial(panel, part)),
        )
