"""Tensors with slices replaced at indices, or combined with updates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i8, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.generic_form import OUT_OF_RANGE
from glow_mlir.dialects.glow_high.dynamic_slices import DynamicSliceOp, DynamicUpdateSliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import NegOp
from glow_mlir.dialects.glow_high.indexing import GatherOp, ScatterNDOp
from glow_mlir.dialects.glow_high.loop import Rows, Trips
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of
from glow_mlir.dialects.stablehlo.attributes import RecordAttr
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.stablehlo.indexing import Indexing, batch_of, batching_of, clamped
from glow_mlir.frontends.stablehlo.node import ComplexValue, StablehloNode, Value, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.control_flow import leaves, rebuilt
from glow_mlir.frontends.stablehlo.operators.data_movement import expanded, part, transposed, updated
from glow_mlir.frontends.stablehlo.regions import argument, computation, operation
from glow_mlir.support.dataclass import dataclass

KEEP, SET = "keep", "none"
"""What a scatter does that leaves elements as they are, and one that overwrites them."""

REDUCTIONS: Mapping[str, str] = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min"}
"""The operation of a region → the reduction of a scatter."""

REDUCTIONS_OF_TRUTH: Mapping[str, str] = {
    "add": "max",
    "or": "max",
    "maximum": "max",
    "multiply": "min",
    "and": "min",
    "minimum": "min",
}
"""The same for truth values as integers."""


@stablehlo_operator("scatter")
def scatter(node: StablehloNode) -> Sequence[Value]:
    """Tensors with slices combined with updates by a region; a slice that is not inside as a whole is left out."""
    count = (node.count - 1) // 2
    values, updates = ([node.value(number) for number in range(first, first + count)] for first in (0, count + 1))
    target = _target(node, leaves(values[:1])[0], node.input(count), leaves(updates[:1])[0])
    if not math.prod(shape_of(leaves(updates[:1])[0])):
        return values
    if target.indexing.count == 1:
        return target.one_slice(values, updates)
    forms = forms_of(node, values)
    if forms is None:
        return target.of_any(values, updates)
    found: list[Value] = []
    for value, update, form in zip(values, updates, forms, strict=True):
        pairs = zip(leaves([value]), leaves([update]), strict=True)
        found += rebuilt([value], [target.scattered(*pair, form) for pair in pairs])
    return found


def _target(node: StablehloNode, value: SSAValue, indices: SSAValue, update: SSAValue) -> Target:
    """Where the updates go."""
    record = node.properties["scatter_dimension_numbers"]
    assert isinstance(record, RecordAttr)
    shape, vector, windows = shape_of(value), record.integer("index_vector_dim"), record.integers("update_window_dims")
    dropped = record.integers("inserted_window_dims")
    batching = batching_of(
        record.integers("input_batching_dims"), record.integers("scatter_indices_batching_dims"), vector
    )
    kept = [axis for axis in range(len(shape)) if axis not in dropped and axis not in batching]
    own = dict(zip(kept, (shape_of(update)[at] for at in windows), strict=True))
    indexing = Indexing(
        shape,
        tuple(own.get(axis, 1) for axis in range(len(shape))),
        dropped,
        batching,
        record.integers("scatter_dims_to_operand_dims"),
        batch_of(indices, vector),
    )
    return Target(node, indexing, indexing.starts(node, indices, vector), windows)


def forms_of(node: StablehloNode, values: Sequence[Value], region: int = 0) -> list[str] | None:
    """What the region does to each value by itself, in the words of reductions; `None` for anything else."""
    found = computation(node.block(region))
    if found is None:
        return None
    forms: list[str] = []
    for number, (result, value) in enumerate(zip(found.results, values, strict=True)):
        old, new = argument(number), argument(number + len(values))
        is_complex = isinstance(value, ComplexValue)
        table = REDUCTIONS_OF_TRUTH if is_bool(element_of(leaves([value])[0])) else REDUCTIONS
        known = {operation(word, old, new): reduction for word, reduction in table.items()}
        known |= {old: KEEP, new: SET, operation("subtract", old, new): "sub"}
        form = known.get(result)
        if form is None or (is_complex and form not in (KEEP, SET, "add", "sub")):
            return None
        forms.append(form)
    return forms


@dataclass(frozen=True)
class Target:
    """Where the updates of a scatter go."""

    node: StablehloNode
    indexing: Indexing
    starts: Mapping[int, SSAValue]
    windows: tuple[int, ...]
    """The dimensions of updates that are those of slices."""
    region: int = 0
    """The region of the node that combines elements with updates."""
    are_inside: bool = False
    """Whether all slices are known to be inside."""

    @property
    def merged(self) -> list[int]:
        """The axes that are one in the scatter: all up to the last one of which slices have a part."""
        selected = self.indexing.selected
        return list(range(max(selected) + 1)) if selected else []

    @property
    def rest(self) -> tuple[int, ...]:
        """The sizes of the other axes."""
        return self.indexing.shape[len(self.merged) :]

    def arranged(self, update: SSAValue) -> SSAValue:
        """Updates with the dimensions of the indices in front of those of slices."""
        batch = [at for at in range(rank_of(update)) if at not in self.windows]
        return transposed(self.node, update, (*batch, *self.windows))

    def flat(self, value: SSAValue) -> SSAValue:
        """A tensor with its merged axes as one."""
        size = math.prod(self.indexing.shape[: len(self.merged)])
        return self.node.reshaped(value, (size, *self.rest))

    def rows(self, masked: bool) -> tuple[SSAValue, SSAValue | None]:
        """
        The index of each row of updates in the merged axes, and whether it is inside; `None` if all are.

        The index of a row outside is one inside if `masked`, else the one behind the last.
        """
        node, indexing = self.node, self.indexing
        fits = None if self.are_inside else indexing.fits(node, self.starts)
        starts = {axis: start for axis, start in self.starts.items() if axis in self.merged}
        if fits is not None:
            starts = {axis: clamped(node, start, indexing.limit(axis)) for axis, start in starts.items()}
        positions = indexing.positions(node, starts, self.merged)
        if fits is None:
            return positions, None
        inner = [1] * (rank_of(positions) - len(indexing.batch))
        fits = node.reshaped(fits, (*indexing.batch, *inner))
        if not masked:
            behind = math.prod(indexing.shape[: len(self.merged)])
            positions = node.emit(WhereOp, fits, positions, node.splat(behind, positions))
        return positions, fits

    # ---- Many slices by one operator

    def scattered(self, value: SSAValue, update: SSAValue, form: str) -> SSAValue:
        """A tensor with all updates in their order; `form` says how they are combined."""
        node, element = self.node, element_of(value)
        if form == KEEP:
            return value
        if form == "sub":
            update, form = node.emit(NegOp, update), "add"
        update = self.arranged(update)
        if is_bool(element) and form != SET:
            value, update = (node.cast(item, i8) for item in (value, update))
        into = self.flat(value)
        positions, fits = self.rows(masked=False)
        update = node.reshaped(update, (*shape_of(positions), *self.rest))
        rows = node.reshaped(positions, (*shape_of(positions), 1))
        failure = OUT_OF_RANGE if fits is None else ""  # What is outside is left out.
        found = node.emit(ScatterNDOp, into, rows, update, reduction=form, failure=failure)
        return node.cast(node.reshaped(found, self.indexing.shape), element)

    # ---- One slice

    def one_slice(self, values: Sequence[Value], updates: Sequence[Value]) -> list[Value]:
        """Tensors with the only slice combined with the updates, in place."""
        node, indexing = self.node, self.indexing
        fits = indexing.fits(node, self.starts)
        starts = {axis: node.reshaped(start, ()) for axis, start in self.starts.items()}
        axes = [axis for axis, size in enumerate(indexing.shape) if indexing.sizes[axis] != size]
        for axis in axes:
            starts.setdefault(axis, node.splat(0, i64))
        old, new = leaves(values), [self._as_slice(update) for update in leaves(updates)]
        parts = [self._slice(value, starts, axes) for value in old]
        combined = leaves(node.mapped(self.region, [*rebuilt(values, parts), *rebuilt(updates, new)]))
        if fits is not None:
            fits = node.reshaped(fits, ())
            combined = [node.emit(WhereOp, fits, *pair) for pair in zip(combined, parts, strict=True)]
        every = [starts.get(axis, node.splat(0, i64)) for axis in range(len(indexing.shape))]
        found = [updated(node, value, item, every, axes) for value, item in zip(old, combined, strict=True)]
        return rebuilt(values, found)

    def _as_slice(self, update: SSAValue) -> SSAValue:
        """The only update in the shape of a slice, all axes of the tensor."""
        return self.node.reshaped(self.arranged(update), self.indexing.sizes)

    def _slice(self, value: SSAValue, starts: Mapping[int, SSAValue], axes: Sequence[int]) -> SSAValue:
        for axis in axes:
            value = part(self.node, value, starts[axis], axis, self.indexing.sizes[axis])
        return value

    # ---- Any region

    def of_any(self, values: Sequence[Value], updates: Sequence[Value]) -> list[Value]:
        """Tensors with all updates combined by the region: at once if all indices differ, else one after the other."""
        node = self.node
        old, new = leaves(values), [self.arranged(update) for update in leaves(updates)]
        positions, fits = self.rows(masked=True)
        count = math.prod(shape_of(positions))
        if fits is not None:
            fits = node.reshaped(expanded(node, fits, shape_of(positions)), (count,))
        positions = node.reshaped(positions, (count,))
        new = [node.reshaped(update, (count, *self.rest)) for update in new]
        flat = [self.flat(value) for value in old]
        if node.integer("unique_indices") and fits is None:
            parts = [node.emit(GatherOp, value, positions, axis=0) for value in flat]
            combined = leaves(node.mapped(self.region, [*rebuilt(values, parts), *rebuilt(updates, new)]))
            rows = node.reshaped(positions, (count, 1))
            found = [
                node.emit(ScatterNDOp, value, rows, item, reduction=SET)
                for value, item in zip(flat, combined, strict=True)
            ]
        else:
            found = self._one_by_one(values, flat, positions, fits, updates, new)
        return rebuilt(values, [node.reshaped(value, self.indexing.shape) for value in found])

    def _one_by_one(
        self,
        values: Sequence[Value],
        flat: Sequence[SSAValue],
        positions: SSAValue,
        fits: SSAValue | None,
        updates: Sequence[Value],
        new: Sequence[SSAValue],
    ) -> list[SSAValue]:
        """The tensors after a loop over the rows of updates."""
        node = self.node
        scanned = [positions, *new, *([] if fits is None else [fits])]
        body = Body(node, flat, [Rows(value) for value in scanned])
        with node.builder.inside(body.block):
            start, rows = body.rows[0], body.rows[1 : 1 + len(new)]
            rows = [node.reshaped(row, (1, *self.rest)) for row in rows]
            parts = [node.emit(DynamicSliceOp, value, start, axis=0, size=1) for value in body.carried]
            combined = leaves(node.mapped(self.region, [*rebuilt(values, parts), *rebuilt(updates, rows)]))
            if fits is not None:
                pairs = zip(combined, parts, strict=True)
                combined = [node.emit(WhereOp, body.rows[-1], *pair) for pair in pairs]
            pairs = zip(body.carried, combined, strict=True)
            following = [node.emit(DynamicUpdateSliceOp, value, item, start, axis=0) for value, item in pairs]
        return body.emit(Trips(shape_of(positions)[0]), following, ())
