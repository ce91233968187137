"""Building blocks of attention: heads that share keys, masks, score caps, and queries that see no key."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, numpy_dtype
from glow_mlir.dialects.glow_high.activations import TanhOp
from glow_mlir.dialects.glow_high.attention import AttentionOp, causal_mask
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, EqualOp, LessOrEqualOp, MulOp, WhereOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp
from glow_mlir.dialects.shapes import Shape, element_of, rank_of, size_along, sizes_of
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.builder.slices import cut, iota, scalar
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, product_of


@dataclass(frozen=True)
class Groups:
    """Groups of query heads that share a head of keys and values; the group becomes a separate axis."""

    queries: int
    keys: int

    @property
    def size(self) -> int:
        """The number of query heads in a group."""
        return self.queries // self.keys

    def split(self, node: NodeBuilder, value: SSAValue) -> SSAValue:
        """Split the heads of queries, or of their mask, into groups."""
        if self.size == 1 or rank_of(value) < 3:
            return value
        *batch, heads, rows, columns = sizes_of(value)
        parts: Shape = (1, 1) if heads == 1 else (self.keys, self.size)
        return node.emit(ReshapeOp, value, shape=(*batch, *parts, rows, columns))

    def apart(self, node: NodeBuilder, value: SSAValue) -> SSAValue:
        """Add the group's axis, of size 1, to keys or values."""
        if self.size == 1:
            return value
        batch, heads, rows, columns = sizes_of(value)
        return node.emit(ReshapeOp, value, shape=(batch, heads, 1, rows, columns))

    def joined(self, node: NodeBuilder, value: SSAValue) -> SSAValue:
        """Merge groups into heads again."""
        if self.size == 1:
            return value
        batch, _, _, rows, columns = sizes_of(value)
        return node.emit(ReshapeOp, value, shape=(batch, self.queries, rows, columns))


def split_heads(node: NodeBuilder, value: SSAValue, heads: int) -> SSAValue:
    """[batch, length, heads · elements] as [batch, heads, length, elements]."""
    batch, length, _ = sizes_of(value)
    split = node.emit(ReshapeOp, value, shape=(batch, length, heads, size_along(value, -1) // heads))
    return node.emit(TransposeOp, split, permutation=(0, 2, 1, 3))


def merged_heads(node: NodeBuilder, value: SSAValue) -> SSAValue:
    """[batch, heads, length, elements] as [batch, length, heads · elements]."""
    batch, heads, length, elements = sizes_of(value)
    rows = node.emit(TransposeOp, value, permutation=(0, 2, 1, 3))
    return node.emit(ReshapeOp, rows, shape=(batch, length, product_of((heads, elements))))


def added_to_scores(node: NodeBuilder, mask: SSAValue, query: SSAValue) -> SSAValue:
    """Convert a mask to numbers to add to the scores; false becomes minus infinity."""
    if not is_bool(element_of(mask)):
        return mask
    seen, hidden = (node.constant(number, like=query) for number in (0.0, -math.inf))
    return node.emit(WhereOp, mask, seen, hidden)


def capped_attention(
    node: NodeBuilder,
    operands: Sequence[SSAValue],
    mask: SSAValue | None,
    scale: float,
    softcap: float = 0.0,
    sink: SSAValue | None = None,
) -> SSAValue:
    """
    Attention of queries, keys and values, with scores capped to ±`softcap` before the mask is added.

    A sink, which broadcasts to [batch…, queries, 1], is the score of an additional key with value 0.
    """
    query, key, value = operands
    if not softcap and sink is None:
        return node.emit(AttentionOp, query, key, value, mask, scale=scale)
    product = node.emit(MatMulOp, query, key, transpose_right=True)
    scores = node.emit(MulOp, product, node.splat(scale / softcap if softcap else scale, product))
    if softcap:
        scores = node.emit(MulOp, node.emit(TanhOp, scores), node.splat(softcap, scores))
    if mask is not None:
        scores = node.emit(AddOp, scores, mask)
    axis, keys = rank_of(scores) - 1, sizes_of(scores)[-1]
    if sink is None:
        weights = node.emit(SoftmaxOp, scores, axis=axis)
    else:
        column = node.emit(ExpandOp, sink, shape=(*sizes_of(scores)[:-1], 1))
        weights = node.emit(SoftmaxOp, node.emit(ConcatOp, [scores, column], axis=axis), axis=axis)
        weights = cut(node, weights, {axis: (0, keys)})
    return node.emit(MatMulOp, weights, value)


def sees_nothing(node: NodeBuilder, result: SSAValue, mask: SSAValue, keys: Size, past: Size | None) -> SSAValue:
    """Whether a mask hides all of `keys` keys from a query; attention is causal if there is a `past`."""
    if not sizes_of(mask):
        mask = node.emit(ReshapeOp, mask, shape=(1,))
    if past is not None:
        mask = node.emit(AddOp, mask, added_causally(node, mask, sizes_of(result)[-2], keys, past))
    peak = node.emit(ReduceMaxOp, mask, axes=(-1,))
    return node.emit(EqualOp, peak, node.constant(-math.inf, like=mask))


def unseen_is_zero(node: NodeBuilder, result: SSAValue, mask: SSAValue, keys: Size, past: Size | None) -> SSAValue:
    """The results of attention, with 0 for queries from which the mask hides all keys; see `sees_nothing`."""
    nothing = sees_nothing(node, result, mask, keys, past)
    return node.emit(WhereOp, nothing, node.constant(0.0, like=result), result)


def added_causally(node: NodeBuilder, like: SSAValue, queries: Size, keys: Size, past: Size) -> SSAValue:
    """A mask to add to scores, so that query i sees no key after i + `past`; of the element type of `like`."""
    if isinstance(queries, int) and isinstance(keys, int) and isinstance(past, int):
        return node.constant(causal_mask(queries, keys, past, numpy_dtype(element_of(like))))
    first = node.emit(ReshapeOp, iota(node, queries), shape=(queries, 1))
    last = node.emit(AddOp, first, scalar(node, past))
    seen, hidden = (node.constant(number, like=like) for number in (0.0, -math.inf))
    return node.emit(WhereOp, node.emit(LessOrEqualOp, iota(node, keys), last), seen, hidden)
