"""`allocate`: assign a region and an offset to every buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, StringAttr, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from glow_mlir.analysis.liveness import Life, Lifetime, binding_lifetimes, declaration_of, lifetimes, peak
from glow_mlir.analysis.placement import Request, place
from glow_mlir.backends.interface import get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.storage import ConstantOp, PlaceholderOp
from glow_mlir.dialects.glow_low.memory import ALIGNMENT, AllocOp, FuncOp, WeightOp, aligned_size, byte_size
from glow_mlir.dialects.properties import whole_number
from glow_mlir.dialects.shapes import largest_shape
from glow_mlir.errors import OutOfMemoryError
from glow_mlir.ir import statistics
from glow_mlir.ir.entries import placeholders_of
from glow_mlir.ir.locations import short_location_names, source_location
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.runtime.shared_constants import PAGE, is_shared
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class AllocatePass(ModulePass):
    """
    Place allocations in one activations region so that simultaneously live ones do not overlap, and constants in
    sequence in the constants region, which functions share; other buffers are bound by position (Glow's
    MemoryAllocator).

    Several placement orders are tried and improved; the smallest result is kept. Offsets are multiples of 64 bytes, or
    of the alignment that the target's memory requires; constants that several executables may share are aligned to
    pages. The function records the sizes as `activations`, `activations_bound` (a lower bound of any arena) and
    `constants`. With `exchanged`, inputs and outputs are placed among the activations too, in `binding_offsets`, for as
    long as they are live.

    Raises `OutOfMemoryError` if these and the function's bindings exceed the `ram_bytes` of its target, and for a
    region that the target's pointers cannot span.
    """

    name = "allocate"

    exchanged: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        alignments = map(alignment_of, low_functions(op))
        storage, constants = Storage(op), Constants(max(alignments, default=ALIGNMENT))
        placed = {
            function: allocate_activations(function, exchanged_bytes(function) if self.exchanged else {})
            for function in low_functions(op)
        }
        for function, lives in placed.items():
            check_limit(function, lives)
            allocate_storage(function, storage, constants)
            check_span(function)


def alignment_of(function: FuncOp) -> int:
    """The alignment in bytes of offsets in the regions of a function, as the memory of its target requires."""
    if function.assigned is None:
        return ALIGNMENT
    target = function.target
    return get_backend(target.backend).memory(target).alignment


def exchanged_bytes(function: FuncOp) -> dict[int, int]:
    """Binding position → the bytes of the input or output there."""
    return {
        position: _bytes_of(op)
        for position, op in enumerate(placeholders_of(function))
        if op.role in {"input", "output"}
    }


def allocate_activations(function: FuncOp, exchanged: Mapping[int, int]) -> Sequence[Life]:
    """
    Assign offsets to the allocations of one function, and to the bindings in `exchanged` (position → bytes).

    Returns the lifetimes of all of them.
    """
    lives: list[Life] = [*lifetimes(function), *binding_lifetimes(function, exchanged)]
    alignment = alignment_of(function)
    offsets = place([Request(life.begin, life.end, aligned_size(life.size, alignment)) for life in lives])
    positions = [-1] * len(function.binding_names)
    for life, offset in zip(lives, offsets, strict=True):
        if isinstance(life, Lifetime):
            life.allocation.offset = whole_number(offset)
        else:
            positions[life.binding] = offset
    if exchanged:
        function.binding_offsets = DenseArrayBase.from_list(i64, positions)
    ends = (offset + aligned_size(life.size, alignment) for life, offset in zip(lives, offsets, strict=True))
    size = max(ends, default=0)
    function.activations = whole_number(size)
    statistics.count("buffers placed", len(lives))
    statistics.count("bytes of activations", size)
    function.activations_bound = whole_number(peak(lives, alignment))
    return lives


def check_limit(function: FuncOp, lives: Sequence[Life]) -> None:
    """Raise `OutOfMemoryError` if the activations of a function exceed the memory limit of its target."""
    assert function.activations is not None
    size = function.activations.value.data
    if function.assigned is not None and function.target.limits.ram_bytes and size > capacity_of(function):
        raise _beyond_limit(function, lives, size)


def bound_bytes(function: FuncOp) -> int:
    """
    The bytes of inputs, outputs and state while a function runs: the state of all functions of its module, which
    persists between calls, and the largest inputs and outputs of a function, whose memory all share.
    """
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    state: dict[str, int] = {}
    largest = 0
    for other in low_functions(module):
        if other.assigned != function.assigned:
            continue
        exchanged = 0
        for op in placeholders_of(other):
            size = aligned_size(_bytes_of(op), alignment_of(other))
            if op.role in {"input", "output"}:
                exchanged += 0 if other.binding_offsets is not None else size
            else:
                state[op.sym_name.data] = size
        largest = max(largest, exchanged)
    return largest + sum(state.values())


def _bytes_of(op: PlaceholderOp) -> int:
    """The bytes of an input, output or state, at the maximum of its symbols."""
    return prod(largest_shape(op.tensor_type)) * byte_width(op.tensor_type.element_type)


def capacity_of(function: FuncOp) -> int:
    """The bytes that the target's limit leaves for the activations of a function."""
    return max(0, function.target.limits.ram_bytes - bound_bytes(function))


def check_span(function: FuncOp) -> None:
    """Raise `OutOfMemoryError` if offsets in a region of a function exceed the target's pointer range."""
    if function.assigned is None:
        return
    bits = function.target.pointer_bits
    assert function.activations is not None
    assert function.constants is not None
    sizes = {
        "activations": function.activations.value.data,
        "constants": function.constants.value.data,
        "inputs, outputs and state": bound_bytes(function),
    }
    for region, size in sizes.items():
        # Signed offsets span half of the address space.
        if size >> (bits - 1):
            values = [op.result for op in own_operations(function) if isinstance(op, (AllocOp, WeightOp))]
            largest = max(values, key=byte_size).owner
            raise OutOfMemoryError(
                f"@{function.sym_name.data} has {size:,} bytes of {region}, more than pointers of {bits} bits span",
                file=source_location(largest),
                node=_short_name(function, largest),
                hint="smaller inputs, or a target with pointers of 64 bits",
            )


def _short_name(function: FuncOp, op: Operation) -> str:
    """The node names of an operation, shortened to the part that is unique in the function."""
    return short_location_names((op, *own_operations(function))).get(op, "")


def _beyond_limit(function: FuncOp, lives: Sequence[Life], size: int) -> OutOfMemoryError:
    """The error for activations that exceed the limit."""
    bound, limit = bound_bytes(function), function.target.limits.ram_bytes
    # At the peak, report the buffer declared last, the instruction's own.
    largest = max(lives, key=lambda at: sum(life.size for life in lives if life.begin <= at.begin < life.end))
    declared = declaration_of(largest, function)
    needed = f"{size:,} bytes of activations beside {bound:,} of inputs, outputs and state"
    hint = "what takes most is here: smaller inputs, 8-bit quantized values, or fewer channels"
    if bound >= limit:
        hint = "smaller inputs and outputs, or of fewer bits"
    return OutOfMemoryError(
        f"@{function.sym_name.data} takes {needed}, {size + bound - limit:,} more than its limit of {limit:,}",
        file=source_location(declared),
        node=_short_name(function, declared),
        hint=hint,
    )


@dataclass
class Constants:
    """The constants region, shared by the functions of a module: one offset per constant."""

    alignment: int = ALIGNMENT
    positions: dict[str, int] = field(default_factory=dict[str, int])
    size: int = 0

    def place(self, weight: WeightOp) -> int:
        """The offset of a constant, assigned at its first declaration."""
        if weight.storage_name not in self.positions:
            size = byte_size(weight.result)
            if is_shared(size):
                self.size = aligned_size(self.size, PAGE)
            self.positions[weight.storage_name] = self.size
            self.size += aligned_size(size, self.alignment)
        return self.positions[weight.storage_name]


_CONSTANTS, _BINDINGS = StringAttr("constants"), StringAttr("bindings")
"""Regions of weights."""


def allocate_storage(function: FuncOp, storage: Storage, constants: Constants) -> None:
    """Set region and offset of the weights of one function."""
    end = 0
    bindings = {name: index for index, name in enumerate(function.binding_names)}
    for op in own_operations(function):
        if not isinstance(op, WeightOp):
            continue
        if isinstance(storage.by_name[op.storage_name], ConstantOp):
            offset = constants.place(op)
            op.region, op.offset = _CONSTANTS, whole_number(offset)
            end = max(end, offset + aligned_size(byte_size(op.result), constants.alignment))
        else:
            op.region, op.offset = _BINDINGS, whole_number(bindings[op.storage_name])
    function.constants = whole_number(end)
