"""`deduplicate`: unify equal constants and the order of commutative operands, to expose common subexpressions."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Commutative

from glow_mlir.constants.storage import Storage, scalar_attribute
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.storage import ConstantOp, FuncOp, GetOp, SplatOp
from glow_mlir.dialects.shapes import element_of, shape_of, size_of
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace
from glow_mlir.ir.traversal import operations
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.graph.shrink_splats import equal_elements

FIRST = (False, -1)
"""The position of block arguments, before all results of operators."""

MAX_COMPARED = 1 << 16
"""Maximum number of elements of a constant that is checked for uniformity."""


@dataclass(frozen=True)
class DeduplicatePass(ModulePass):
    """
    Merge equal constants, turn uniform operands of elementwise operators into splats, and sort the operands of
    commutative operators: constants last, others by definition (Glow's constant de-duplication, and constants to the
    right-hand side of OptimizeArithmeticNodes). `cse` then finds the common subexpressions.
    """

    name = "deduplicate"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        renamed = _equal_constants(storage)
        for function in high_functions(op):
            _read_once(function, renamed)
            _splat_uniform(function, storage)
            _order_operands(function, storage)
            erase_dead(function)


def _equal_constants(storage: Storage) -> dict[str, ConstantOp]:
    """Name of a constant → the first one of its value and type."""
    first: dict[object, ConstantOp] = {}
    renamed: dict[str, ConstantOp] = {}
    for name, op in storage.by_name.items():
        if isinstance(op, ConstantOp):
            renamed[name] = first.setdefault((op.weights or op.value, op.tensor_type), op)
    return renamed


def _read_once(function: FuncOp, renamed: dict[str, ConstantOp]) -> None:
    """Redirect all reads of equal constants to the first one."""
    for op in operations(function):
        constant = renamed.get(op.storage_name) if isinstance(op, GetOp) else None
        if constant is not None and isinstance(op, GetOp) and constant.sym_name.data != op.storage_name:
            new = GetOp.of(constant, op.location)
            Rewriter.insert_op(new, InsertPoint.before(op))
            replace(op, [new.result])


def _splat_uniform(function: FuncOp, storage: Storage) -> None:
    """Replace uniform constants read by elementwise operators by splats, which are not loaded."""
    for op in operations(function):
        small = isinstance(op, GetOp) and storage.is_constant(op.result) and 0 < size_of(op.result) <= MAX_COMPARED
        number = equal_elements(op.result, storage) if isinstance(op, GetOp) and small else None
        if number is None or bool(number != number):
            continue
        assert isinstance(op, GetOp)
        users = [use for use in op.result.uses if isinstance(use.operation, Elementwise)]
        if not users:
            continue
        value = scalar_attribute(number, element_of(op.result))
        splat = SplatOp.make(value=value, shape=shape_of(op.result), location=op.location)
        Rewriter.insert_op(splat, InsertPoint.after(op))
        for use in users:
            use.operation.operands[use.index] = splat.result


def _order_operands(function: FuncOp, storage: Storage) -> None:
    """Sort the operands of commutative operators by definition, with constants last."""
    positions: dict[SSAValue, tuple[bool, int]] = {}
    for position, op in enumerate(operations(function)):
        for result in op.results:
            positions[result] = (storage.is_constant(result), position)
        if op.has_trait(Commutative):
            left, right = op.operands
            if positions.get(left, FIRST) > positions.get(right, FIRST):
                op.operands = [right, left]
