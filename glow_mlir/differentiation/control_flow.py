"""Gradients of branches and loops: their regions are recomputed from their inputs, and differentiated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Region, SSAValue

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.control_flow import IfOp, YieldOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, SubOp
from glow_mlir.dialects.glow_high.loop import LoopOp, Rows, Trips
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import element_of
from glow_mlir.differentiation.contributions import zeros_like
from glow_mlir.differentiation.differentiator import Differentiator
from glow_mlir.differentiation.loops import Values, emit_loop
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import gradient
from glow_mlir.ir.rewriting import copied, replace
from glow_mlir.ir.traversal import subtree
from glow_mlir.support.dataclass import dataclass

Cotangents = Sequence[SSAValue | None]
Found = Mapping[SSAValue, SSAValue]


def _block(emit: Emitter) -> tuple[Block, Emitter]:
    """A block without results yet, and an emitter of its operators."""
    end = YieldOp.of([], emit.location)
    block = Block()
    block.add_op(end)
    return block, Emitter(end, emit.storage, location=emit.location)


def _back_through(
    block: Block, arguments: Values, given: Cotangents, sources: Values, emit: Emitter
) -> list[SSAValue | None]:
    """Recompute a block; return the cotangents of sources, given those of its results."""
    since = emit.anchor.prev_op
    copies, yielded = copied(block, arguments)
    for copy in copies:
        emit.insert(copy)
    targets = [(value, one) for value, one in zip(yielded, given, strict=True) if one is not None]
    return Differentiator(emit.anchor, emit.storage, sources).run(targets, since)


def _or_zeros(cotangents: Cotangents, like: Values, emit: Emitter) -> list[SSAValue]:
    return [zeros_like(value, emit) if one is None else one for one, value in zip(cotangents, like, strict=True)]


@gradient(IfOp)
def branch(op: IfOp, cotangents: Cotangents, wanted: Values, emit: Emitter) -> Found:
    """A branch between the gradients of both regions."""
    regions: list[Region] = []
    for region in op.regions:
        block, inner = _block(emit)
        found = _back_through(region.block, (), cotangents, wanted, inner)
        inner.anchor.operands = _or_zeros(found, wanted, inner)
        regions.append(Region(block))
    made = emit.insert(IfOp.of(op.condition, [value.type for value in wanted], regions, emit.location))
    return dict(zip(wanted, made.results, strict=True))


@gradient(LoopOp)
def loop(op: LoopOp, cotangents: Cotangents, wanted: Values, emit: Emitter) -> Found:
    """
    A loop from the last iteration to the first; each iteration is recomputed from its initial values.

    Raises `UnsupportedError` if the number of iterations is unbounded.
    """
    if op.static_trips is None:
        hint = "give the loop a maximum trip count"
        raise UnsupportedError(
            "loop has a gradient where its trips are counted", node=location_name(op.location), hint=hint
        )
    return LoopGradient(op, op.static_trips, cotangents, wanted, emit).run()


@dataclass(frozen=True)
class LoopGradient:
    """The gradient of one loop with a bounded trip count."""

    op: LoopOp
    trips: int
    cotangents: Cotangents
    wanted: Values
    emit: Emitter

    def run(self) -> Found:
        """The cotangents of the requested values."""
        op, emit = self._keeping(), self.emit
        kept = op.stacked[len(self.cotangents) - len(op.initial) :]
        carried = [index for index, value in enumerate(op.initial) if is_float(element_of(value))]
        scanned = [index for index, rows in enumerate(op.over) if rows.value in self.wanted]
        around = self._read_by(op)
        given = [(index, value) for index, value in enumerate(self.cotangents[len(op.initial) :]) if value is not None]
        over, initial, backwards = op.over, op.initial, ints(op.reversed_outputs)
        seeds = _or_zeros([self.cotangents[index] for index in carried], [initial[index] for index in carried], emit)
        sums = [zeros_like(value, emit) for value in around]
        rows = [
            *(Rows(value, True) for value in kept),
            *(Rows(item.value, not item.reversed) for item in over),
            *(Rows(value, index not in backwards) for index, value in given),
        ]
        conditional = int(len(kept) > len(initial))
        yields = len(op.yielded(op.body))

        def step(emit: Emitter, number: SSAValue, states: Values, own: Values) -> tuple[Values, Values]:
            """The reverse of one executed iteration: cotangents of its initial values, sums, and cotangents of rows."""
            before, taken = own[: len(initial)], own[len(kept) : len(kept) + len(over)]
            last = emit(SubOp, emit.splat(self.trips - 1, number), number)
            by_result: list[SSAValue | None] = [None] * yields
            for index, value in zip(carried, states, strict=False):
                by_result[conditional + index] = value
            for (index, _), value in zip(given, own[len(kept) + len(over) :], strict=True):
                by_result[conditional + len(initial) + index] = value
            sources = [*(before[index] for index in carried), *(taken[index] for index in scanned), *around]
            found = _back_through(op.body.block, [last, *before, *taken], by_result, sources, emit)
            by_carried, by_rows = found[: len(carried)], found[len(carried) : len(carried) + len(scanned)]
            totals = [
                total if one is None else emit(AddOp, total, one)
                for total, one in zip(states[len(carried) :], found[len(carried) + len(scanned) :], strict=True)
            ]
            after = _or_zeros(by_carried, sources[: len(carried)], emit)
            return [*after, *totals], _or_zeros(by_rows, [taken[index] for index in scanned], emit)

        def trip(emit: Emitter, number: SSAValue, states: Values, own: Values) -> tuple[Values, Values]:
            if not conditional:
                return step(emit, number, states, own)
            first, inner = _block(emit)
            after, by_rows = step(inner, number, states, own)
            inner.anchor.operands = [*after, *by_rows]
            second, inner = _block(emit)
            zeros = [zeros_like(own[len(kept) + index], inner) for index in scanned]
            inner.anchor.operands = [*states, *zeros]
            types = [value.type for value in (*after, *by_rows)]
            ran = own[len(initial)]
            results = emit.insert(IfOp.of(ran, types, [Region(first), Region(second)], emit.location)).results
            return results[: len(states)], results[len(states) :]

        reverse = [not over[index].reversed for index in scanned]
        finals, stacked = emit_loop(Trips(self.trips), [*seeds, *sums], rows, trip, emit, reverse)
        pairs = [
            *((initial[index], value) for index, value in zip(carried, finals, strict=False)),
            *((over[index].value, value) for index, value in zip(scanned, stacked, strict=True)),
            *zip(around, finals[len(carried) :], strict=True),
        ]
        return self._gathered(pairs)

    def _read_by(self, op: LoopOp) -> list[SSAValue]:
        """The requested outer values that the body reads."""
        inside = {value for inner in subtree(op) if inner is not op for value in inner.operands}
        return [value for value in self.wanted if value in inside]

    def _keeping(self) -> LoopOp:
        """Replace the loop by one that stacks the initial values of each iteration, and whether it was executed."""
        op, count = self.op, len(self.op.initial)
        region = op.body.clone()
        block = region.block
        end = block.last_op
        assert isinstance(end, YieldOp)
        extra: list[SSAValue] = [*block.args[1 : 1 + count]]
        if op.condition is not None:
            extra.append(Emitter(end, self.emit.storage, location=op.location).splat(1, i1))
        end.operands = [*end.operands, *extra]
        backwards = ints(op.reversed_outputs)
        flags = [position in backwards for position in range(len(op.stacked))] + [False] * len(extra)
        made = LoopOp.of(Trips(self.trips, op.condition), op.initial, op.over, region, flags, op.location)
        Emitter(op, self.emit.storage, location=op.location).insert(made)
        replace(op, made.results[: len(op.results)])
        return made

    def _gathered(self, pairs: Sequence[tuple[SSAValue, SSAValue]]) -> Found:
        """The sum of the cotangents of each requested value."""
        found: dict[SSAValue, SSAValue] = {}
        for value, one in pairs:
            if value in self.wanted:
                known = found.get(value)
                found[value] = one if known is None else self.emit(AddOp, known, one)
        return found
