"""`merge-matmuls`: compute products of one matrix with several constant ones, or of several rows with one, at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.deferred import Joined
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, SliceOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import erase_dead, fuse_locations, high_functions, replace


@dataclass(frozen=True)
class MergeMatmulsPass(ModulePass):
    """
    Merge matrix products with the same left operand and constant right ones, as the queries, keys and values of
    attention are, into a product with their columns side by side and a slice for each (Glow's MergeMatMulOnLHS).

    It pays where narrow matrices fill panels of `panel` columns together that they would leave half empty alone: a
    group is merged if that saves at least a quarter of the panels. Wide products gain nothing, and the rows of their
    slices, which are views, lie farther apart (docs/glow-passes.md). With `panel` = 0 all groups are merged.

    Single rows that are multiplied by the same constant matrix, as in unrolled recurrent networks, become the rows of
    one product (Glow's MergeMatMulOnRHS), so that the matrix is read once. Products of more rows gain nothing.
    """

    name = "merge-matmuls"

    panel: int = 16

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            groups: dict[SSAValue, list[MatMulOp]] = {}
            for candidate in function.block.ops:
                if isinstance(candidate, MatMulOp) and has_constant_matrix(candidate, storage):
                    groups.setdefault(candidate.left, []).append(candidate)
            for products in groups.values():
                if len(products) > 1 and self._pays([shape_of(product.result)[-1] for product in products]):
                    merge(products, storage)
            places = {candidate: place for place, candidate in enumerate(function.block.ops)}
            for products in row_groups(function.block, places, storage):
                merge_rows(products, places, storage)
            erase_dead(function.block)

    def _pays(self, columns: Sequence[int]) -> bool:
        """Whether matrices of so many columns fill fewer panels together."""
        if not self.panel:
            return True
        apart = sum(-(-count // self.panel) for count in columns)
        return 4 * -(-sum(columns) // self.panel) <= 3 * apart


def has_constant_matrix(op: MatMulOp, storage: Storage) -> bool:
    """Whether a product has one constant matrix on the right, and a constant bias or none; nothing transposed."""
    constants = [op.right] if op.bias is None else [op.right, op.bias]
    if rank_of(op.right) != 2 or flag(op.transpose_left) or flag(op.transpose_right):
        return False
    if element_of(op.right) != element_of(op.result):
        return False  # Narrow integers, whose signs may differ from matrix to matrix.
    return all(map(storage.is_constant, constants))


def merge(products: Sequence[MatMulOp], storage: Storage) -> None:
    """Replace products of one matrix by slices of one product, in front of the first of them."""
    first = products[0]
    weights = [storage.deferred(product.right) for product in products]
    biases = [None if product.bias is None else storage.value_of(product.bias) for product in products]
    columns = Joined([array for array in weights if array is not None], axis=1)
    emit = Emitter(first, storage)
    hint = first.right.name_hint or "weights"
    bias = None
    if any(array is not None for array in biases):
        vectors = [
            np.zeros(shape_of(product.right)[1], columns.dtype) if array is None else array
            for product, array in zip(products, biases, strict=True)
        ]
        bias = emit.constant(np.concatenate(vectors), f"{hint}_bias")
    whole = emit(MatMulOp, first.left, emit.constant(columns, hint), bias)
    emit.emitted[-1].location = fuse_locations(product.location for product in products)
    outer = shape_of(whole)[:-1]
    start, parts = 0, list[SSAValue]()
    for product in products:
        end = start + shape_of(product.result)[-1]
        part = emit(SliceOp, whole, starts=(*(0 for _ in outer), start), ends=(*outer, end))
        emit.emitted[-1].location = product.location
        part.name_hint = product.result.name_hint
        parts.append(part)
        start = end
    for product, part in zip(products, parts, strict=True):
        replace(product, [part])


def row_groups(block: Block, places: Mapping[Operation, int], storage: Storage) -> list[list[MatMulOp]]:
    """
    Products of single rows with one constant matrix and bias that can be computed together.

    All rows of a group are there before any of its results is used. Rows that are such products themselves are left
    out, so that what a group reads and what reads it stays where it is.
    """
    candidates = {op for op in block.ops if isinstance(op, MatMulOp) and is_row_product(op, storage)}
    groups: dict[tuple[SSAValue, SSAValue | None], list[MatMulOp]] = {}
    for op in block.ops:
        if isinstance(op, MatMulOp) and op in candidates and op.left.owner not in candidates:
            groups.setdefault((op.right, op.bias), []).append(op)
    return [part for group in groups.values() for part in _joint(group, places) if len(part) > 1]


def is_row_product(op: MatMulOp, storage: Storage) -> bool:
    """Whether `op` multiplies one row by a constant matrix, and its result is used."""
    return shape_of(op.left)[:-1] == (1,) and bool(op.result.uses) and has_constant_matrix(op, storage)


def _joint(products: Sequence[MatMulOp], places: Mapping[Operation, int]) -> list[list[MatMulOp]]:
    """Parts of a group between whose last operand and first use there is a place for one product."""
    parts: list[list[MatMulOp]] = []
    last, first = 0, 0
    for op in products:
        defined = max(_place(value, places) for value in op.operands)
        used = min(places[use.operation] for use in op.result.uses)
        if parts and max(last, defined) < min(first, used):
            parts[-1].append(op)
            last, first = max(last, defined), min(first, used)
        else:
            parts.append([op])
            last, first = defined, used
    return parts


def _place(value: SSAValue, places: Mapping[Operation, int]) -> int:
    """Where the operator of a value stands."""
    assert isinstance(value.owner, Operation)
    return places[value.owner]


def merge_rows(products: Sequence[MatMulOp], places: Mapping[Operation, int], storage: Storage) -> None:
    """Replace products of rows with one matrix by slices of one product, in front of the first use of any of them."""
    users = (use.operation for product in products for use in product.result.uses)
    emit = Emitter(min(users, key=places.__getitem__), storage)
    first = products[0]
    rows = emit(ConcatOp, [product.left for product in products], axis=0)
    whole = emit(MatMulOp, rows, first.right, first.bias)
    location = fuse_locations(product.location for product in products)
    for op in emit.emitted:
        op.location = location
    columns = shape_of(whole)[-1]
    parts: list[SSAValue] = []
    for row, product in enumerate(products):
        part = emit(SliceOp, whole, starts=(row, 0), ends=(row + 1, columns))
        emit.emitted[-1].location = product.location
        part.name_hint = product.result.name_hint
        parts.append(part)
    for product, part in zip(products, parts, strict=True):
        replace(product, [part])
