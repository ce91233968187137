"""
Grouped matrix products: each group of rows has its own matrix, as in mixtures of experts.

Groups are consecutive, and their ends depend on data. Rows are processed in blocks that belong to one group, so that a
loop over the actual number of blocks computes little more than necessary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import minimum
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, LessOp, WhereOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.loop import Rows, Trips
from glow_mlir.dialects.glow_high.reductions import CumSumOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.builder.products import numpy_product
from glow_mlir.frontends.builder.slices import cut, iota, part_of, scalar
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import scatter_slices
from glow_mlir.frontends.torch.node import TorchNode
from glow_mlir.frontends.torch.searching import positions_among
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size

MAX_ROWS = 32
"""The maximum number of rows of a block: a compromise between rereading matrices and computing unused rows."""


@dataclass
class Groups:
    """
    Groups of `rows` rows in total, divided into at most `most` blocks of `height` rows.

    `ends` is [groups], i64. The last block of a group may be only partly used.
    """

    node: TorchNode
    ends: SSAValue
    rows: Size

    @cached_property
    def count(self) -> int:
        """The number of groups."""
        return largest(sizes_of(self.ends)[0])

    @cached_property
    def height(self) -> int:
        """The number of rows of a block: the average size of groups, rounded up to a power of two and limited."""
        average = largest(self.rows) // self.count
        return min(1 << max(average - 1, 0).bit_length(), MAX_ROWS)

    @cached_property
    def most(self) -> Size:
        """The upper bound of the number of blocks, reached if each group has a block with a single row."""
        blocks = (self.rows + self.count * (self.height - 1)) // self.height
        return min(self.rows, blocks) if isinstance(self.rows, int) and isinstance(blocks, int) else blocks

    @cached_property
    def starts(self) -> SSAValue:
        """The start of each group."""
        return self._begins(self.ends)

    @cached_property
    def block_ends(self) -> SSAValue:
        """The number of blocks up to and including each group."""
        of = self.node.formulas.of
        blocks = (of(self.ends) - of(self.starts) + (self.height - 1)) / self.height
        return self.node.emit(CumSumOp, self.node.value(blocks), axis=0)

    @cached_property
    def block_starts(self) -> SSAValue:
        """The number of blocks before each group."""
        return self._begins(self.block_ends)

    def _begins(self, ends: SSAValue) -> SSAValue:
        """The starts of consecutive ranges, given their ends."""
        node = self.node
        return node.emit(ConcatOp, [node.splat(0, i64, (1,)), cut(node, ends, {0: (0, self.count - 1)})], axis=0)

    def of(self, ends: SSAValue, positions: SSAValue) -> SSAValue:
        """The groups of positions, given the groups' ends; the last group for positions after all groups."""
        found = self.node.formulas.of(positions_among(self.node, ends, positions, right=True))
        return self.node.value(minimum(found, self.count - 1))

    def at(self, table: SSAValue, groups: SSAValue) -> SSAValue:
        """The entries of groups in a table."""
        return self.node.emit(GatherOp, table, groups, axis=0)

    @cached_property
    def of_blocks(self) -> SSAValue:
        """The group of each block."""
        return self.of(self.block_ends, iota(self.node, self.most))

    @cached_property
    def positions(self) -> SSAValue:
        """The row indices of each block, [blocks, height], including unused ones."""
        node, of = self.node, self.node.formulas.of
        before = of(iota(node, self.most)) - of(self.at(self.block_starts, self.of_blocks))
        first = node.value(of(self.at(self.starts, self.of_blocks)) + before * self.height)
        own = node.reshaped(iota(node, self.height), (1, self.height))
        return node.emit(AddOp, node.reshaped(first, (self.most, 1)), own)

    @cached_property
    def has_row(self) -> SSAValue:
        """The mask of used rows of each block, [blocks, height, 1]."""
        node = self.node
        ends = node.reshaped(self.at(self.ends, self.of_blocks), (self.most, 1))
        return node.reshaped(node.emit(LessOp, self.positions, ends), (self.most, self.height, 1))

    def blocks(self, value: SSAValue) -> SSAValue:
        """Rows arranged in blocks, [blocks, height, …]; unused rows are arbitrary."""
        last = self.node.formulas.of(scalar(self.node, self.rows)) - 1
        positions = self.node.value(minimum(self.node.formulas.of(self.positions), last))
        return self.node.emit(GatherOp, value, positions, axis=0)

    def each(self, function: Callable[..., SSAValue], *rows: SSAValue) -> SSAValue:
        """Apply a function to each block's slices of `rows`, in a loop over the actual blocks; stack the results."""
        node = self.node
        body = Body(node, [], [Rows(value) for value in rows])
        total = part_of(node, self.block_ends, self.count - 1)
        first = node.emit(LessOp, node.splat(0, i64), total)
        with node.builder.inside(body.block):
            found = function(*body.rows)
            goes_on = node.emit(LessOp, body.next_number(node), total)
        return body.emit(Trips(self.most, first), [], [Rows(found)], goes_on)[0]

    def rows_of(self, blocks: SSAValue) -> SSAValue:
        """Convert blocks back to rows; rows that are in no group are 0."""
        node, of = self.node, self.node.formulas.of
        rows, columns = iota(node, self.rows), sizes_of(blocks)[2]
        own = self.of(self.ends, rows)
        slots = of(self.at(self.block_starts, own)) * self.height + of(rows) - of(self.at(self.starts, own))
        last = of(scalar(node, self.most * self.height)) - 1
        merged = node.reshaped(blocks, (self.most * self.height, columns))
        found = node.emit(GatherOp, merged, node.value(minimum(slots, last)), axis=0)
        is_there = node.emit(LessOp, rows, part_of(node, self.ends, self.count - 1))
        zero = node.splat(0, element_of(found))
        return node.emit(WhereOp, node.reshaped(is_there, (self.rows, 1)), found, zero)


def groups_of(node: TorchNode, rows: SSAValue, ends: SSAValue) -> Groups:
    """The groups of rows with the given ends."""
    return Groups(node, node.cast(ends, i64), sizes_of(rows)[0])


def products_of_rows(node: TorchNode, rows: SSAValue, matrices: SSAValue, ends: SSAValue) -> SSAValue:
    """The product of each row of [rows, K] with the matrix of its group, in [groups, K, N]."""
    if 0 in (*sizes_of(rows), *sizes_of(matrices)):
        return node.splat(0, element_of(rows), (sizes_of(rows)[0], sizes_of(matrices)[2]))
    groups = groups_of(node, rows, ends)

    def product(block: SSAValue, group: SSAValue) -> SSAValue:
        matrix = node.emit(GatherOp, matrices, group, axis=0)
        return node.cast(numpy_product(node, block, matrix), element_of(rows))

    return groups.rows_of(groups.each(product, groups.blocks(rows), groups.of_blocks))


def products_of_groups(node: TorchNode, left: SSAValue, right: SSAValue, ends: SSAValue) -> SSAValue:
    """For each group, the sum of outer products of its rows in [rows, K] and [rows, N]: [groups, K, N]."""
    sizes = sizes_of(ends)[0], sizes_of(left)[1], sizes_of(right)[1]
    none = node.splat(0, element_of(left), sizes)
    if 0 in (*sizes_of(left), *sizes_of(right), sizes[0]):
        return none
    groups = groups_of(node, left, ends)

    def product(block: SSAValue, other: SSAValue) -> SSAValue:
        turned = node.emit(TransposeOp, block, permutation=(1, 0))
        return node.cast(numpy_product(node, turned, other), element_of(left))

    zero = node.splat(0, element_of(left))
    own = node.emit(WhereOp, groups.has_row, groups.blocks(left), zero)
    others = node.emit(WhereOp, groups.has_row, groups.blocks(right), zero)
    return scatter_slices(node, none, 0, groups.of_blocks, groups.each(product, own, others), "add")


@torch_operator("transformers.grouped_mm_fallback.default")
def grouped_product(node: TorchNode, rows: SSAValue, matrices: SSAValue, ends: SSAValue) -> SSAValue:
    """Grouped products of the library transformers, which support all element types."""
    return products_of_rows(node, rows, matrices, ends)


@torch_operator("transformers.grouped_mm_fallback_backward.default")
def grouped_product_backward(
    node: TorchNode, rows: SSAValue, matrices: SSAValue, ends: SSAValue, cotangent: SSAValue
) -> list[SSAValue]:
    """The gradients with respect to rows and matrices."""
    turned = node.emit(TransposeOp, matrices, permutation=(0, 2, 1))
    return [products_of_rows(node, cotangent, turned, ends), products_of_groups(node, rows, cotangent, ends)]


@torch_operator("_grouped_mm.default")
def grouped_mm(
    node: TorchNode,
    left: SSAValue,
    right: SSAValue,
    ends: SSAValue | None = None,
    bias: SSAValue | None = None,
    out_dtype: str | None = None,
) -> SSAValue:
    """Grouped products of rows with matrices, or of columns of one matrix with rows of another."""
    ranks = rank_of(left), rank_of(right)
    if bias is not None or ends is None or ranks not in ((2, 3), (2, 2)):
        raise node.unsupported(f"products of groups of values with {ranks[0]} and {ranks[1]} axes")
    if ranks == (2, 3):
        return node.cast(products_of_rows(node, left, right, ends), node.element)
    turned = node.emit(TransposeOp, left, permutation=(1, 0))
    return node.cast(products_of_groups(node, turned, right, ends), node.element)
