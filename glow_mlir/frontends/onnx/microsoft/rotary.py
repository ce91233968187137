"""Rotary position embeddings of ONNX and of onnxruntime."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, WhereOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.shapes import has_one_element, rank_of, size_along, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.rotary import rotated
from glow_mlir.frontends.builder.slices import iota, part_of
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Size

COSINES, SINES = 2, 3
"""Positions of the tables, with a row for each position."""


@onnx_operator("RotaryEmbedding", domain=ONNXRUNTIME)
def rotary_embedding(node: Node) -> SSAValue:
    """Rotary embedding at the given positions, or at consecutive ones from a given position on."""
    _check(node)
    heads, length = _heads(node), _length(node)
    tables = [node.emit(GatherOp, node.input(table), _positions(node, length), axis=0) for table in (COSINES, SINES)]
    return _rotated(node, heads, *tables)


@onnx_operator("RotaryEmbedding", since=23)
def rotary_embedding_of_onnx(node: Node) -> SSAValue:
    """ONNX's: tables before positions, which may be absent; tables then have the rows of each batch."""
    node.check_rank(0, (3, 4), "values are [batch, length, heads * elements] or [batch, heads, length, elements]")
    tables = [node.input(table) for table in (1, 2)]
    if node.optional(3) is not None:
        tables = [node.emit(GatherOp, table, node.input(3), axis=0) for table in tables]
    heads = node.input()
    if node.rank() == 3:
        count = node.int("num_heads", 0)
        batch, length, width = *node.sizes()[:2], size_along(heads, 2)
        if count < 1 or width % count:
            reason = f"{node.kind}: {width} elements cannot be split into {count} heads"
            raise ModelError(reason, node=node.name, hint="num_heads divides the elements")
        heads = node.emit(ReshapeOp, heads, shape=(batch, length, count, width // count))
    turned = 2 * size_along(tables[0], -1)
    if turned > size_along(heads, -1) or sizes_of(tables[0]) != sizes_of(tables[1]):
        reason = f"{node.kind}: tables {sizes_of(tables[0])} and {sizes_of(tables[1])} do not fit {sizes_of(heads)}"
        raise ModelError(reason, node=node.name, hint="both have a column for each pair of elements that is rotated")
    return _rotated(node, heads, *tables)


def _check(node: Node, positions: int = 2) -> None:
    """Raise `ModelError` for operands of wrong ranks, and for tables of different shapes."""
    node.check_rank(0, (3, 4), "values are [batch, length, heads * elements] or [batch, heads, length, elements]")
    hint = "positions are one, or [batch, length]" if positions == 2 else "positions are [3, batch, length]"
    node.check_rank(1, (0, 1, 2) if positions == 2 else (positions,), hint)
    for table in (COSINES, SINES):
        node.check_rank(table, (2,), "tables have a row for each position")
    if node.sizes(COSINES) != node.sizes(SINES):
        reason = f"{node.kind}: cosines {node.sizes(COSINES)} do not fit sines {node.sizes(SINES)}"
        raise ModelError(reason, node=node.name, hint="each has a row for each position")


def _heads(node: Node) -> SSAValue:
    """The operand as [batch, length, heads, elements], or unchanged if it has an axis of heads."""
    if node.rank() == 4:
        return _checked(node, node.input())
    turned, width = 2 * size_along(node.input(COSINES), 1), size_along(node.input(), 2)
    heads = node.int("num_heads", 0)
    depth = width // heads if heads > 0 and node.int("rotary_embedding_dim", 0) else turned
    if depth < 1 or width % depth:
        reason = f"{node.kind}: {width} elements cannot be split into heads of {depth}"
        raise ModelError(reason, node=node.name, hint="num_heads divides the elements, or two columns do")
    batch, length, _ = node.sizes()
    return _checked(node, node.emit(ReshapeOp, node.input(), shape=(batch, length, width // depth, depth)))


def _checked(node: Node, heads: SSAValue) -> SSAValue:
    """The heads; raises `ModelError` if they have fewer elements than the tables rotate."""
    depth, turned = size_along(heads, -1), 2 * size_along(node.input(COSINES), 1)
    if turned > depth:
        raise ModelError(f"{node.kind}: {turned} elements of heads of {depth} cannot be rotated", node=node.name)
    return heads


def _length(node: Node) -> Size:
    return node.sizes()[1 if node.rank() == 3 else 2]


def _positions(node: Node, length: Size) -> SSAValue:
    """The rows of the tables to use: [batch, length], or [1, length] if only the first one is given."""
    given = node.input(1)
    if rank_of(given) < 2:
        if not has_one_element(given):
            raise ModelError(f"{node.kind}: positions {sizes_of(given)} are not one", node=node.name)
        steps = node.emit(AddOp, iota(node, length), given)
        return node.emit(ReshapeOp, steps, shape=(1, length))
    return given


def _rotated(node: Node, heads: SSAValue, cosines: SSAValue, sines: SSAValue) -> SSAValue:
    """Rotate heads by angles [batch, length, pairs]; the result has the operand's shape."""
    is_last = node.rank() == 3
    batch, length, pairs = sizes_of(cosines)
    shape = (batch, length, 1, pairs) if is_last else (batch, 1, length, pairs)
    tables = (node.emit(ReshapeOp, table, shape=shape) for table in (cosines, sines))
    result = rotated(node, heads, *tables, is_interleaved=node.flag("interleaved"))
    return node.emit(ReshapeOp, result, shape=node.sizes()) if is_last else result


STREAMS = 3
"""The number of positions of a token: in time, height and width."""


@onnx_operator("MRotaryEmbedding", domain=ONNXRUNTIME)
def multimodal_rotary_embedding(node: Node) -> SSAValue:
    """Rotary embedding with three positions for each token; each pair of elements uses one of them."""
    _check(node, 3)
    heads, pairs = _heads(node), size_along(node.input(COSINES), 1)
    owners = _owners(node, pairs)
    if node.sizes(1)[0] != STREAMS:
        hint = "positions are [3, batch, length]"
        raise ModelError(f"{node.kind}: positions are {node.sizes(1)}", node=node.name, hint=hint)
    tables: list[SSAValue] = []
    for table in (COSINES, SINES):
        rows = node.emit(GatherOp, node.input(table), node.input(1), axis=0)
        chosen, *others = (part_of(node, rows, stream) for stream in range(STREAMS))
        for stream, other in enumerate(others, 1):
            chosen = node.emit(WhereOp, node.constant(owners == stream), other, chosen)
        tables.append(chosen)
    return _rotated(node, heads, *tables)


def _owners(node: Node, pairs: int) -> np.ndarray:
    """For each pair, the stream whose position it uses; raises `ModelError` for invalid sections."""
    sections = node.ints("mrope_section")
    if len(sections) != STREAMS or min(sections) < 0 or sum(sections) != pairs:
        hint = "mrope_section has a number for time, height and width, which together are the columns of the tables"
        raise ModelError(f"{node.kind}: sections {list(sections)} of {pairs} columns", node=node.name, hint=hint)
    if not node.flag("mrope_layout"):
        return np.repeat(np.arange(STREAMS), sections)
    owners = np.zeros(pairs, np.int64)
    for stream in range(1, STREAMS):
        owners[stream : sections[stream] * STREAMS : STREAMS] = stream
    return owners
