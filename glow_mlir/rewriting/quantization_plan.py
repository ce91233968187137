"""Which operators of a function compute on codes, which values become codes, and which of these have one scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue, Use

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, DataMovement
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.interfaces import OnCodes
from glow_mlir.dialects.glow_high.storage import FuncOp, SaveOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir.traversal import own_operations
from glow_mlir.quantization.histogram import Histogram


def form_of(op: Operation) -> OnCodes | None:
    """What an operator is where numbers are quantized."""
    if not isinstance(op, HighOp) or (isinstance(op, DataMovement) and not op.moves_only()):
        return None
    return op.ON_CODES


def data_operands(op: Operation) -> Sequence[SSAValue]:
    """The operands that an operator with a form on codes multiplies, moves or computes with, its first ones."""
    form = form_of(op)
    if form is OnCodes.MOVEMENT:
        return op.operands if isinstance(op, ConcatOp) else op.operands[:1]
    return op.operands[:2] if form is OnCodes.PRODUCT else op.operands


class Plan:
    """
    What of a function is quantized, given the values that a profile `known`s, and operators that are `kept` in floats.

    Products are, where their operands are known; and what a chain of movement and arithmetic leads from to one that is.
    So no number is rounded for the sake of an operator whose result goes on in floats. What an elementwise operator
    alone reads stays a number, if that is its last operand: it is in registers where the operator joins the loop of its
    producer, so that a bias, a residual and an activation are added and applied to sums before they are rounded once.
    """

    def __init__(
        self,
        function: FuncOp,
        storage: Storage,
        known: Mapping[SSAValue, Histogram],
        kept: AbstractSet[Operation],
    ) -> None:
        self.function, self.storage = function, storage
        self._known, self.kept = known, kept

    @cached_property
    def operators(self) -> dict[Operation, int]:
        """The operators that compute on codes, in order, with their positions in the program."""
        chosen: set[Operation] = set()
        for op in reversed(self._program):
            form = form_of(op) if self._is_known(op) else None
            if form is OnCodes.PRODUCT or (form and self._leads_on(op, chosen)):
                chosen.add(op)
        return {op: position for position, op in enumerate(self._program) if op in chosen}

    @cached_property
    def values(self) -> list[SSAValue]:
        """The values that become codes, each once."""
        found: dict[SSAValue, None] = {}
        for op in self.operators:
            joined = self._joined(op)
            found |= {value: None for value in self._variables(op) if value is not joined}
        return list(found)

    def reads_codes(self, value: SSAValue, use: Use) -> bool:
        """Whether a reader of one of `values` reads its codes: all do where there is no other buffer of it."""
        if value.owner in self.operators:
            return True
        return use.operation in self.operators and use.index < len(data_operands(use.operation))

    def group(self, value: SSAValue) -> Sequence[SSAValue]:
        """All values that have one scale with this one, itself among them: those that operators move to each other."""
        return self._groups.get(value, (value,))

    def mean(self, value: SSAValue) -> float:
        """The mean of the numbers of one of `values`."""
        return self._known[value].mean()

    def histogram(self, group: Sequence[SSAValue]) -> Histogram:
        """How often which number occurred among some values."""
        found = Histogram(self._known[group[0]].bins)
        for value in group:
            found.merge(self._known[value])
        return found

    @cached_property
    def _program(self) -> list[Operation]:
        return list(own_operations(self.function))

    def _variables(self, op: Operation) -> list[SSAValue]:
        """The data operands that are no constants."""
        return [value for value in data_operands(op) if not self.storage.is_constant(value)]

    def _is_known(self, op: Operation) -> bool:
        """Whether the profile has all that an operator reads and writes, constants excepted that it can take."""
        form = form_of(op)
        if form is None or op in self.kept or element_of(op.results[0]) != f32:
            return False
        variables = self._variables(op)
        constants = len(data_operands(op)) - len(variables)
        if form is OnCodes.PRODUCT:
            takes = constants == 0 or (constants == 1 and variables[0] is op.operands[0])
        else:
            takes = bool(variables) and (constants == 0 or form is OnCodes.ARITHMETIC)
        return takes and all(value in self._known for value in (*variables, op.results[0]))

    def _leads_on(self, op: Operation, chosen: AbstractSet[Operation]) -> bool:
        """Whether one of those chosen reads the result."""
        return any(
            use.operation in chosen and use.index < len(data_operands(use.operation)) for use in op.results[0].uses
        )

    def _joined(self, op: Operation) -> SSAValue | None:
        """The operand that stays a number, of an elementwise operator whose loop joins that of its producer."""
        if not isinstance(op, Elementwise):
            return None
        alone = [value for value in self._variables(op) if _has_one_reader(value) and not self._is_moved(value)]
        return max(alone, key=lambda value: self._positions[value.owner], default=None)

    def _is_moved(self, value: SSAValue) -> bool:
        """Whether an operator that moves codes gives a value."""
        owner = value.owner
        return isinstance(owner, Operation) and owner in self.operators and form_of(owner) is OnCodes.MOVEMENT

    @cached_property
    def _positions(self) -> dict[object, int]:
        return {op: position for position, op in enumerate(self._program)}

    @cached_property
    def _groups(self) -> dict[SSAValue, list[SSAValue]]:
        """Value → all values with its scale, in one list."""
        found: dict[SSAValue, list[SSAValue]] = {}
        for op in self.operators:
            if form_of(op) is OnCodes.MOVEMENT:
                for value in data_operands(op):
                    groups = [found.setdefault(member, [member]) for member in (value, op.results[0])]
                    smaller, larger = sorted(groups, key=len)
                    if smaller is not larger:
                        larger += smaller
                        found |= dict.fromkeys(smaller, larger)
        return found


def _has_one_reader(value: SSAValue) -> bool:
    """Whether one operator reads a value; what saves it computes nothing."""
    return sum(not isinstance(use.operation, SaveOp) for use in value.uses) == 1


def floats_of(plan: Plan) -> list[Operation]:
    """The operators that compute numbers of f32 from others and stay in floats, but for those behind the last codes."""
    found: list[Operation] = []
    for op in own_operations(plan.function):
        computes = isinstance(op, HighOp) and any(
            element_of(value) == f32 and not plan.storage.is_constant(value) for value in op.operands
        )
        is_last = form_of(op) is not None and all(isinstance(use.operation, SaveOp) for use in op.results[0].uses)
        if computes and op not in plan.operators and not is_last:
            found.append(op)
    return found
