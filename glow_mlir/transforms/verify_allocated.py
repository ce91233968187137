"""`verify-allocated`: from here on every buffer has its place, and buffers that live at once do not overlap."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from glow_mlir.analysis.liveness import Lifetime, lifetimes
from glow_mlir.dialects.glow_low.memory import FuncOp, WeightOp
from glow_mlir.transforms.allocate import ALIGNMENT
from glow_mlir.transforms.rewriting import low_functions


@dataclass(frozen=True)
class VerifyAllocatedPass(ModulePass):
    """Check region and offset of every buffer: present, aligned, inside its region, apart from all that live at once."""

    name = "verify-allocated"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in low_functions(op):
            check_activations(function)
            for inner in function.block.ops:
                if isinstance(inner, WeightOp) and (inner.region is None or inner.offset is None):
                    raise VerifyException(f"weight @{inner.storage_name} has no place")


def check_activations(function: FuncOp) -> None:
    """Check the allocations of one function by a sweep over positions."""
    size = function.attributes.get("activations")
    if not isinstance(size, IntegerAttr):
        raise VerifyException(f"@{function.sym_name.data} has no size of its activations")
    placed = [(life, _offset(life)) for life in lifetimes(function.block)]
    for life, offset in placed:
        if offset % ALIGNMENT or offset + life.size > size.value.data:
            raise VerifyException(f"{life.allocation.result} at offset {offset} is misaligned or outside its region")
    live: list[tuple[Lifetime, int]] = []
    for life, offset in sorted(placed, key=lambda item: item[0].begin):
        live = [(other, start) for other, start in live if other.end > life.begin]
        for other, start in live:
            if offset < start + other.size and start < offset + life.size:
                raise VerifyException(f"{life.allocation.result} overlaps {other.allocation.result} at offset {offset}")
        live.append((life, offset))


def _offset(life: Lifetime) -> int:
    offset = life.allocation.offset
    if not isinstance(offset, IntegerAttr):
        raise VerifyException(f"{life.allocation.result} has no offset")
    return offset.value.data
