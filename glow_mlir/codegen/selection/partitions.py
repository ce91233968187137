"""
The number of parts into which an instruction is partitioned for threads, by its cost and by the steps of its kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from glow_mlir.analysis.cost import work
from glow_mlir.backends.interface import costs_of, get_backend
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, operands_of
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.forms import at_largest
from glow_mlir.dialects.glow_low.memory import AllocOp, buffer_type, byte_size
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.dialects.sizes import RunTimeSizeError, largest
from glow_mlir.dialects.target import Target
from glow_mlir.runtime.pool_layout import MAX_PARTS


def partition(op: Instruction, kernel: Kernel, target: Target) -> bool:
    """
    Write the number of parts on a prepared instruction, and allocate scratch for each worker.

    Returns whether the instruction is partitioned. If sizes are symbolic, the number of parts suits the largest ones;
    in calls with smaller sizes, some parts have nothing to do.
    """
    costs = costs_of(target)
    total = work(at_largest(op), costs)
    if total < 2 * costs.part_operations:
        return False
    parts: dict[str, int] = {}
    for axis, steps in steps_of_axes(op, kernel, target).items():
        grain = costs.part_operations * max(1, largest(kernel.rounds(op, axis, target)))
        wanted = min(total // grain, costs.max_parts_per_thread * target.policy.threads)
        parts[axis] = max(1, min(wanted, steps, MAX_PARTS))
    scratch = operands_of(op, "scratch")
    if available_bytes := get_backend(target.backend).PART_SCRATCH:
        taken = sum(byte_size(scratch[number]) for number in kernel.private(op))
        parts = {axis: max(1, min(count, available_bytes // max(1, taken))) for axis, count in parts.items()}
    if all(count == 1 for count in parts.values()):
        return False
    op.properties["partitions"] = DictionaryAttr({axis: to_attribute(count) for axis, count in parts.items()})
    for number in kernel.private(op):
        _multiply(scratch[number], private_copies(parts, target))
    return True


def private_copies(parts: Mapping[str, int], target: Target) -> int:
    """The number of copies of private scratch of an instruction with that many parts along each axis."""
    return max(parts.values()) if get_backend(target.backend).PART_SCRATCH else target.policy.threads


def steps_of_axes(op: Instruction, kernel: Kernel, target: Target) -> Mapping[str, int]:
    """
    The axes along which a kernel partitions an instruction, and their steps, which are upper bounds for symbolic sizes.
    """
    try:
        return kernel.cuts(op, target)
    except RunTimeSizeError:
        return kernel.cuts(at_largest(op), target)


def partitions_of(op: Operation) -> dict[str, int]:
    """Axis → the number of parts along it; empty if the instruction is not partitioned."""
    found = op.properties.get("partitions")
    if not isinstance(found, DictionaryAttr):
        return {}
    return {axis: count.value.data for axis, count in found.data.items() if isinstance(count, IntegerAttr)}


def widened(buffer: Buffer, copies: int) -> Buffer:
    """A buffer with a copy for each worker."""
    shape, element = buffer
    return (copies, *shape), element


def _multiply(scratch: SSAValue, copies: int) -> None:
    """Give a buffer that was just allocated a first axis with that many copies."""
    allocation = scratch.owner
    assert isinstance(allocation, AllocOp)
    wide = AllocOp.of(buffer_type(*widened((shape_of(scratch), element_of(scratch)), copies)), allocation.location)
    block = allocation.parent_block()
    assert block is not None
    block.insert_op_before(wide, allocation)
    scratch.replace_all_uses_with(wide.result)
    allocation.detach()
    allocation.erase()
