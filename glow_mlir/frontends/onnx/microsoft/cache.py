"""onnxruntime's caches of keys and values, in which the number of keys of each sequence depends on data."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.cache import ExtendCacheOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    DivOp,
    EqualOp,
    LessOp,
    MaxOp,
    MinOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.indexing import GatherNDOp, ScatterNDOp
from glow_mlir.dialects.properties import size_of_property
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.slices import bound_number, cut, iota, leading, scalar
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size


def known_size(node: Node, position: int, role: str) -> Size:
    """The size given by the operand at a position; raises `ModelError` unless it is a single number."""
    sizes = node.known_sizes(position, role)
    if len(sizes) != 1:
        raise ModelError(f"{role} of {node.kind} is {list(sizes)}", node=node.name, hint="it is one number")
    return sizes[0]


@dataclass(frozen=True)
class Lengths:
    """The number of keys of each sequence after a call, and the positions of its new keys."""

    ends: SSAValue
    """[batch, 1]: the number of keys of each sequence."""
    positions: SSAValue
    """[batch, length]: the positions of the new keys, including padding after the last one."""
    total: Size
    """The upper bound of the number of keys of the longest sequence."""
    is_first: bool | None
    """Whether there are no earlier keys; `None` if it is known at run time only."""
    starts: SSAValue
    """[batch, 1]: the number of keys of each sequence before the call."""

    @staticmethod
    def of(node: Node, last: SSAValue, total: Size, length: Size, valid: SSAValue | None) -> Lengths:
        """
        The lengths for a call with `length` new keys, the last of which are at positions `last`.

        `valid` is the number of new keys in each sequence. Without it, sequences are padded at the end in a first call,
        and complete in a later one.
        """
        (batch,) = sizes_of(last)
        ends = node.emit(AddOp, node.cast(last, i64), node.constant(np.array(1, np.int64)))
        ends = node.emit(ReshapeOp, ends, shape=(batch, 1))
        steps = node.emit(ReshapeOp, iota(node, length), shape=(1, length))
        is_first = _are_equal(total, length) if valid is None else False
        if valid is not None:
            new = node.emit(ReshapeOp, node.cast(valid, i64), shape=(batch, 1))
        else:
            new = scalar(node, length)
        starts = node.emit(SubOp, ends, new)
        if is_first is not False:
            zeros = node.emit(SubOp, ends, ends)
            is_none = node.emit(EqualOp, scalar(node, total), scalar(node, length))
            starts = zeros if is_first else node.emit(WhereOp, is_none, zeros, starts)
        return Lengths(ends, node.emit(AddOp, starts, steps), total, is_first, starts)


def _are_equal(one: Size, other: Size) -> bool | None:
    """Whether two sizes are equal; `None` if it is not known."""
    if one == other:
        return True
    return False if isinstance(one, int) and isinstance(other, int) else None


def kept(node: Node, past: SSAValue | None, new: SSAValue, lengths: Lengths, result: int) -> SSAValue:
    """
    Insert new keys or values into earlier ones [batch, heads, length, elements] at their positions.

    The capacity grows only if it is too small; rows after the keys of a sequence are then 0. Rows after them are never
    read in any table. A symbol for the size is named after the result at position `result`. Even a single sequence may
    be shorter than `total`, as its mask says: only data tells where its new keys go.
    """
    if past is None:
        return new
    batch, heads, length, _ = sizes_of(new)
    before = sizes_of(past)[2]
    capacity = _capacity(node, before, length, lengths.total, result)
    if capacity == before:
        return node.emit(ScatterNDOp, past, indices_of(node, batch, heads, lengths.positions), new)
    starts, ends = (node.emit(ReshapeOp, number, shape=(batch,)) for number in (lengths.starts, lengths.ends))
    return node.emit(ExtendCacheOp, past, new, starts, ends, length=size_of_property(capacity))


def ends_in_zeros(table: SSAValue) -> bool:
    """Whether rows after the keys of each sequence of a table are known to be 0."""
    return isinstance(table.owner, ExtendCacheOp)


def _capacity(node: Node, before: Size, length: Size, total: Size, result: int) -> Size:
    """The capacity for keys: unchanged if it suffices."""
    if isinstance(before, int) and isinstance(total, int):
        return max(before, total)
    if total == before + length:
        return total
    if largest(total) <= before if isinstance(before, int) else total == before:
        return before
    most = node.emit(MaxOp, scalar(node, before), scalar(node, total))
    return bound_number(node, most, largest(before + length), result)


def read(node: Node, table: SSAValue, total: Size) -> SSAValue:
    """The first `total` keys or values of a table."""
    size = sizes_of(table)[2]
    if smallest(size - total) >= 0:
        return cut(node, table, {2: (0, total)})
    return leading(node, table, 2, total)


# ---- the last keys only


@dataclass(frozen=True)
class Window:
    """
    Tables [batch, heads, capacity, elements] whose first rows are the last keys of each sequence, in order.

    When a table is full, keys are dropped such that `reach` of them remain after the next one.
    """

    capacity: int
    reach: int
    lengths: Lengths

    def seen(self, node: Node) -> tuple[SSAValue, SSAValue]:
        """The positions [batch, keys] of the table's keys followed by the new ones, and the mask of valid keys."""
        batch, _ = sizes_of(self.lengths.positions)
        rows = node.emit(ReshapeOp, iota(node, self.capacity), shape=(1, self.capacity))
        held = self._held(node, self.lengths.starts)
        earlier = node.emit(AddOp, node.emit(SubOp, self.lengths.starts, held), rows)
        is_there = node.emit(LessOp, rows, held)
        is_new = node.emit(LessOp, self.lengths.positions, self.lengths.ends)
        positions = [
            node.emit(ExpandOp, part, shape=(batch, sizes_of(part)[1])) for part in (earlier, self.lengths.positions)
        ]
        return node.emit(ConcatOp, positions, axis=1), node.emit(ConcatOp, [is_there, is_new], axis=1)

    def moved(self, node: Node, both: SSAValue) -> SSAValue:
        """The table after a call, from the rows of the table before it followed by the new ones."""
        batch, heads, _, _ = sizes_of(both)
        starts, ends, capacity = self.lengths.starts, self.lengths.ends, self.capacity
        first = node.emit(SubOp, ends, self._held(node, ends))
        positions = node.emit(AddOp, first, node.emit(ReshapeOp, iota(node, capacity), shape=(1, capacity)))
        begin = node.emit(SubOp, starts, self._held(node, starts))
        behind = node.emit(SubOp, starts, node.constant(np.array(capacity, np.int64)))
        rows = node.emit(SubOp, positions, node.emit(WhereOp, node.emit(LessOp, positions, starts), begin, behind))
        # Rows after the last key are never read.
        rows = node.emit(MinOp, rows, scalar(node, sizes_of(both)[2] - 1))
        return node.emit(GatherNDOp, both, indices_of(node, batch, heads, rows))

    def _held(self, node: Node, count: SSAValue) -> SSAValue:
        """The number of keys that the table holds of `count` keys in total."""
        step = self.capacity - self.reach + 1
        over = node.emit(SubOp, count, node.constant(np.array(self.capacity - step + 1, np.int64)))
        parts = node.emit(DivOp, node.emit(MaxOp, over, scalar(node, 0)), scalar(node, step))
        return node.emit(SubOp, count, node.emit(MulOp, parts, scalar(node, step)))


def indices_of(node: Node, batch: Size | SSAValue, heads: Size, rows: SSAValue) -> SSAValue:
    """
    Indices of rows [batch, length] for each head, into a table [batch, heads, keys, elements].

    `batch` is the number of sequences, or has the sequences [batch, length] of the rows.
    """
    own, length = sizes_of(rows)
    if isinstance(batch, SSAValue):
        count, sequences = sizes_of(batch)[0], node.emit(ReshapeOp, batch, shape=(sizes_of(batch)[0], 1, length, 1))
    else:
        count, sequences = batch, node.emit(ReshapeOp, iota(node, batch), shape=(batch, 1, 1, 1))
    axes = [
        sequences,
        node.emit(ReshapeOp, iota(node, heads), shape=(1, heads, 1, 1)),
        node.emit(ReshapeOp, rows, shape=(own, 1, length, 1)),
    ]
    shape = (count, heads, length, 1)
    return node.emit(ConcatOp, [node.emit(ExpandOp, axis, shape=shape) for axis in axes], axis=3)
