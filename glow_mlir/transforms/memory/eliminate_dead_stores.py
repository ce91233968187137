"""`eliminate-dead-stores`: erase instructions whose results are never read."""

from __future__ import annotations

from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.analysis.accesses import Access, accesses_of
from glow_mlir.analysis.regions import Region, region_covers, region_of, regions_overlap
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_low.base import Instruction, Qualifier
from glow_mlir.dialects.glow_low.loop import moves_of
from glow_mlir.dialects.glow_low.memory import WeightOp, root_of
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import blocks_inside_out, own_operations, own_operations_backward
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class EliminateDeadStoresPass(ModulePass):
    """
    Erase instructions whose results are never read: neither by a later instruction before they are overwritten, nor by
    the caller, who sees the final outputs and state (Glow's DSE).
    """

    name = "eliminate-dead-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in low_functions(op):
            for block in blocks_inside_out(function):
                eliminate_dead_stores(block)


@dataclass
class Demand:
    """
    The regions, by allocation or weight, that are read behind a position of a block before they are overwritten.

    Buffers declared outside the block may be read behind it, or in its next run.
    """

    block: Block
    regions: dict[SSAValue, dict[Region, None]] = field(default_factory=dict[SSAValue, dict[Region, None]])

    def add(self, root: SSAValue, region: Region) -> None:
        """Record a read of a region."""
        self.regions.setdefault(root, {})[region] = None

    def wants(self, access: Access) -> bool:
        """Whether anything that an access writes is read."""
        root = root_of(access.value)
        declaration = root.owner
        if isinstance(declaration, Operation) and declaration.parent is not self.block:
            return True
        wanted = self.regions.get(root, {})
        return any(regions_overlap(region, access.region) for region in wanted)

    def overwrite(self, access: Access) -> None:
        """Record that a buffer is overwritten as a whole. Windows differ in each trip, and are ignored."""
        if moves_of(access.value):
            return
        root = root_of(access.value)
        if wanted := self.regions.get(root):
            self.regions[root] = {region: None for region in wanted if not region_covers(access.region, region)}


def eliminate_dead_stores(block: Block) -> None:
    """Erase the dead stores of one block, in one backward walk."""
    demand = Demand(block)
    for op in own_operations(block):
        if isinstance(op, WeightOp) and op.mutable is not None:
            demand.add(op.result, region_of(op.result))
    for op in own_operations_backward(block):
        accesses = accesses_of(op)
        stores = [access for access in accesses if is_store(access)]
        is_wanted = any(demand.wants(access) for access in stores)
        if isinstance(op, Instruction | ControlFlowOp) and stores and not is_wanted:
            block.erase_op(op)
            statistics.count("dead stores erased")
            continue
        for access in stores:
            if access.op is op and not access.reads:
                demand.overwrite(access)
        for access in accesses:
            if access.reads:
                demand.add(root_of(access.value), access.region)


def is_store(access: Access) -> bool:
    """Whether an access is a store that others may read; leftovers in @scratch are meaningless."""
    qualifiers = access.op.uses() if isinstance(access.op, Instruction) else []
    return access.writes and (not qualifiers or qualifiers[access.index][0] is not Qualifier.SCRATCH)
