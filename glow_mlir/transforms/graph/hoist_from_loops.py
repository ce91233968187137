"""`hoist-from-loops`: hoist loop-invariant operators, and batch products of scanned rows in front of the loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.index_ranges import failure_of
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.loop import LoopOp, Rows
from glow_mlir.dialects.glow_high.storage import GetOp, SplatOp
from glow_mlir.dialects.shapes import bytes_of, has_static_shape
from glow_mlir.dialects.symbol_binding import SymbolBinding, used_symbols
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import erase_dead, high_functions
from glow_mlir.ir.traversal import operations, own_operations
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Symbol


@dataclass(frozen=True)
class HoistFromLoopsPass(ModulePass):
    """
    Hoist loop-invariant operators out of loops, innermost loop first.

    A product of a scanned row with a loop-invariant matrix becomes one product of all rows in front of the loop, which
    then scans its result: the matrix is read once. Applies if the matrix is larger than the result of a trip, and all
    trips certainly run.

    Operators that may fail are hoisted only if there certainly is a trip. Splats stay, since they are free where they
    are read; constants are hoisted.
    """

    name = "hoist-from-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in high_functions(op):
            loops = [inner for inner in operations(function) if isinstance(inner, LoopOp)]
            if any([Hoisting(loop).run() for loop in reversed(loops)]):
                erase_dead(function)


@dataclass
class Hoisting:
    """The rewriting of one loop."""

    loop: LoopOp
    inside: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that may vary between trips."""
    bound: set[Symbol] = field(default_factory=set[Symbol])
    """The symbols that the body binds."""
    whole: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Row of a trip → the tensor in front of the loop with the rows of all trips."""

    def run(self) -> bool:
        """Visit the body once; returns whether anything was hoisted."""
        block = self.loop.body.block
        self.inside.update(block.args)
        is_changed = False
        for op in own_operations(block):
            if isinstance(op, SymbolBinding):
                self.bound.add(op.bound)
            if self._is_same(op):
                self._move(op)
                is_changed = True
            else:
                self.inside.update(op.results)
        return self._hoist_products(block) or is_changed

    def _is_same(self, op: Operation) -> bool:
        """Whether an operator is loop-invariant and safe to execute in front of the loop."""
        if isinstance(op, GetOp):
            return True
        if not isinstance(op, HighOp) or isinstance(op, SplatOp):
            return False
        varies = any(value in self.inside and not isinstance(value.owner, SplatOp) for value in op.operands)
        varies |= not self.bound.isdisjoint(used_symbols(op))
        return not varies and (not failure_of(op) or self._surely_runs())

    def _surely_runs(self) -> bool:
        """Whether the loop certainly has a trip."""
        return self.loop.static_trips is not None and self.loop.condition is None

    def _move(self, op: Operation) -> None:
        """Hoist an operator, with copies of the splats that it reads."""
        for position, value in enumerate(op.operands):
            if value in self.inside and isinstance(value.owner, SplatOp):
                copy = value.owner.clone()
                self._insert(copy)
                op.operands[position] = copy.result
        op.detach()
        self._insert(op)
        statistics.count("operators hoisted")

    # ---- products of all rows at once

    def _hoist_products(self, block: Block) -> bool:
        """Batch products of rows, and the operators in between, over all trips; returns whether there are any."""
        if self.loop.size_of_trips is None or self.loop.condition is not None:
            return False
        self.whole = {
            row: rows.value for row, rows in zip(self.loop.rows, self.loop.over, strict=True) if not rows.reversed
        }
        forms = self._forms(block)
        products = [op for op in forms if isinstance(op, MatMulOp) and self._pays(op)]
        needed: set[Operation] = set(products)
        for op in reversed(forms):
            if _users(op) & needed:
                needed.add(op)
        for op, properties in forms.items():
            if op in needed:
                self._widen(op, properties)
        for op in products:
            if not _users(op) <= needed:
                self._go_over(op)
        return bool(products)

    def _forms(self, block: Block) -> dict[HighOp, Mapping[str, Attribute]]:
        """The operators on rows and loop-invariant values, with their properties for all rows."""
        trips, found, known = self.loop.size_of_trips or 0, dict[HighOp, Mapping[str, Attribute]](), set(self.whole)
        for op in own_operations(block):
            if not isinstance(op, HighOp) or len(op.results) != 1 or failure_of(op):
                continue
            is_row = [value in known for value in op.operands]
            others = (value for value, of_row in zip(op.operands, is_row, strict=True) if not of_row)
            if any(is_row) and self.inside.isdisjoint(others):
                properties = op.over_rows(is_row, trips)
                if properties is not None:
                    found[op] = properties
                    known.add(op.results[0])
        return found

    def _pays(self, op: MatMulOp) -> bool:
        """Whether reading the matrix in each trip costs more than storing the results of all trips."""
        fits = all(map(has_static_shape, (op.left, op.right, op.result)))
        return fits and bytes_of(op.right) > bytes_of(op.result)

    def _widen(self, op: HighOp, properties: Mapping[str, Attribute]) -> None:
        """Insert an operator for all rows in front of the loop."""
        operands = [self.whole.get(value, value) for value in op.operands]
        wide = type(op).inferred(operands, properties, op.location)
        wide.results[0].name_hint = op.results[0].name_hint
        self._insert(wide)
        self.whole[op.results[0]] = wide.results[0]

    def _go_over(self, op: HighOp) -> None:
        """Let the loop scan the batched results instead of computing one per trip."""
        row = self.loop.go_over(Rows(self.whole[op.results[0]]))
        row.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(row)
        statistics.count("products of all rows")

    def _insert(self, op: Operation) -> None:
        block = self.loop.parent_block()
        assert block is not None
        block.insert_op_before(op, self.loop)


def _users(op: Operation) -> set[Operation]:
    """The operators that use a result of `op`."""
    return {use.operation for result in op.results for use in result.uses}
