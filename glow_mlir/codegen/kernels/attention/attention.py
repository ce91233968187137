"""
The kernel of attention: scores never leave the cache.

    for each batch { pack keys and values; for each block of queries { scores; exponentials; means of the values } }

The scores of a block of queries fit in the L1 cache. Exponentials replace the scores in place. The means are scaled by
the reciprocals of the sums when they are stored. Where there are few queries, nothing is packed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.ir import Attribute, Block

from glow_mlir.codegen.bodies import Epilogue, ExtraOperand
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Extents, Index, chunks, linear, product, steps_of
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.attention.attention_in_place import InPlace, Rows
from glow_mlir.codegen.kernels.attention.score_lines import ScoreLines
from glow_mlir.codegen.kernels.products.dot_products import multiply_adds
from glow_mlir.codegen.kernels.products.gemm import GemmOptions, emit_gemm, emit_panels
from glow_mlir.codegen.kernels.products.pack_panels import emit_pack_panels, emit_pack_transposed
from glow_mlir.codegen.kernels.products.product_batches import batch_strides
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.tiles import Columns, Tile, balanced, tile_for
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall, Operand, operands_of
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.element_types import byte_width, is_float
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_low.body import YieldOp
from glow_mlir.dialects.glow_low.memory import has_unit_stride
from glow_mlir.dialects.properties import flag, number, size
from glow_mlir.dialects.shapes import Shape, element_of, is_empty, largest_shape, shape_of, sizes_of
from glow_mlir.dialects.sizes import smallest
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size

MATRICES = ("query", "key", "value", "result")


@dataclass(frozen=True)
class Plan:
    """Sizes and choices for one attention instruction on a target."""

    element: Attribute
    tile: Tile
    queries: int
    """The largest number of queries."""
    keys: int
    """The largest number of keys."""
    depth: int
    width: int
    """The number of elements of a value."""
    block: int
    """The largest number of queries in a block."""
    min_keys: int
    capacity: int
    """The number of scores of a block that fit in half of the L1 cache."""
    scale: float
    past: Size | None
    """The number of keys before the first query, for causal attention."""
    in_place: bool | None
    """Whether keys and values are read in place, unpacked; `None` if this is decided at run time."""
    in_place_width: int
    """The number of lanes of the vectors that read keys and values in place."""

    @staticmethod
    def of(op: AttentionOp, target: Target) -> Plan:
        """Return the plan for an instruction."""
        query, key, value = map(largest_shape, (op.query, op.key, op.value))
        element = element_of(op.query)
        tile, costs = tile_for(target, element), kernel_costs(target)
        min_queries, min_keys = (smallest(sizes_of(matrix)[-2]) for matrix in (op.query, op.key))
        capacity = target.l1_bytes // 2 // byte_width(element)
        fitting_queries = capacity // max(1, min_keys)
        is_small = [queries <= costs.unpacked_queries for queries in (query[-2], min_queries)]
        return Plan(
            element,
            tile,
            queries=query[-2],
            keys=key[-2],
            depth=query[-1],
            width=value[-1],
            block=min(max(2 * tile.rows, fitting_queries), query[-2]),
            min_keys=min_keys,
            capacity=capacity,
            scale=float(number(op.scale)),
            past=size(op.past) if flag(op.causal) else None,
            in_place=is_small[0] if is_small[0] == is_small[1] else None,
            in_place_width=tile.lanes * costs.independent_vectors,
        )

    @property
    def value_tile(self) -> Tile:
        """The tile for the means of the values, no wider than a value."""
        return self._no_wider(self.width)

    @property
    def key_tile(self) -> Tile:
        """The tile for the scores, no wider than the keys."""
        return self._no_wider(self.keys)

    def _no_wider(self, columns: int) -> Tile:
        return dataclasses.replace(self.tile, vectors=min(self.tile.vectors, steps_of(columns, self.tile.lanes)))

    @property
    def scores(self) -> Shape:
        """The shape of the scores of a block, with each row padded to whole vectors."""
        lanes = self.tile.lanes
        pitch = -(-self.keys // lanes) * lanes
        if self.keys == self.min_keys:
            return self.block, pitch
        return (min(self.block * pitch, max(2 * self.tile.rows * pitch, self.capacity)),)

    @property
    def scratch(self) -> dict[str, Shape]:
        """Shapes of the scratch buffers."""
        shapes: dict[str, Shape] = {"scores": self.scores, "factors": (self.block,)}
        if self.in_place:
            return shapes
        panel, value_panel = self.key_tile.panel, self.value_tile.panel
        shapes["keys"] = (-(-self.keys // panel), self.depth, panel)
        shapes["values"] = (-(-self.width // value_panel), self.keys, value_panel)
        if self.scale != 1:
            shapes["queries"] = (self.block, self.depth)
        return shapes


@kernel("attention")
class AttentionKernel(Kernel[AttentionOp]):
    """Attention of f32 or f64 with dense rows."""

    name = "attention"
    AXES = ("batches",)
    RUN_TIME_SIZES = True

    def accepts(self, op: AttentionOp) -> bool:
        matrices, mask, element = (op.query, op.key, op.value, op.result), op.mask, element_of(op.query)
        wide = is_float(element) and byte_width(element) >= 4
        filled = all(not is_empty(matrix) for matrix in matrices)
        rows = [*matrices] if mask is None or not sizes_of(mask) else [*matrices, mask]
        known = all(isinstance(sizes_of(matrix)[-1], int) for matrix in matrices)
        return wide and filled and known and all(map(has_unit_stride, rows))

    def scratch(self, op: AttentionOp, target: Target) -> Sequence[Buffer]:
        element = element_of(op.query)
        return [(shape, element) for shape in Plan.of(op, target).scratch.values()]

    def cuts(self, op: AttentionOp, target: Target) -> Mapping[str, int]:
        return {"batches": math.prod(shape_of(op.result)[:-2])}

    def private(self, op: AttentionOp) -> Sequence[int]:
        return range(len(operands_of(op, "scratch")))

    def emit(self, call: KernelCall[AttentionOp]) -> None:
        plan = Plan.of(call.op, call.target)
        batch = call.result.extents[:-2]
        scratch = dict(zip(plan.scratch, call.many("scratch"), strict=True))
        bounds = call.share("batches").of(product(batch))
        counts = call.one("query").extents[-2], call.one("key").extents[-2]
        past = None if plan.past is None else call.extents((plan.past,))[0]
        with call.b.loop(*bounds) as index:
            indices = _unflatten(index, batch)
            matrices = {name: _moved(call.one(name), indices, batch) for name in MATRICES}
            mask = call.maybe("mask")
            extra = None if mask is None else _extra(mask).moved(linear(indices, batch_strides(mask, batch)))
            _Head(call.b, plan, *counts, past, matrices, extra, scratch).emit()


def _unflatten(position: Value, sizes: Extents) -> list[Index]:
    """Convert a position in row-major order to one index per axis."""
    indices: list[Index] = []
    rest: Index = position
    for axis in range(len(sizes) - 1, -1, -1):
        size = sizes[axis]
        if size == 1:
            indices.append(0)
        elif all(other == 1 for other in sizes[:axis]):
            indices.append(rest)
        else:
            indices.append(rest % size)
            rest = rest // size
    return indices[::-1]


def _moved(operand: Operand, indices: list[Index], batch: Extents) -> Operand:
    """Return the operand with its pointer moved to the matrix of one batch."""
    offset = linear(indices, batch_strides(operand, batch))
    return dataclasses.replace(operand, pointer=operand.pointer.at(offset, operand.element))


def _extra(mask: Operand) -> ExtraOperand:
    """Return the mask as an operand over queries and keys; the stride of a broadcast axis is 0."""
    steps = (0 if size == 1 else stride for size, stride in zip(mask.sizes, mask.strides, strict=True))
    return ExtraOperand(mask.pointer, mask.element, (0, 0, *steps)[-2:])


@dataclass(frozen=True)
class _Head:
    """Emits the code for one batch."""

    b: Builder
    plan: Plan
    queries: Index
    keys: Index
    past: Index | None
    matrices: Mapping[str, Operand]
    mask: ExtraOperand | None
    scratch: Mapping[str, Operand]

    @property
    def pitch(self) -> Index:
        """The distance between rows of scores in elements, a multiple of the lanes."""
        lanes = self.plan.tile.lanes
        return (self.keys + (lanes - 1)) // lanes * lanes

    def emit(self) -> None:
        """Emit the loop over queries: in place, packed, or both with a check of their number at run time."""
        if self.plan.in_place is not None:
            self._blocks()
            return
        queries, few = self.b.index(self.queries), kernel_costs(self.b.target).unpacked_queries
        for in_place, condition in ((True, queries <= few), (False, queries > few)):
            with self.b.when(condition):
                dataclasses.replace(self, plan=dataclasses.replace(self.plan, in_place=in_place))._blocks()

    def _blocks(self) -> None:
        """Pack keys and values if they are not read in place, then emit the loop over blocks of queries."""
        b, plan, queries = self.b, self.plan, self.queries
        if not plan.in_place:
            self._pack_keys()
            self._pack_values()
        if isinstance(queries, int) and isinstance(self.keys, int):
            start = 0
            for pieces, rows in balanced(queries, plan.block):
                with b.loop(0, pieces) as piece:
                    self._block(piece * rows + start, rows)
                start += pieces * rows
            return
        count = b.index(queries)
        limit = b.min(b.max(plan.capacity // b.max(b.index(self.pitch), 1), 2 * plan.tile.rows), plan.block)
        pieces = b.max((count + (limit - 1)) // limit, 1)
        rows = b.max((count + (pieces - 1)) // pieces, 1)
        with b.loop(0, count, rows) as first:
            self._block(first, b.min(count - first, rows))

    def _pack_keys(self) -> None:
        """Pack the keys as columns of panels."""
        plan, key = self.plan, self.matrices["key"]
        matrix = Box(key, (key.strides[-2], 1))
        emit_pack_transposed(self.b, Box(self.scratch["keys"], ()), matrix, self.keys, plan.depth, tile=plan.key_tile)

    def _pack_values(self) -> None:
        """Pack the values in panels."""
        plan, value = self.plan, self.matrices["value"]
        packed, sizes = self.scratch["values"].pointer, (plan.width, self.keys, value.strides[-2])
        emit_pack_panels(self.b, packed, value.pointer, *sizes, element=plan.element, tile=plan.value_tile)

    def _rows(self, name: str, first: Index = 0) -> Rows:
        """Return the rows of a matrix from row `first` on."""
        matrix = self.matrices[name]
        return Rows(matrix.pointer.at(first * matrix.strides[-2], self.plan.element), matrix.strides[-2])

    def _block(self, first: Index, rows: Index) -> None:
        """Compute the results of `rows` queries from `first` on."""
        b, plan = self.b, self.plan
        limit: Index = self.keys
        if self.past is not None:
            limit = b.min(b.index(first + (rows + self.past)), self.keys)
        self._scores(first, rows, limit)
        scores, factors = self.scratch["scores"].pointer, self.scratch["factors"].pointer
        lines = ScoreLines(b, scores, plan.element, plan.tile.lanes, self.keys, self.pitch, self.mask, self.past)
        # Two loops, so that exponentials do not wait for the peak of their row.
        with b.loop(0, rows) as row:
            factors.at(row, plan.element).store(lines.peak(row, row + first, limit))
        with b.loop(0, rows) as row:
            factor = factors.at(row, plan.element)
            total = lines.soften(row, factor.load(plan.element), limit)
            if not isinstance(limit, int):  # Without keys, means are 0.
                total = b.select(limit > 0, total, 1.0)
            factor.store(1.0 / total)
        self._means(first, rows, limit)

    def _scores(self, first: Index, rows: Index, limit: Index) -> None:
        """Compute the products of `rows` queries with the first `limit` keys."""
        plan = self.plan
        if plan.in_place:
            into = Rows(self.scratch["scores"].pointer, self.pitch)
            products = InPlace(self.b, plan.element, plan.in_place_width)
            keys = self._rows("key")
            products.scores(into, self._rows("query", first), keys, rows, limit, plan.depth, plan.scale)
            return
        queries, pitch = self._queries(first, rows)
        scores, keys = (self.scratch[name].pointer for name in ("scores", "keys"))
        operands = ProductOperands(scores, queries, keys, dot=multiply_adds(plan.element))
        # Whole vectors: there is room for them in a row of scores, and a part of one takes longer.
        columns = steps_of(limit, plan.tile.lanes) * plan.tile.lanes
        options = GemmOptions(tile=plan.key_tile)
        emit_gemm(self.b, operands, rows, columns, plan.depth, pitch, self.pitch, options=options)

    def _means(self, first: Index, rows: Index, limit: Index) -> None:
        """Compute the weighted means of the first `limit` values for `rows` queries."""
        plan, element = self.plan, self.plan.element
        factors, into = self.scratch["factors"].pointer, self._rows("result", first)
        if plan.in_place:
            weights = Rows(self.scratch["scores"].pointer, self.pitch)
            products = InPlace(self.b, element, plan.in_place_width)
            products.means(into, weights, self._rows("value"), factors, rows, limit, plan.width)
            return

        def panel(columns: Columns) -> None:
            operands = ProductOperands(
                into.pointer.at(columns.start, element),
                self.scratch["scores"].pointer,
                columns.weights,
                dot=multiply_adds(element),
                epilogue=_scaling(element),
                extras=(ExtraOperand(factors, element, (1, 0)),),
            )
            options = GemmOptions(tile=plan.value_tile)
            emit_gemm(self.b, operands, rows, columns.count, limit, self.pitch, into.pitch, options=options)

        # Panel by panel: a panel is packed for all values, but a block may read only some of them.
        emit_panels(self.b, self.scratch["values"].pointer, plan.width, self.keys, plan.value_tile, element, panel)

    def _queries(self, first: Index, rows: Index) -> tuple[Value, int]:
        """Return the address of a block of scaled queries and the pitch of its rows."""
        b, plan, query = self.b, self.plan, self.matrices["query"]
        element, pitch = plan.element, query.strides[-2]
        source = query.pointer.at(first * pitch, element)
        if plan.scale == 1:
            return source, pitch
        target = self.scratch["queries"].pointer
        with b.loop(0, rows) as row:
            for start, stop, lanes in chunks(plan.depth, plan.tile.lanes):
                with b.loop(start, stop, lanes) as i:
                    x = source.at(row * pitch + i, element).load(vector(element, lanes))
                    target.at(row * plan.depth + i, element).store(x * plan.scale)
        return target, plan.depth


def _scaling(element: Attribute) -> Epilogue:
    """Return an epilogue that multiplies each row by a factor."""
    block = Block(arg_types=[element, element])
    product = arith.MulfOp(block.args[0], block.args[1])
    block.add_ops([product, YieldOp.create(operands=[product.result])])
    return Epilogue("times a number of the row", block, element)
