"""Errors for passes on modules with run-time sizes: a pass that needs a number reports the operation that lacks it."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from glow_mlir.dialects.shapes import SHAPED, has_static_shape, sizes_of
from glow_mlir.dialects.sizes import HINT, RunTimeSizeError, SizesAttr, fitting_hint
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.entries import symbols_in
from glow_mlir.ir.locations import location_name, source_location
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.traversal import function_of, operations


def apply_pass(item: ModulePass, context: Context, module: ModuleOp) -> None:
    """
    Apply a pass to a module.

    Raises the errors of the pass, with a `RunTimeSizeError` turned into an `UnsupportedError` with file, node and pass.
    """
    try:
        item.apply(context, module)
    except RunTimeSizeError as error:
        raise unhandled(module, item.name, error) from error


def unsupported_at(op: Operation, error: RunTimeSizeError) -> UnsupportedError:
    """The error for an operation that needs a number for a size."""
    reason = f"{op.name} needs a number where the size {error.size} is known at run time only"
    return UnsupportedError(reason, file=source_location(op), node=location_name(op.location), hint=hint_at(op))


def unhandled(module: ModuleOp, name: str, error: RunTimeSizeError) -> UnsupportedError:
    """The error for a pass that needs a number for a size, at the first operation with a value of that size."""
    file_position = first_with(module, error.size)
    reason = f"pass '{name}' needs numbers, and the size {error.size} is known at run time only"
    if file_position is None:
        return UnsupportedError(reason, hint=error.hint)
    return UnsupportedError(
        reason,
        file=source_location(file_position),
        node=location_name(file_position.location),
        hint=hint_at(file_position),
    )


def hint_at(op: Operation) -> str:
    """The hint for an operation of a function that needs a number for a size."""
    return fitting_hint(HINT, bool(symbols_in(function_of(op))))


def has_run_time_sizes(op: Operation) -> bool:
    """Whether run-time sizes determine the results of an operation, or occur in its properties."""
    has_sizes = any(isinstance(value, SizesAttr) for value in op.properties.values())
    return has_sizes or not all(has_static_shape(result) for result in op.results)


def require_numbers(op: Operation, user: str) -> None:
    """
    Raise `UnsupportedError` unless all operands of an instruction have static sizes; `user` names the code that needs
    them, as `no kernel`.
    """
    if not all(map(has_static_shape, op.operands)):
        reason = f"{user} takes sizes that are known at run time only, as {op.name} has"
        file_position = source_location(op)
        raise UnsupportedError(reason, file=file_position, node=location_name(op.location), hint=hint_at(op))


def first_with(module: ModuleOp, size: object) -> Operation | None:
    """The first operation of a function with a result or operand of that size along an axis."""
    for function in functions(module):
        for op in operations(function):
            values = (*op.results, *op.operands)
            if any(isinstance(value.type, SHAPED) and size in sizes_of(value) for value in values):
                return op
    return None
