"""`eliminate-copies`: let producers write to the target of a copy, and consumers read from its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.analysis.accesses import Access, Accesses, may_be_same_buffer
from glow_mlir.analysis.regions import Relocation, region_of, regions_overlap
from glow_mlir.backends.interface import Backend, get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.loop import is_same_buffer
from glow_mlir.dialects.glow_low.memory import (
    AddressOp,
    AllocOp,
    Buffer,
    CopyOp,
    buffer_type,
    root_of,
    strides_of,
)
from glow_mlir.dialects.shapes import element_of, largest_shape, sizes_of
from glow_mlir.dialects.target import Target
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import blocks, own_operations
from glow_mlir.rewriting.buffers import erase_unused_views, erase_with_views, hoist_declaration, join_lives, view_of
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class EliminateCopiesPass(ModulePass):
    """
    Remove copies by making one of their buffers a view of the other (Glow's OptimizeInserts and OptimizeExtracts, and
    the copies of its ShareBuffers).

    Forwards, an allocation becomes a view of the copy's target: its producer writes directly into the result of a
    concat, the interior of a pad, or an output. Backwards, an allocation becomes a view of the copy's source: its
    consumers read the slice or the transpose in place. Both require that no conflicting access comes between, except
    one by a producer that may work in place, and that the backend executes all affected instructions on the views.

    With `inside`, only branches and loops are processed: once their elementwise instructions are stacks, these may
    update loop-carried values in place.
    """

    name = "eliminate-copies"

    inside: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in low_functions(op):
            backend, target = get_backend(function.target.backend), function.target
            for block in blocks(function)[int(self.inside) :]:
                CopyElimination(block, Accesses.of(block), backend, storage, target).run()


def keeps_unit_stride(old: SSAValue, new: Buffer) -> bool:
    """Whether the innermost axis keeps unit stride if it had it: loops are vectorized along it."""
    axes = zip(largest_shape(old), strides_of(old), strides_of(new), strict=True)
    inner = [(before, after) for size, before, after in axes if size > 1]
    return not inner or inner[-1][0] != 1 or inner[-1][1] == 1


@dataclass(frozen=True)
class CopyElimination:
    """The copy elimination of one block."""

    block: Block
    accesses: Accesses
    backend: Backend
    storage: Storage
    target: Target

    def run(self) -> None:
        """
        Remove the copies of the block.

        Forwards, the last copy comes first: a chain of copies then collapses to its last target at once. Backwards, the
        first comes first.
        """
        copies = [op for op in own_operations(self.block) if isinstance(op, CopyOp) and op.kernel is None]
        left = [copy for copy in reversed(copies) if not self.forwards(copy)]
        for copy in reversed(left):
            self.backwards(copy)

    def forwards(self, copy: CopyOp) -> bool:
        """Let producers of the source write the target directly; return whether the copy was removed."""
        source, target = root_of(copy.source), root_of(copy.target)
        allocation = source.owner
        if not isinstance(allocation, AllocOp) or not self.accesses.is_local(source) or source is target:
            return self._is_void(copy)
        moved, now = self._others(source, copy), self.accesses.positions[copy]
        if not moved or any(access.writes and access.position > now for access in moved):
            return False
        offset, in_place = region_of(copy.target), list[Access]()
        for access in self.accesses.near(target, offset):
            if access.op is copy:
                continue
            fills_early = moved[0].position <= access.position <= now
            spoils = now < access.position <= moved[-1].position and access.writes
            if (fills_early or spoils) and regions_overlap(access.region, offset):
                if access.op is not moved[0].op or access.writes:
                    return False
                in_place.append(access)
        views = None if in_place else self._renamed(copy)
        views = views or self._views(moved, copy.source, copy.target, in_place)
        if views is None:
            return False
        hoist_declaration(self.block, self.accesses, target, allocation)
        self._finish(source, target, copy, views, allocation)
        return True

    def backwards(self, copy: CopyOp) -> bool:
        """Let consumers of the target read the source directly; return whether the copy was removed."""
        source, target = root_of(copy.source), root_of(copy.target)
        if not isinstance(target.owner, AllocOp) or not self.accesses.is_local(target) or source is target:
            return self._is_void(copy)
        moved, now = self._others(target, copy), self.accesses.positions[copy]
        if not moved or any(access.writes or access.position <= now for access in moved):
            return False
        offset = region_of(copy.source)
        for access in self.accesses.near(source, offset):
            spoils = now < access.position <= moved[-1].position and access.writes
            if spoils and regions_overlap(access.region, offset):
                return False
        views = self._views(moved, copy.target, copy.source)
        if views is None:
            return False
        self._finish(target, source, copy, views, copy)
        return True

    def _others(self, root: SSAValue, copy: CopyOp) -> list[Access]:
        """The accesses to an allocation or weight, except those of `copy`."""
        return [access for access in self.accesses.to(root) if access.op is not copy]

    def _is_void(self, copy: CopyOp) -> bool:
        """Erase a copy of a buffer to itself; return whether it was one."""
        is_void = is_same_buffer(copy.target, copy.source)
        if is_void:
            self._erase(copy)
        return is_void

    def _erase(self, copy: CopyOp) -> None:
        """Erase a copy, and views that only it used."""
        self.accesses.forget(copy)
        operands = set(copy.operands)
        self.block.erase_op(copy)
        statistics.count("copies eliminated")
        for value in operands:
            erase_unused_views(value)

    def _renamed(self, copy: CopyOp) -> dict[SSAValue, SSAValue] | None:
        """
        Replace the source by the target at all uses, windows of loops included; `None` unless both are whole buffers of
        one type.
        """
        source, target = copy.source, copy.target
        if source is not root_of(source) or target is not root_of(target) or source.type != target.type:
            return None
        kept = (copy, self.accesses.deallocs.get(source))
        source.replace_uses_with_if(target, lambda use: use.operation not in kept)
        return {source: target}

    def _views(
        self, moved: Sequence[Access], whole: SSAValue, offset: SSAValue, in_place: Sequence[Access] = ()
    ) -> dict[SSAValue, SSAValue] | None:
        """
        Map the buffers of `moved` to views for `whole` at `offset`, with the instructions already changed to use them.

        `None`, without changes, if strides cannot express a view, the backend does not execute an instruction on it, or
        the first instruction may not update the accesses `in_place`.
        """
        own = all(access.op in self.accesses.positions for access in moved)  # Accesses inside loops may use windows.
        if not own or not all(isinstance(access.op, Instruction) and is_open(access.op) for access in moved):
            return None
        types = types_after(Relocation.between(whole, offset), moved)
        if types is None:
            return None
        slow = {access.op for access in moved if not keeps_unit_stride(access.value, types[access.value])}
        views = {old: view_of(offset, type_, old) for old, type_ in types.items()}
        before = [access.value for access in moved]
        for access in moved:
            access.op.operands[access.index] = views[access.value]
        written = [access for access in moved if access.op is moved[0].op]
        alike = all(_may_meet(access, read) for read in in_place for access in written)
        if alike and all(self._takes(op, op in slow) for op in dict.fromkeys(access.op for access in moved)):
            return views
        for access, old in zip(moved, before, strict=True):
            access.op.operands[access.index] = old
        for view in views.values():
            if isinstance(view.owner, AddressOp) and view.owner.parent is None:
                view.owner.erase()
        return None

    def _takes(self, op: Operation, needs_strides: bool) -> bool:
        """Whether the backend executes an instruction with its new operands, and as fast as before."""
        if needs_strides:
            return self.backend.supports_strided_inner(op, self.storage, self.target)
        return self.backend.can_select(op, self.storage, self.target)

    def _finish(
        self,
        gone: SSAValue,
        root: SSAValue,
        copy: CopyOp,
        views: Mapping[SSAValue, SSAValue],
        anchor: Operation,
    ) -> None:
        """Insert the new views in front of `anchor`; erase the copy and the allocation that `root` now contains."""
        for view in views.values():
            if isinstance(view.owner, AddressOp) and view.owner.parent is None:
                self.block.insert_op_before(view.owner, anchor)
        self._erase(copy)
        self.accesses.move(gone, root)
        join_lives(self.block, self.accesses, root, gone)
        erase_with_views(gone)


def _may_meet(written: Access, read: Access) -> bool:
    """Whether an instruction may write in place over this read."""
    op = written.op
    return isinstance(op, Instruction) and may_be_same_buffer(op, written.index, read.index)


def types_after(relocation: Relocation | None, moved: Sequence[Access]) -> dict[SSAValue, Buffer] | None:
    """The new types of the buffers of `moved`; `None` if strides cannot express one."""
    types: dict[SSAValue, Buffer] = {}
    for access in moved:
        old = access.value
        if old not in types:
            layout = relocation.strides_and_offset(old) if relocation is not None else None
            if layout is None:
                return None
            types[old] = buffer_type(sizes_of(old), element_of(old), *layout)
    return types


def is_open(op: Operation) -> bool:
    """Whether an instruction has no kernel yet."""
    return "kernel" not in op.properties
