"""
Verification of modules given as text or as values: the invariants of their stage, before passes or machine code rely on
them.

An error in such a module is its author's, reported in one line; an error made by one of our passes is a bug.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

from glow_mlir.constants.index_ranges import failure_of, wrong_constant
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.weights import known_digest, type_fault
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.control_flow import YieldOp
from glow_mlir.dialects.glow_high.storage import ContentOp, FunctionOp, StorageOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.driver.pipelines import STRUCTURED, Pipeline, memory_pipeline, passes_of
from glow_mlir.errors import ModelError
from glow_mlir.ir.checks import CheckFailed
from glow_mlir.ir.locations import location_name, source_location
from glow_mlir.ir.rewriting import functions, low_functions
from glow_mlir.ir.run_time_sizes import apply_pass
from glow_mlir.ir.traversal import operations

FIRST_OF_INSTRUCTIONS = "verify-low"
"""The pass that ends the first stage with functions of `glow_low`."""

OF_BACKENDS = ("verify-lowered", "verify-selected")
"""The passes that query a backend for support."""


def promises(pipeline: Pipeline, stage: str, *, instructions: bool) -> tuple[ModulePass, ...]:
    """
    The verification passes up to a stage of a pipeline.

    With `instructions`, at least those up to the first stage with instructions, whatever the stage. A pipeline without
    instructions, such as the interpreter's, uses those of the shared passes that query no backend.
    """
    checks = {part.name: [spec for spec in part.specs if _verifies(spec)] for part in pipeline.stages}
    if instructions and not any(spec.name == FIRST_OF_INSTRUCTIONS for specs in checks.values() for spec in specs):
        shared = memory_pipeline(pipeline.name)
        checks = {
            part.name: [spec for spec in part.specs if _verifies(spec) and spec.name not in OF_BACKENDS]
            for part in shared.stages
        }
    found: dict[str, ArgSpec] = {}
    is_ahead = stage in checks
    for name, specs in checks.items():
        if is_ahead or (instructions and FIRST_OF_INSTRUCTIONS not in found):
            found |= {spec.name: spec for spec in specs}
        is_ahead &= name != stage
    return passes_of(tuple(found.values()))


def _verifies(spec: ArgSpec) -> bool:
    return spec.name.startswith("verify-")


def check_given(module: ModuleOp, context: Context, pipeline: Pipeline, stage: str) -> None:
    """
    Verify a module that declares to be at a stage of a pipeline.

    Raises `ModelError`, or another `GlowError` of a verification pass, with position, node and reason of the first
    violation.
    """
    if stage != STRUCTURED:
        check_contents(module)
    check_constants(module)
    check_indices(module)
    for item in promises(pipeline, stage, instructions=bool(low_functions(module))):
        try:
            apply_pass(item, context, module)
        except CheckFailed as failure:
            hint = f"docs/ir.md says what '{item.name}' checks of instructions"
            file_position, node = source_location(failure.op), location_name(failure.op.location)
            raise ModelError(str(failure), file=file_position, node=node, hint=hint) from failure


def check_contents(module: ModuleOp) -> None:
    """Verify that a module has only storage and functions: other operations would be lost. Raises `ModelError`."""
    for op in module.body.block.ops:
        if not isinstance(op, StorageOp | FunctionOp):
            hint = "the ladder starts from glow_high or glow_low, and ends with llvm; mlir-opt takes other dialects"
            reason = f"{op.name} is neither storage nor a function of them"
            raise ModelError(reason, file=source_location(op), node=location_name(op.location), hint=hint)

    check_functions(module)


def check_functions(module: ModuleOp) -> None:
    """Verify that functions contain only operations of their dialect, nested regions included: passes rely on it."""
    for function in functions(module):
        for op in operations(function):
            if not function.holds(op) and not isinstance(op, YieldOp):
                reason = f"{function.name} @{function.sym_name.data} does not hold {op.name}"
                hint = "branches and loops are 'if' and 'loop' of the function's own dialect"
                raise ModelError(reason, file=source_location(op), node=location_name(op.location), hint=hint)


def check_constants(module: ModuleOp) -> None:
    """Verify that the weights of each constant and of state are loaded, with its type; raises `ModelError`."""
    for op in module.body.block.ops:
        if not isinstance(op, ContentOp) or op.weights is None:
            continue
        digest = op.weights.data
        if (known := known_digest(digest)) is None:
            hint = "the weight file belongs beside the .mlir file, under its name; stdin and bundles have none"
            raise ModelError(f"weights {digest} are not loaded", file=source_location(op), hint=hint)
        dtype, shape = numpy_dtype(op.tensor_type.element_type), shape_of(op.tensor_type)
        if reason := type_fault(digest, known.weights, dtype, shape):
            raise ModelError(
                reason, file=source_location(op), hint="the weights belong to another module, or the type was changed"
            )


def check_indices(module: ModuleOp) -> None:
    """Verify that constant indices are within the ranges of their operators; raises `ModelError`."""
    storage = Storage(module)
    for function in functions(module):
        for op in operations(function):
            if wrong_constant(op, storage):
                reason = f"{op.name}: {failure_of(op, storage)}"
                raise ModelError(reason, file=source_location(op), node=location_name(op.location))
