"""
The kernel of products in which each row is multiplied by one of several matrices.

    count the rows of each matrix; for each row: copy it to the rows of its matrix;
    for each matrix with rows: one product; for each row: copy its result back

Each matrix that has rows is read once, whatever the number of its rows; other matrices are not read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from glow_mlir.codegen.access import read_index
from glow_mlir.codegen.builder.types import i32
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.copies import Box, copy_box
from glow_mlir.codegen.kernels.elements.index_checks import checked
from glow_mlir.codegen.kernels.products.dot_products import DotProduct, dot_product, multiplies
from glow_mlir.codegen.kernels.products.gemm import GemmOptions, emit_gemm, product_choices, product_tiles
from glow_mlir.codegen.kernels.products.pack import emit_packing
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.selection.kernel import Buffer, Choice, Kernel, KernelCall, Operand, Tiles, tiles_of
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.layouts import grouped_panels, matrix_panels
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.tiled_layout import TiledLayout
from glow_mlir.dialects.glow_high.linear import GroupedMatMulOp
from glow_mlir.dialects.glow_low.memory import is_dense
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import Shape, element_of, has_static_shape, is_empty, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@kernel("grouped-matmul")
class GroupedMatMulKernel(Kernel[GroupedMatMulOp]):
    """
    Products of rows that are first sorted by matrix. Matrices are read in packed panels: constants and state are packed
    before the run; otherwise each matrix that has rows is packed into scratch.
    """

    name = "grouped-matmul"
    AXES = ("columns",)
    RUN_TIME_SIZES = True

    def accepts(self, op: GroupedMatMulOp) -> bool:
        able = multiplies(op, op.input, op.weights) and has_static_shape(op.weights) and is_dense(op.weights)
        return able and not is_empty(op.weights) and (op.bias is None or is_dense(op.bias))

    def candidates(self, op: GroupedMatMulOp, storage: Storage, target: Target) -> Sequence[Tiles]:
        (experts, columns, depth), rows = _sizes(op), largest(sizes_of(op.input)[0])
        # The largest and the average number of rows of a matrix.
        return product_tiles(target, _dot(op, target), rows, columns, depth, depth, -(-rows // experts))

    def choices(self, op: GroupedMatMulOp, target: Target) -> Mapping[str, Choice]:
        return product_choices(has_tile_products=False)

    def packed(self, op: GroupedMatMulOp, target: Target) -> Mapping[str, PackedForm]:
        return {"weights": PackedForm(_layout(op, target), _dot(op, target).right)}

    def scratch(self, op: GroupedMatMulOp, target: Target) -> Sequence[Buffer]:
        (experts, columns, depth), rows = _sizes(op), largest(sizes_of(op.input)[0])
        found: list[Buffer] = [
            ((experts + 1,), i32),
            ((rows,), i32),
            ((rows, depth), element_of(op.input)),
            ((rows, columns), element_of(op.result)),
        ]
        if not _is_packed(op):
            found.append((_matrix_layout(op, target).shape, element_of(op.weights)))
        return found

    def private(self, op: GroupedMatMulOp) -> Sequence[int]:
        return range(4)

    def cuts(self, op: GroupedMatMulOp, target: Target) -> Mapping[str, int]:
        _, columns, _ = _sizes(op)
        return {"columns": -(-columns // _dot(op, target).tile(target).panel)} if _is_packed(op) else {}

    def emit(self, call: KernelCall[GroupedMatMulOp]) -> None:
        groups = _Groups.of(call)
        groups.sort()
        groups.multiply()
        groups.put_back()


@dataclass(frozen=True)
class _Groups:
    """
    The rows of a call in the order of their matrices.

    `ends` has the end of the rows of each matrix, `order` the input row of each position; `rows` are the input rows in
    that order, and `products` are their results.
    """

    call: KernelCall[GroupedMatMulOp]
    ends: Operand
    order: Operand
    rows: Operand
    products: Operand

    @staticmethod
    def of(call: KernelCall[GroupedMatMulOp]) -> _Groups:
        """Return the groups in the scratch buffers of a call."""
        return _Groups(call, *call.many("scratch")[:4])

    @property
    def _count(self) -> Index:
        """The number of rows."""
        return self.call.one("input").extents[0]

    def _at(self, operand: Operand, position: Index) -> Value:
        """Return the address of an integer of a scratch buffer."""
        return operand.pointer.at(position, i32)

    def _read(self, operand: Operand, position: Index) -> Value:
        return self.call.b.index(self._at(operand, position).load(i32))

    def _write(self, operand: Operand, position: Index, value: Index) -> None:
        b = self.call.b
        self._at(operand, position).store(b.cast(b.index(value), i32))

    def _matrix_of(self, row: Value) -> Value:
        """Return the number of the matrix that multiplies a row."""
        index, weights = self.call.one("index"), self.call.op.plain_shape("weights")
        return checked(self.call, read_index(self.call.b, index, row * index.strides[0]), weights[0])

    def sort(self) -> None:
        """Copy the rows in the order of their matrices; the sort is stable."""
        call, b, experts = self.call, self.call.b, self.call.op.plain_shape("weights")[0]
        source, columns = call.one("input"), call.one("input").extents[1:]
        # The count of a matrix is stored one element further, so that prefix sums give the begin of its rows.
        with b.loop(0, experts + 1) as number:
            self._write(self.ends, number, 0)
        with b.loop(0, self._count) as row:
            following = self._matrix_of(row) + 1
            self._write(self.ends, following, self._read(self.ends, following) + 1)
        with b.loop(0, experts, carried=[b.index(0)]) as loop:
            begin = loop.values[0] + self._read(self.ends, loop.index)
            self._write(self.ends, loop.index, begin)
            loop.set(begin)
        with b.loop(0, self._count) as row:
            matrix = self._matrix_of(row)
            position = self._read(self.ends, matrix)
            self._write(self.ends, matrix, position + 1)
            self._write(self.order, position, row)
            target = Box(self.rows, self.rows.strides[1:], position * self.rows.strides[0])
            copy_box(b, columns, target, Box(source, source.strides[1:], row * source.strides[0]))

    def multiply(self) -> None:
        """Multiply the rows of each matrix that has any."""
        b, experts = self.call.b, self.call.op.plain_shape("weights")[0]
        with b.loop(0, experts, carried=[b.index(0)]) as loop:
            begin, end = loop.values[0], self._read(self.ends, loop.index)
            with b.when(begin < end):
                self._product(loop.index, begin, end - begin)
            loop.set(end)

    def _product(self, matrix: Value, begin: Value, count: Value) -> None:
        """Multiply `count` rows from `begin` on by a matrix."""
        call, dot = self.call, _dot(self.call.op, self.call.target)
        _, columns, depth = _sizes(call.op)
        operands = ProductOperands.of(call, "input", self._panels(matrix, dot), dot)
        (pitch, _), (step, _) = self.rows.strides, self.products.strides
        operands = replace(
            operands,
            out=self.products.pointer.at(begin * step, dot.accumulators),
            inp=self.rows.pointer.at(begin * pitch, dot.memory),
            bias=None if operands.bias is None else operands.bias.at(matrix * columns, dot.accumulators),
        )
        options = GemmOptions.of(tiles_of(call.op), columns=call.share("columns"))
        emit_gemm(call.b, operands, count, columns, depth, pitch, step, options=options)

    def _panels(self, matrix: Value, dot: DotProduct) -> Value:
        """Return the panels of a matrix; pack it first if it is not packed."""
        call, weights = self.call, self.call.one("weights")
        if _is_packed(call.op):
            return weights.pointer.at(matrix * math.prod(weights.shape[1:]), dot.memory)
        panels = call.many("scratch")[4]
        plain = Box(weights, weights.strides[1:], matrix * weights.strides[0])
        emit_packing(call.b, _matrix_layout(call.op, call.target), panels, plain)
        return panels.pointer

    def put_back(self) -> None:
        """Copy the results of the rows to their original positions, for the columns of this share."""
        call, b, result = self.call, self.call.b, self.call.result
        _, columns, _ = _sizes(call.op)
        panel, share = _dot(call.op, call.target).tile(call.target).panel, call.share("columns")
        first, last = share.of(-(-columns // panel))
        start = first * panel
        count = columns if share.is_all else b.min(last * panel, columns) - start
        with b.loop(0, self._count) as position:
            row = self._read(self.order, position)
            source = Box(self.products, self.products.strides[1:], position * self.products.strides[0] + start)
            target = row * result.strides[0] + start * result.strides[1]
            copy_box(b, (count,), Box(result, result.strides[1:], target), source)


def _is_packed(op: GroupedMatMulOp) -> bool:
    """Whether the matrices are packed before the run."""
    return op.properties.get("packing") is not None


def _sizes(op: GroupedMatMulOp) -> Shape:
    """Return the number of matrices, and the columns and depth of each."""
    experts, *matrix = op.plain_shape("weights")
    return (experts, *matrix) if flag(op.transpose_weights) else (experts, *matrix[::-1])


def _dot(op: GroupedMatMulOp, target: Target) -> DotProduct:
    """Return how a target computes the products of an instruction."""
    return dot_product(op.input, op.weights, target)


def _layout(op: GroupedMatMulOp, target: Target) -> TiledLayout:
    """Return the layout in which the matrices are read."""
    dot, (_, _, depth) = _dot(op, target), _sizes(op)
    panel, turned = dot.tile(target).panel, flag(op.transpose_weights)
    return grouped_panels(op.plain_shape("weights"), panel, dot.interleave(depth), transposed=turned)


def _matrix_layout(op: GroupedMatMulOp, target: Target) -> TiledLayout:
    """Return the layout in which one matrix is packed at run time."""
    dot, (_, _, depth) = _dot(op, target), _sizes(op)
    panel, turned = dot.tile(target).panel, flag(op.transpose_weights)
    return matrix_panels(op.plain_shape("weights")[1:], panel, dot.interleave(depth), transposed=turned)
