"""Edits of buffers when one becomes part of another: hoist declarations, join lifetimes, erase dead views."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.analysis.accesses import Accesses
from glow_mlir.dialects.glow_low.loop import moves_of, part_of
from glow_mlir.dialects.glow_low.memory import AddressOp, AllocOp, Buffer, WeightOp, root_of


def view_of(target: SSAValue, type_: Buffer, old: SSAValue) -> SSAValue:
    """
    Build the value that replaces the buffer `old` by the memory of `target`, not inserted yet: a view, a window if
    `target` is one, or the allocation itself if the types agree.
    """
    root = root_of(target)
    if root.type == type_ and not moves_of(target):
        return root
    assert isinstance(old.owner, Operation)
    view = part_of(target if moves_of(target) else root, type_, old.owner.location)
    view.result.name_hint = old.name_hint
    return view.result


def hoist_declaration(block: Block, accesses: Accesses, root: SSAValue, anchor: Operation) -> None:
    """Move the declaration of an allocation or weight in front of `anchor`, if it comes later."""
    declaration, positions = root.owner, accesses.positions
    assert isinstance(declaration, AllocOp | WeightOp)
    if positions.get(declaration, -1) > positions[anchor]:  # Declarations of enclosing blocks dominate this block.
        declaration.detach()
        block.insert_op_before(declaration, anchor)
        positions[declaration] = positions[anchor]


def join_lives(block: Block, accesses: Accesses, root: SSAValue, gone: SSAValue) -> None:
    """Extend the lifetime of `root` to cover that of `gone`, and erase the dealloc of `gone`."""
    deallocs, positions = accesses.deallocs, accesses.positions
    end, other = deallocs.get(root), deallocs.pop(gone, None)
    if end is not None and other is None:
        end.detach()
        block.add_op(end)
        positions[end] = len(positions)
    elif end is not None and other is not None and positions[other] > positions[end]:
        end.detach()
        block.insert_op_before(end, other)
        positions[end] = positions[other]
    if other is not None:
        block.erase_op(other)


def keep_until(accesses: Accesses, values: Iterable[SSAValue], last: Operation) -> None:
    """Extend the lifetimes of the allocations of `values` to `last` at least."""
    block, positions = last.parent_block(), accesses.positions
    assert block is not None
    for root in dict.fromkeys(map(root_of, values)):
        end = accesses.deallocs.get(root)
        if end is not None and positions[end] < positions[last]:
            end.detach()
            block.insert_op_after(end, last)
            positions[end] = positions[last]


def erase_with_views(buffer: SSAValue) -> None:
    """Erase the op that declares a buffer, and all views of it; they must have no other uses."""
    for use in list(buffer.uses):
        erase_with_views(use.operation.results[0])
    assert isinstance(buffer.owner, Operation)
    buffer.owner.detach()
    buffer.owner.erase()


def erase_unused_views(buffer: SSAValue) -> None:
    """Erase a view or window without uses, then its source if that is an unused view, and so on."""
    while isinstance(view := buffer.owner, AddressOp) and view.parent is not None and not buffer.uses:
        buffer = view.source
        view.detach()
        view.erase()
