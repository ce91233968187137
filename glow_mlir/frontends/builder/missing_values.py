"""Errors for operands that determine shapes but depend on inputs of the model, whose values have to be given."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.glow_high.storage import GetOp
from glow_mlir.dialects.shapes import size_of
from glow_mlir.dialects.sizes import RunTimeSizeError
from glow_mlir.errors import InputValuesError, LargeInputError, TripValuesError, UnsupportedError
from glow_mlir.frontends.builder.constant_folding import ConstantFolding
from glow_mlir.frontends.builder.dependences import Dependences
from glow_mlir.ir.run_time_sizes import has_run_time_sizes

MAX_READ = 256
"""
The maximum number of elements of an input whose value determines shapes: enough for sizes, axes, borders and steps of
every axis, and for lists of parts. Larger inputs would cause a compilation for nearly every call.
"""


def missing_value(
    value: SSAValue,
    what: str,
    node: str,
    inputs: Sequence[str],
    folding: ConstantFolding,
    dependences: Dependences,
) -> UnsupportedError:
    """
    The error for `what`, an operand of a node that determines shapes and depends on inputs.

    `inputs` are the names of the function's inputs, in order.
    """
    reason = f"{what} depends on an input of the model"
    names: set[str] = set()
    for root in dependences.roots(value):
        if folding.of(root) is not None:
            continue
        if isinstance(root.owner, Operation) and has_run_time_sizes(root.owner):
            return RunTimeSizeError(f"that {what} depends on")
        if not isinstance(root.owner, GetOp):
            return TripValuesError(f"{what} depends on the iteration", node=node)
        if (count := size_of(root)) > MAX_READ:
            large = f"'{root.owner.storage_name}' has {count} elements"
            hint = f"{large}, but only values of at most {MAX_READ} elements can determine shapes"
            return LargeInputError(reason, node=node, hint=hint)
        names.add(root.owner.storage_name)
    ordered = [name for name in inputs if name in names]
    return InputValuesError(reason, ordered, node=node) if ordered else UnsupportedError(reason, node=node)
