"""`merge-matmuls`: merge products of one matrix with several constant ones, or of several rows with one matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.constants.deferred import Joined, Stored
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, SliceOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of, size_along, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.ir.traversal import blocks, own_operations, within
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class MergeProductsOfMatrix(Pattern):
    """Merge products of one matrix with constant ones into one product, followed by a slice for each."""

    panel: int
    """Width of the panels that kernels compute; 0 to merge unconditionally."""

    @rooted
    def match_and_rewrite(self, op: MatMulOp, rewriter: Rewriter, /) -> None:
        products = rewriter.analysis(column_groups).get(op, ())
        if len(products) < 2 or not self._is_faster([size_along(product.result, -1) for product in products]):
            return
        storage = rewriter.storage
        weights = [storage.deferred(product.right) for product in products]
        biases = [None if product.bias is None else storage.deferred(product.bias) for product in products]
        columns = Joined([array for array in weights if array is not None], axis=1)
        hint = op.right.name_hint or "weights"
        bias = None
        if any(array is not None for array in biases):
            vectors = [
                Stored(np.zeros(shape_of(product.right)[1], columns.dtype)) if array is None else array
                for product, array in zip(products, biases, strict=True)
            ]
            bias = rewriter.emit.constant(Joined(vectors, axis=0), f"{hint}_bias")
        emit = rewriter.emit.at(fuse_locations(product.location for product in products))
        whole = emit(MatMulOp, op.left, rewriter.emit.constant(columns, hint), bias)
        replace_by_parts(products, whole, -1, rewriter.emit, rewriter)

    def _is_faster(self, columns: Sequence[int]) -> bool:
        """Whether matrices of these widths fill sufficiently fewer panels together."""
        if not self.panel:
            return True
        apart = sum(-(-count // self.panel) for count in columns)
        return 4 * -(-sum(columns) // self.panel) <= 3 * apart


class MergeProductsOfRows(Pattern):
    """Merge products of rows with one matrix into one product, in front of the first use of any of them."""

    @rooted
    def match_and_rewrite(self, op: MatMulOp, rewriter: Rewriter, /) -> None:
        group = rewriter.analysis(row_groups).get(op)
        if group is None:
            return
        location = fuse_locations(product.location for product in group.products)
        emit = rewriter.emit_before(group.anchor, location)
        rows = emit(ConcatOp, [product.left for product in group.products], axis=0)
        replace_by_parts(group.products, emit(MatMulOp, rows, op.right, op.bias), 0, emit, rewriter)


@dataclass(frozen=True)
class MergeMatmulsPass(PatternPass):
    """
    Merge matrix products with the same left operand and constant right ones, such as queries, keys and values of
    attention, into one product with concatenated columns and a slice for each (Glow's MergeMatMulOnLHS).

    Merging pays if narrow matrices leave panels of `panel` columns half empty: a group is merged if that saves at least
    a quarter of the panels. Wide products gain nothing, and rows of their slices, which are views, are farther apart
    (docs/glow-passes.md). With `panel` = 0 all groups are merged.

    Single rows multiplied by the same constant matrix, as in unrolled recurrent networks, become the rows of one
    product (Glow's MergeMatMulOnRHS): the matrix is read once. Products of more rows gain nothing.

    Only products of one block are merged: a branch may not need those of another.
    """

    name = "merge-matmuls"

    panel: int = 16

    def walks(self) -> tuple[Walk, ...]:
        return Walk((MergeProductsOfMatrix(self.panel),)), Walk((MergeProductsOfRows(),))


def column_groups(function: FunctionOp, storage: Storage) -> dict[Operation, list[MatMulOp]]:
    """The products of each matrix with constant ones in one block, in order, keyed by the first of them."""
    found: dict[Operation, list[MatMulOp]] = {}
    for block in blocks(function):
        groups: dict[SSAValue, list[MatMulOp]] = {}
        for op in own_operations(block):
            if isinstance(op, MatMulOp) and has_constant_matrix(op, storage):
                groups.setdefault(op.left, []).append(op)
        found.update((products[0], products) for products in groups.values())
    return found


def replace_by_parts(
    products: Sequence[MatMulOp], whole: SSAValue, axis: int, emit: Emitter, rewriter: Rewriter
) -> None:
    """Replace products by slices of the merged one along an axis, in order."""
    sizes = shape_of(whole)
    starts, ends = [0] * len(sizes), list(sizes)
    parts: list[SSAValue] = []
    for product in products:
        ends[axis] = starts[axis] + shape_of(product.result)[axis]
        part = emit.at(product.location)(SliceOp, whole, starts=starts, ends=ends)
        part.name_hint = product.result.name_hint
        parts.append(part)
        starts[axis] = ends[axis]
    for product, part in zip(products, parts, strict=True):
        rewriter.replace(product, (), [part])


def has_constant_matrix(op: MatMulOp, storage: Storage) -> bool:
    """Whether a product has a constant right matrix, a constant bias or none, and no transposed operand."""
    constants = [op.right] if op.bias is None else [op.right, op.bias]
    if rank_of(op.right) != 2 or flag(op.transpose_left) or flag(op.transpose_right):
        return False
    if element_of(op.right) != element_of(op.result):
        return False  # Narrow integers may differ in signedness between matrices.
    return all(map(storage.is_constant, constants))


@dataclass(frozen=True)
class RowGroup:
    """Products of rows with one matrix, and the insertion point of the merged product."""

    products: Sequence[MatMulOp]
    anchor: Operation


def row_groups(function: FunctionOp, storage: Storage) -> dict[Operation, RowGroup]:
    """Products of single rows in one block that can be merged, keyed by the first of them."""
    found: dict[Operation, RowGroup] = {}
    for block in blocks(function):
        found.update(_row_groups(block, storage))
    return found


def _row_groups(block: Block, storage: Storage) -> dict[Operation, RowGroup]:
    """
    Products of single rows with one constant matrix and bias in a block that can be merged.

    All rows of a group are defined before any of its results is used. Rows that are such products themselves are left
    out, so that operands and readers of a group need not move.
    """
    positions = {op: anchor for anchor, op in enumerate(own_operations(block))}
    candidates = [op for op in positions if isinstance(op, MatMulOp) and is_row_product(op, storage)]
    known = set(candidates)
    groups: dict[tuple[SSAValue, SSAValue | None], list[MatMulOp]] = {}
    for op in candidates:
        if op.left.owner not in known:
            groups.setdefault((op.right, op.bias), []).append(op)
    found: dict[Operation, RowGroup] = {}
    for products in (part for group in groups.values() for part in _joint(group, positions) if len(part) > 1):
        users = (user for product in products for user in _users(product))
        found[products[0]] = RowGroup(products, min(users, key=positions.__getitem__))
    return found


def is_row_product(op: MatMulOp, storage: Storage) -> bool:
    """Whether `op` multiplies one row by a constant matrix, and its result is used."""
    return sizes_of(op.left)[:-1] == (1,) and bool(op.result.uses) and has_constant_matrix(op, storage)


def _joint(products: Sequence[MatMulOp], positions: Mapping[Operation, int]) -> list[list[MatMulOp]]:
    """Split a group so that in each part all operands are defined before the first use."""
    parts: list[list[MatMulOp]] = []
    last, first = 0, 0
    for op in products:
        defined = max(_position(value, positions) for value in op.operands)
        used = min(positions[user] for user in _users(op))
        if parts and max(last, defined) < min(first, used):
            parts[-1].append(op)
            last, first = max(last, defined), min(first, used)
        else:
            parts.append([op])
            last, first = defined, used
    return parts


def _position(value: SSAValue, positions: Mapping[Operation, int]) -> int:
    """
    The position in the block at which a value is defined; before all operators for block arguments and outer values.
    """
    owner = value.owner
    return positions.get(owner, -1) if isinstance(owner, Operation) else -1


def _users(product: MatMulOp) -> list[Operation]:
    """The operators of the block that use a product, also inside their regions."""
    block = product.parent_block()
    assert block is not None
    users = (within(block, use.operation) for use in product.result.uses)
    return [user for user in users if user is not None]
