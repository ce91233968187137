"""Selection of the operators that compute on quantized values, the values to quantize, and groups of one scale."""

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
from glow_mlir.dialects.glow_high.interfaces import OnQuantized
from glow_mlir.dialects.glow_high.storage import FuncOp, SaveOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir.traversal import own_operations
from glow_mlir.quantization.histogram import Histogram


def form_of(op: Operation) -> OnQuantized | None:
    """The class of an operator under quantization."""
    if not isinstance(op, HighOp) or (isinstance(op, DataMovement) and not op.moves_only()):
        return None
    return op.ON_QUANTIZED


def data_operands(op: Operation) -> Sequence[SSAValue]:
    """The leading operands that an operator with a quantized form multiplies, moves or computes with."""
    form = form_of(op)
    if form is OnQuantized.MOVEMENT:
        return op.operands if isinstance(op, ConcatOp) else op.operands[:1]
    return op.operands[:2] if form is OnQuantized.PRODUCT else op.operands


class Plan:
    """
    The quantization plan of a function, given profiled values `known` and operators `kept` in floats.

    Products with known operands are quantized, and so are chains of data movement and arithmetic that lead to one. No
    number is rounded for an operator whose result continues in floats. If an elementwise operator is the only reader of
    its last operand, that operand stays in floats: it is in registers once the operator is fused with its producer.
    Bias, residual and activation are then applied to accumulators before a single rounding.
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
        """The operators that compute on quantized values, in order, with their positions in the program."""
        chosen: set[Operation] = set()
        for op in reversed(self._program):
            form = form_of(op) if self._is_known(op) else None
            if form is OnQuantized.PRODUCT or (form and self._leads_on(op, chosen)):
                chosen.add(op)
        return {op: position for position, op in enumerate(self._program) if op in chosen}

    @cached_property
    def values(self) -> list[SSAValue]:
        """The values to quantize, each once."""
        found: dict[SSAValue, None] = {}
        for op in self.operators:
            joined = self._joined(op)
            found |= {value: None for value in self._variables(op) if value is not joined}
        return list(found)

    def reads_quantized(self, value: SSAValue, use: Use) -> bool:
        """
        Whether a use of one of `values` reads the quantized value: all uses do if an operator of the plan produces
        it.
        """
        if value.owner in self.operators:
            return True
        return use.operation in self.operators and use.index < len(data_operands(use.operation))

    def group(self, value: SSAValue) -> Sequence[SSAValue]:
        """The values that share one scale with `value`, itself included: values connected by data movement."""
        return self._groups.get(value, (value,))

    def mean(self, value: SSAValue) -> float:
        """The profiled mean of one of `values`."""
        return self._known[value].mean()

    def histogram(self, group: Sequence[SSAValue]) -> Histogram:
        """The merged histogram of some values."""
        found = Histogram(self._known[group[0]].bins)
        for value in group:
            found.merge(self._known[value])
        return found

    @cached_property
    def _program(self) -> list[Operation]:
        return list(own_operations(self.function))

    def _variables(self, op: Operation) -> list[SSAValue]:
        """The non-constant data operands."""
        return [value for value in data_operands(op) if not self.storage.is_constant(value)]

    def _is_known(self, op: Operation) -> bool:
        """Whether the profile covers all operands and results, except constants that the operator accepts."""
        form = form_of(op)
        if form is None or op in self.kept or element_of(op.results[0]) != f32:
            return False
        variables = self._variables(op)
        constants = len(data_operands(op)) - len(variables)
        if form is OnQuantized.PRODUCT:
            takes = constants == 0 or (constants == 1 and variables[0] is op.operands[0])
        else:
            takes = bool(variables) and (constants == 0 or form is OnQuantized.ARITHMETIC)
        return takes and all(value in self._known for value in (*variables, op.results[0]))

    def _leads_on(self, op: Operation, chosen: AbstractSet[Operation]) -> bool:
        """Whether a selected operator reads the result."""
        return any(
            use.operation in chosen and use.index < len(data_operands(use.operation)) for use in op.results[0].uses
        )

    def _joined(self, op: Operation) -> SSAValue | None:
        """The operand that stays in floats because the elementwise operator is fused with its producer."""
        if not isinstance(op, Elementwise):
            return None
        alone = [value for value in self._variables(op) if _has_one_reader(value) and not self._is_moved(value)]
        return max(alone, key=lambda value: self._positions[value.owner], default=None)

    def _is_moved(self, value: SSAValue) -> bool:
        """Whether a quantized data movement produces the value."""
        owner = value.owner
        return isinstance(owner, Operation) and owner in self.operators and form_of(owner) is OnQuantized.MOVEMENT

    @cached_property
    def _positions(self) -> dict[object, int]:
        return {op: position for position, op in enumerate(self._program)}

    @cached_property
    def _groups(self) -> dict[SSAValue, list[SSAValue]]:
        """Value → the values of its scale, in one shared list."""
        found: dict[SSAValue, list[SSAValue]] = {}
        for op in self.operators:
            if form_of(op) is OnQuantized.MOVEMENT:
                for value in data_operands(op):
                    groups = [found.setdefault(member, [member]) for member in (value, op.results[0])]
                    smaller, larger = sorted(groups, key=len)
                    if smaller is not larger:
                        larger += smaller
                        found |= dict.fromkeys(smaller, larger)
        return found


def _has_one_reader(value: SSAValue) -> bool:
    """Whether exactly one operator reads a value; saves do not count."""
    return sum(not isinstance(use.operation, SaveOp) for use in value.uses) == 1


def floats_of(plan: Plan) -> list[Operation]:
    """The f32 operators that stay in floats, except those behind the last quantized value."""
    found: list[Operation] = []
    for op in own_operations(plan.function):
        computes = isinstance(op, HighOp) and any(
            element_of(value) == f32 and not plan.storage.is_constant(value) for value in op.operands
        )
        is_last = form_of(op) is not None and all(isinstance(use.operation, SaveOp) for use in op.results[0].uses)
        if computes and op not in plan.operators and not is_last:
            found.append(op)
    return found
