"""
Whether the choices on a selected instruction fit together: kernel, tiles, packed operands, partitions and scratch.

Choices of `Candidate.write` do. Edited text may have anything; its code might compute nothing, or write out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.selection.acceptance import executes
from glow_mlir.codegen.selection.kernel import UNBOUNDED, Buffer, Kernel, operands_of, tiles_of
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.codegen.selection.partitions import partitions_of, private_copies, steps_of_axes, widened
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import buffer_type, is_contiguous
from glow_mlir.dialects.properties import integer, ints, text
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.dialects.target import Target
from glow_mlir.runtime.pool_layout import MAX_PARTS

Fault = tuple[str, str]
"""The fault, and a hint."""


def fault_of(op: Instruction, kernels: Mapping[str, Kernel], target: Target) -> Fault | None:
    """
    The first fault of an instruction that names one of the kernels of its backend.

    The target has the number of threads of the function.
    """
    name = op.kernel_name
    kernel = kernels.get(name)
    if kernel is None:
        return f"there is no kernel '{name}'", "remove 'kernel', and run 'select'"
    if not executes(kernel, op):
        return f"the kernel '{name}' does not execute this {op.name}", "remove 'kernel', and run 'select'"
    if not kernel.suits(op, target):
        return f"the kernel '{name}' does not execute {op.name} of these sizes", "select for the target of the code"
    for faults in (_of_tiles, _of_packing, _of_partitions, _of_scratch):
        for fault in faults(op, kernel, target):
            return fault
    return None


def _of_tiles(op: Instruction, kernel: Kernel, target: Target) -> Iterator[Fault]:
    choices, tiles = kernel.choices(op, target), tiles_of(op)
    known = f"it has {_listed(choices)}" if choices else "it has none"
    for name, size in tiles.items():
        if name not in choices:
            yield f"the kernel '{kernel.name}' has no tiles '{name}'", known
        elif size not in choices[name].values:
            yield f"'{name}' of the tiles cannot be {size}", f"it is {_bounds(choices[name].values)}"
    for name, choice in choices.items():
        if choice.needed and name not in tiles:
            yield f"the kernel '{kernel.name}' needs '{name}' in 'tiles'", f"it is {_bounds(choice.values)}"


def _of_packing(op: Instruction, kernel: Kernel, target: Target) -> Iterator[Fault]:
    found, wanted = op.properties.get("packing"), kernel.packed(op, target)
    if found is None:
        if kernel.ONLY_PACKED:
            yield f"the kernel '{kernel.name}' needs its operands packed", "remove 'kernel', and run 'select'"
        return
    entries = _entries(op, "packing")
    if not wanted or set(entries) != set(wanted):
        yield (
            f"'packing' has {_listed(entries)}, the kernel '{kernel.name}' packs {_listed(wanted)}",
            "select for the target of the code",
        )
        return
    for name, form in wanted.items():
        (value,) = operands_of(op, name)
        for fault in _of_packed(name, value, entries[name], form):
            yield fault, "select for the target of the code"


def _of_packed(name: str, value: SSAValue, entry: Attribute, form: PackedForm) -> Iterator[str]:
    """The faults of a packed operand."""
    given = _described(entry)
    layout = form.layout
    wanted = {"form": layout.form, "shape": layout.plain, **layout.numbers}
    for key in {**wanted, **given} if given != wanted else ():
        found, right = given.get(key, "missing"), wanted.get(key, "missing")
        if found != right:
            yield f"'{key}' of the packed '{name}' is {found}, not {right}"
    if (shape_of(value), element_of(value)) != (layout.shape, form.element) or not is_contiguous(value):
        yield f"the packed '{name}' is {value.type}, not {buffer_type(layout.shape, form.element)}"


def _described(entry: Attribute) -> dict[str, object]:
    """The content of an entry of `packing`, which has been verified."""
    assert isinstance(entry, DictionaryAttr)
    known = {"form": text, "shape": ints}
    return {key: known.get(key, integer)(value) for key, value in entry.data.items()}


def _of_partitions(op: Instruction, kernel: Kernel, target: Target) -> Iterator[Fault]:
    if "partitions" not in op.properties:
        return
    counts = _entries(op, "partitions")
    for axis in counts:
        if axis not in kernel.AXES:
            yield f"the kernel '{kernel.name}' has no axis '{axis}' for 'partitions'", f"it has {_listed(kernel.AXES)}"
    if target.policy.threads < 2:
        yield (
            "there are 'partitions' in a function for one thread",
            "its attribute 'threads' gives the number of threads",
        )
    # Code for an axis that is missing would never run.
    steps = steps_of_axes(op, kernel, target)
    if set(counts) != set(steps):
        yield (
            f"'partitions' has {_listed(counts)}, not the axes of the kernel '{kernel.name}' for this {op.name}",
            f"for {target.policy.threads} threads they are {_listed(steps)}",
        )
    for axis, count in counts.items():
        # A single step runs only once.
        upper = min(steps[axis], MAX_PARTS)
        if not _is_between(count, 1, upper):
            yield f"'{axis}' of the partitions cannot be {_numeral(count)}", f"it is {_bounds(range(1, upper + 1))}"


def _of_scratch(op: Instruction, kernel: Kernel, target: Target) -> Iterator[Fault]:
    wanted: list[Buffer] = list(kernel.scratch(op, target))
    if parts := partitions_of(op):
        for number in kernel.private(op):
            # The kernel may number buffers that are missing.
            if number < len(wanted):
                wanted[number] = widened(wanted[number], private_copies(parts, target))
    values = operands_of(op, "scratch")
    found = [(shape_of(value), element_of(value)) for value in values]
    if found != wanted or not all(map(is_contiguous, values)):
        yield (
            f"@scratch of the kernel '{kernel.name}' has {_buffers(wanted)}, not {_buffers(found)}",
            "select for the target and the threads of the code",
        )


def _entries(op: Instruction, name: str) -> Mapping[str, Attribute]:
    """The entries of a property; none if it is absent."""
    found = op.properties.get(name)
    return found.data if isinstance(found, DictionaryAttr) else {}


def _is_between(count: Attribute, lower: int, upper: int) -> bool:
    return isinstance(count, IntegerAttr) and lower <= count.value.data <= upper


def _numeral(number: Attribute) -> str:
    """A number without its type; any other attribute as it is written."""
    return str(number.value.data) if isinstance(number, IntegerAttr) else str(number)


def _bounds(values: Sequence[int]) -> str:
    """The possible values of a number, in words."""
    if isinstance(values, range) and len(values) > 2:
        return f"{values[0]} or more" if values[-1] == UNBOUNDED else f"{values[0]} to {values[-1]}"
    return " or ".join(map(str, values))


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"


def _buffers(buffers: Sequence[Buffer]) -> str:
    return ", ".join("x".join([*map(str, shape), str(element)]) for shape, element in buffers) or "nothing"
