"""
How the arrays of a function's inputs and outputs are laid out, and which outputs may share the memory of an input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from xdsl.ir import SSAValue

from glow_mlir.analysis.accesses import Accesses, each_user, may_be_same_buffer
from glow_mlir.dialects.glow_low.base import Instruction, QualifiedOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import FuncOp, WeightOp, capacity_of, root_of, strides_of
from glow_mlir.dialects.shapes import has_static_shape
from glow_mlir.ir.entries import bindings_of, placeholders_of
from glow_mlir.ir.traversal import own_operations
from glow_mlir.runtime.artifact import Binding


def bound_layouts(function: FuncOp) -> tuple[Binding, ...]:
    """Inputs, outputs and state of an allocated function, in order."""
    weights: dict[str, SSAValue] = {
        op.storage_name: op.result for op in own_operations(function) if isinstance(op, WeightOp)
    }
    named = zip(placeholders_of(function), bindings_of(function), strict=True)
    pairs = [(binding, weights.get(op.sym_name.data)) for op, binding in named]
    inputs: dict[SSAValue, str] = {
        weight: binding.name for binding, weight in pairs if binding.role == "input" and weight is not None
    }
    accesses, names = Accesses.of(function.block), dict(inputs)
    found: list[Binding] = []
    for given, weight in pairs:
        binding = given
        if weight is not None and binding.role == "output":
            binding = replace(given, in_place_of=tuple(_replaced(weight, accesses, names)))
        if weight is None or has_static_shape(weight):
            found.append(binding)
        elif binding.role == "input":
            found.append(replace(binding, shape=capacity_of(weight)))
        else:
            # At most one output can share the memory of an input.
            found.append(replace(binding, extends=_take(inputs, _begin_of(weight))))
    return tuple(found)


def _take(inputs: dict[SSAValue, str], begin: SSAValue | None) -> str:
    return "" if begin is None else inputs.pop(begin, "")


def _replaced(output: SSAValue, accesses: Accesses, inputs: Mapping[SSAValue, str]) -> Iterator[str]:
    """
    The inputs that are read for the last time when an output is written for the first, by an instruction that works in
    place.
    """
    own = accesses.to(output)
    first = own[0] if own else None
    if first is None or not isinstance(op := first.op, Instruction) or op not in accesses.positions:
        return
    written = [access for access in own if access.op is op]
    for root in dict.fromkeys(map(root_of, op.operands)):
        reads = accesses.to(root)
        if root not in inputs or root.type != output.type or reads[-1].position > first.position:
            continue
        last = [access for access in reads if access.op is op]
        if all(may_be_same_buffer(op, one.index, other.index) for one in written for other in last):
            yield inputs[root]


def _begin_of(output: SSAValue) -> SSAValue | None:
    """
    The weight that an instruction copies to the first elements of an output, with the same strides.

    `None` if anything else writes to the output: otherwise these elements may be there already.
    """
    writers = [op for op in each_user(output) if _writes(op, output)]
    if len(writers) != 1 or not isinstance(op := writers[0], DerivedInstruction):
        return None
    first, (result, *others) = op.extended(), op.outputs()
    if first is None or others or op.bodies or result is not output or not isinstance(first.owner, WeightOp):
        return None
    return first if strides_of(first) == strides_of(result) else None


def _writes(op: object, buffer: SSAValue) -> bool:
    """Whether an operation writes to a buffer."""
    return isinstance(op, QualifiedOp) and any(
        qualifier.writes and root_of(value) is buffer for qualifier, value in op.uses()
    )
