"""Loop-invariant operands, packed once before the loop."""

from __future__ import annotations

from typing import cast

from xdsl.ir import Operation, SSAValue

from glow_mlir.analysis.accesses import each_user
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.constants.tiled_layout import TiledLayout
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.control_flow import RegionOp
from glow_mlir.dialects.glow_low.loop import LoopOp, WindowOp, is_same_buffer, loop_of, motion_of
from glow_mlir.dialects.glow_low.memory import AllocOp, Buffer, DeallocOp, ViewOp, buffer_type, root_of
from glow_mlir.dialects.glow_low.packing import PackOp
from glow_mlir.dialects.shapes import has_static_shape, shape_of
from glow_mlir.ir.traversal import function_of


def packed_before_loop(op: Instruction, value: SSAValue, form: PackedForm) -> SSAValue | None:
    """
    A buffer with an operand in a packed form, packed before the outermost loop in which the operand does not change.

    `None` if there is no such loop, if machine code cannot pack the form, or if memory is limited, since the packed
    buffer lives as long as the loop.
    """
    layout = form.layout
    if not isinstance(layout, TiledLayout) or not has_static_shape(value) or shape_of(value) != layout.plain:
        return None
    if (loop := loop_around(op, value)) is None:
        return None
    return _already_packed(loop, value, form) or _pack(loop, value, form)


def loop_around(op: Operation, value: SSAValue) -> LoopOp | None:
    """The outermost loop of more than one trip around an instruction in which an operand does not change."""
    found, around = None, op.parent_op()
    while isinstance(around, RegionOp) and _is_same_in(around, value):
        if isinstance(around, LoopOp) and around.max_trips not in (0, 1):
            found = around
        around = around.parent_op()
    return None if found is None or function_of(op).target.limits.ram_bytes else found


def _is_same_in(region: RegionOp, value: SSAValue) -> bool:
    """Whether a buffer exists before a branch or loop that changes neither its address nor its content."""
    root = root_of(value)
    if region.is_ancestor(root.owner) or any(region.is_ancestor(loop_of(index)) for index in motion_of(value)):
        return False
    uses = (use for user in each_user(root) if region.is_ancestor(user) for use in user.uses())
    return not any(qualifier.writes and root_of(used) is root for qualifier, used in uses)


def _already_packed(loop: LoopOp, value: SSAValue, form: PackedForm) -> SSAValue | None:
    """The buffer that an instruction right before a loop has packed the same way already."""
    before, layout = loop.prev_op, form.described()
    while isinstance(before, PackOp | AllocOp | ViewOp | WindowOp):
        if isinstance(before, PackOp) and before.layout == layout and is_same_buffer(before.source, value):
            return before.target
        before = before.prev_op
    return None


def _pack(loop: LoopOp, value: SSAValue, form: PackedForm) -> SSAValue:
    """Pack a buffer before a loop, and free the packed one after it."""
    block, root = loop.parent_block(), root_of(value)
    assert block is not None
    moves = list(motion_of(value).items())
    type_ = cast(Buffer, value.type)
    plain = WindowOp.of(root, moves, type_, loop.location) if moves else ViewOp.of(root, type_, loop.location)
    packed = AllocOp.of(buffer_type(form.layout.shape, form.element), loop.location)
    layout = {"layout": form.described()}
    pack = PackOp.of(packed.result, plain.result, properties=layout, location=loop.location)
    block.insert_ops_before([plain, packed, pack], loop)
    block.insert_op_after(DeallocOp.of(packed.result, location=loop.location), loop)
    return packed.result
