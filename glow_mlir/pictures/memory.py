"""The arena of an allocated function over time, drawn as rectangles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, SSAValue

from glow_mlir.analysis.cost import bytes_moved
from glow_mlir.analysis.liveness import binding_lifetimes
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_low.base import Instruction, Qualifier
from glow_mlir.dialects.glow_low.control_flow import RegionOp
from glow_mlir.dialects.glow_low.memory import (
    AllocOp,
    DeallocOp,
    FuncOp,
    ViewOp,
    byte_size,
    extent_of,
    offset_of,
    root_of,
)
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir.entries import placeholders_of
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import inner_blocks, operations
from glow_mlir.pictures.graph import ENTRY, family_of, function_label, kind_of, quantization_details, shape_text
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.memory.allocate import exchanged_bytes


@dataclass(frozen=True)
class View:
    """A part of a buffer with its own type; `offset` and `size` are bytes from the buffer's start."""

    name: str
    shape: str
    offset: int
    size: int


@dataclass(frozen=True)
class Buffer:
    """A buffer: its byte range, and its lifetime from step `begin` to `end` (exclusive)."""

    name: str
    kind: str
    """The kind of the first instruction that writes it, or `scratch`."""
    family: str
    origins: tuple[str, ...]
    shape: str
    offset: int
    size: int
    begin: int
    end: int
    views: tuple[View, ...]
    notes: tuple[str, ...] = ()
    """Its quantization parameters, or `None`."""


@dataclass(frozen=True)
class DrawnStep:
    """One instruction, branch or loop: its kernel, the bytes it reads and writes, and the nodes it comes from."""

    kind: str
    family: str
    kernel: str
    moved: int
    origins: tuple[str, ...]
    depth: int = 0
    """The number of enclosing branches and loops."""


@dataclass(frozen=True)
class Memory:
    """The activations of a function: sizes in bytes, the step at which most are live, buffers and steps."""

    function: str
    """Its name and target."""
    size: int
    bound: int
    constants: int
    peak: int
    buffers: tuple[Buffer, ...]
    steps: tuple[DrawnStep, ...]


def memory_of(module: ModuleOp, entry: str = ENTRY) -> Memory | None:
    """
    The memory of the entry, or of the first function if there is no such entry; `None` without allocated functions.
    """
    allocated = [function for function in low_functions(module) if function.activations is not None]
    named = [function for function in allocated if function.sym_name.data == entry]
    return next((function_memory(function) for function in (*named, *allocated)), None)


def function_memory(function: FuncOp) -> Memory:
    """The memory of an allocated function."""
    steps: list[DrawnStep] = []
    lives: dict[SSAValue, tuple[int, int]] = {}
    writers: dict[SSAValue, Instruction] = {}
    depths: dict[Block, int] = {function.block: 0}
    ahead: list[int] = []
    """Operation → number of steps before it."""
    for op in operations(function):
        ahead.append(len(steps))
        block = op.parent_block()
        depth = 0 if block is None else depths[block]
        depths.update((inner, depth + 1) for inner in inner_blocks(op))
        if isinstance(op, AllocOp):
            lives[op.result] = (len(steps), -1)
        elif isinstance(op, DeallocOp):
            lives[op.buffer] = (lives[op.buffer][0], len(steps))
        elif isinstance(op, RegionOp):
            steps.append(DrawnStep(kind_of(op), family_of(op), "", 0, location_names(op.location), depth))
        elif isinstance(op, Instruction):
            steps.append(step_of(op, depth))
            for qualifier, value in op.uses():
                if qualifier in (Qualifier.OUT, Qualifier.INOUT):
                    writers.setdefault(root_of(value), op)
    buffers = [
        buffer_of(value, writers.get(value), begin, len(steps) if end < 0 else end)
        for value, (begin, end) in lives.items()
    ]
    buffers += bound_buffers(function, [*ahead, len(steps)])
    names = ("activations", "activations_bound", "constants")
    size, bound, constants = (_number(function.properties.get(name)) for name in names)
    return Memory(
        function_label(function), size, bound, constants, peak_of(buffers, len(steps)), tuple(buffers), tuple(steps)
    )


def bound_buffers(function: FuncOp, ahead: Sequence[int]) -> list[Buffer]:
    """The inputs and outputs placed in the activations; `ahead` has the number of steps before each operation."""
    if function.binding_offsets is None:
        return []
    offsets, placeholders = function.binding_offsets.get_values(), list(placeholders_of(function))
    sizes = {at: size for at, size in exchanged_bytes(function).items() if offsets[at] != -1}
    found: list[Buffer] = []
    for life in binding_lifetimes(function, sizes):
        op = placeholders[life.binding]
        begin, end = (ahead[min(at, len(ahead) - 1)] for at in (life.begin, life.end))
        value = None if life.weight is None else life.weight.result
        shape, notes = ("", ()) if value is None else (shape_text(value), quantization_details([value]))
        found.append(
            Buffer(op.public_name, op.role, op.role, (), shape, offsets[life.binding], life.size, begin, end, (), notes)
        )
    return found


def _number(attribute: object) -> int:
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 0


def step_of(op: Instruction, depth: int) -> DrawnStep:
    """The table entry of an instruction nested in `depth` branches and loops."""
    return DrawnStep(kind_of(op), family_of(op), op.kernel_name, bytes_moved(op), location_names(op.location), depth)


def buffer_of(value: SSAValue, writer: Instruction | None, begin: int, end: int) -> Buffer:
    """The displayed buffer of an allocation, which `writer` writes first; `None` for scratch."""
    allocation = value.owner
    assert isinstance(allocation, AllocOp)
    kind, family = ("scratch", "scratch") if writer is None else (kind_of(writer), family_of(writer))
    offset = _number(allocation.offset)
    origins = location_names(allocation.location)
    views = tuple(sorted(map(view_of, all_views(value)), key=lambda view: (view.offset, view.size)))
    shape, size, notes = shape_text(value), byte_size(value), quantization_details([value])
    return Buffer(value.name_hint or "", kind, family, origins, shape, offset, size, begin, end, views, notes)


def all_views(value: SSAValue) -> list[ViewOp]:
    """The views of a buffer, including views of views."""
    found: list[ViewOp] = []
    pending = [value]
    while pending:
        views = [use.operation for use in pending.pop().uses if isinstance(use.operation, ViewOp)]
        found += views
        pending += [view.result for view in views]
    return found


def view_of(op: ViewOp) -> View:
    """The location of a view in its buffer."""
    width = byte_width(element_of(op.result))
    begin = offset_of(op.result) * width
    return View(op.result.name_hint or "", shape_text(op.result), begin, extent_of(op.result) * width - begin)


def peak_of(buffers: list[Buffer], count: int) -> int:
    """The first step with the maximum live bytes."""
    changes = [0] * (count + 1)
    for buffer in buffers:
        changes[buffer.begin] += buffer.size
        changes[min(buffer.end, count)] -= buffer.size
    best = peak = live = 0
    for position, change in enumerate(changes[:count]):
        live += change
        if live > best:
            best, peak = live, position
    return peak
