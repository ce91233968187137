"""`verify-allocated`: verify that buffers have offsets, and simultaneously live buffers do not overlap."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from glow_mlir.analysis.liveness import BindingLifetime, Life, binding_lifetimes, declaration_of, lifetimes
from glow_mlir.dialects.glow_low.memory import FuncOp, WeightOp, aligned_size, byte_size
from glow_mlir.ir.checks import CheckFailed, require_at
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.options.policy import MAX_BYTES
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.memory.allocate import alignment_of, exchanged_bytes


@dataclass(frozen=True)
class VerifyAllocatedPass(ModulePass):
    """
    Verify region and offset of every buffer: aligned, within its region, disjoint from all simultaneously live buffers.
    """

    name = "verify-allocated"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = low_functions(op)
        for function in functions:
            check_activations(function)
            check_weights(function)
        check_constants(functions)


def check_activations(function: FuncOp) -> None:
    """Verify the allocations of one function by a sweep over positions."""
    size = _size(function, "activations")
    bound = _number(function, function.activations_bound, "no bound of its activations")
    require_at(function, 0 <= bound <= size, f"no {size} bytes of activations can be bounded by {bound}")
    placed: list[tuple[Life, int]] = [
        (life, _number(life.allocation, life.allocation.offset, "no offset")) for life in lifetimes(function)
    ]
    placed += placed_bindings(function)
    alignment = alignment_of(function)
    for life, offset in placed:
        at = declaration_of(life, function)
        require_at(at, offset % alignment == 0, f"offset {offset} is misaligned")
        inside = 0 <= offset and offset + life.size <= size
        require_at(at, inside, f"offset {offset} is outside the {size} bytes of activations")
    _check_use(function, "activations", size, max((offset + life.size for life, offset in placed), default=0))
    live: list[tuple[Life, int]] = []
    for life, offset in sorted(placed, key=lambda item: item[0].begin):
        live = [(other, start) for other, start in live if other.end > life.begin]
        for other, start in live:
            apart = offset + life.size <= start or start + other.size <= offset or not life.size or not other.size
            reason = f"offset {offset} overlaps an allocation at offset {start} that is live"
            require_at(declaration_of(life, function), apart, reason)
        live.append((life, offset))


def placed_bindings(function: FuncOp) -> list[tuple[BindingLifetime, int]]:
    """The inputs and outputs placed among the activations, with their offsets."""
    if function.binding_offsets is None:
        return []
    offsets = function.binding_offsets.get_values()
    require_at(function, len(offsets) == len(function.binding_names), "there is not one offset for each binding")
    own = exchanged_bytes(function)
    for position, offset in enumerate(offsets):
        reason = f"binding {position} is state, which lives on between calls"
        require_at(function, offset == -1 or position in own, reason)
    lives = binding_lifetimes(function, {position: size for position, size in own.items() if offsets[position] != -1})
    return [(life, offsets[life.binding]) for life in lives]


def check_weights(function: FuncOp) -> None:
    """Verify the offsets of constants and bindings of one function."""
    size = _size(function, "constants")
    reach = 0
    alignment, names = alignment_of(function), function.binding_names
    bound_names = frozenset(names)
    for op in own_operations(function):
        if not isinstance(op, WeightOp):
            continue
        offset = _number(op, op.offset, "no offset")
        region = op.region.data if isinstance(op.region, StringAttr) else ""
        if region == "bindings":
            bound = 0 <= offset < len(names) and names[offset] == op.storage_name
            require_at(op, bound, f"@{op.storage_name} is not binding {offset}")
            continue
        require_at(op, region == "constants", f"@{op.storage_name} is in no region")
        is_constant = op.storage_name not in bound_names
        require_at(op, is_constant, f"@{op.storage_name} is a binding, and no constant")
        require_at(op, offset % alignment == 0, f"offset {offset} is misaligned")
        end = offset + byte_size(op.result)
        require_at(op, 0 <= offset and end <= size, f"offset {offset} is outside the {size} bytes of constants")
        reach = max(reach, end)
    _check_use(function, "constants", size, reach)


def check_constants(functions: Sequence[FuncOp]) -> None:
    """Verify that each constant has one offset in the shared region, disjoint from all others."""
    placed: dict[str, tuple[int, WeightOp]] = {}
    for function in functions:
        for op in own_operations(function):
            if isinstance(op, WeightOp) and op.region is not None and op.region.data == "constants":
                offset = _number(op, op.offset, "no offset")
                first, _ = placed.setdefault(op.storage_name, (offset, op))
                require_at(op, offset == first, f"@{op.storage_name} is at offset {first} as well")
    end = 0
    for offset, op in sorted(placed.values(), key=lambda item: item[0]):
        require_at(op, offset >= end, f"offset {offset} overlaps the constant before it")
        end = offset + byte_size(op.result)


def _size(function: FuncOp, region: str) -> int:
    """The bytes of a region that the caller must provide."""
    size = _number(function, function.properties.get(region), f"no size of its {region}")
    require_at(function, 0 <= size <= MAX_BYTES, f"{size} is no size of its {region}")
    return size


def _check_use(function: FuncOp, region: str, size: int, end: int) -> None:
    """Verify that a region is no larger than its buffers need."""
    least = aligned_size(end, alignment_of(function))
    require_at(function, size <= least, f"the buffers take {end} of the {size} bytes of {region}")


def _number(op: Operation, attribute: Attribute | None, absence: str) -> int:
    if not isinstance(attribute, IntegerAttr):
        raise CheckFailed(op, f"there is {absence}")
    return attribute.value.data
