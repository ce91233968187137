"""From an allocated module to an artifact: constants region, manifest and machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.codegen.glow_low_to_llvm import GlowLowToLlvmPass, executed
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.target import target_named
from glow_mlir.constants.storage import Storage, deferred_constant
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.storage import ConstantOp, PlaceholderOp
from glow_mlir.dialects.glow_low.memory import FuncOp, WeightOp
from glow_mlir.driver.given import check_given
from glow_mlir.driver.pipelines import ALLOCATED, memory_pipeline
from glow_mlir.errors import CompilerBugError
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.text import verify_module
from glow_mlir.ir.traversal import own_operations
from glow_mlir.runtime.artifact import Artifact, Binding, Manifest, Step
from glow_mlir.runtime.executable import aligned
from glow_mlir.support.collector import without_collector


def build_manifest(function: FuncOp, storage: Storage, target: str, profile: bool) -> Manifest:
    """How to call the entry of an allocated function."""
    bindings: list[Binding] = []
    for name in function.binding_names:
        op = storage.by_name[name]
        assert isinstance(op, PlaceholderOp)
        dtype = numpy_dtype(op.tensor_type.element_type).name
        bindings.append(Binding(op.public_name, op.role, dtype, op.tensor_type.get_shape()))
    steps = [
        Step(getattr(op.properties.get("kernel"), "data", ""), op.name.split(".")[1], location_name(op.location))
        for op in executed(function)
    ]
    return Manifest(
        entry=function.sym_name.data,
        bindings=tuple(bindings),
        activations=_size(function, "activations"),
        activations_bound=_size(function, "activations_bound"),
        constants=_size(function, "constants"),
        target=target,
        profile=profile,
        threads=_threads(function),
        steps=tuple(steps),
    )


def _threads(function: FuncOp) -> int:
    attribute = function.attributes.get("threads")
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 1


def _size(function: FuncOp, name: str) -> int:
    attribute = function.attributes.get(name)
    if not isinstance(attribute, IntegerAttr):
        raise CompilerBugError(f"@{function.sym_name.data} is not allocated", hint="run the pass 'allocate' first")
    return attribute.value.data


def zeroed(size: int) -> np.ndarray:
    """`size` zero bytes in memory, aligned."""
    return aligned(size, np.zeros)


def build_constants(function: FuncOp, storage: Storage, room: Callable[[int], np.ndarray] = zeroed) -> np.ndarray:
    """The constants region of an allocated function, in the zero bytes that `room` gives."""
    region = room(_size(function, "constants"))
    for op in own_operations(function):
        if isinstance(op, WeightOp) and op.region is not None and op.region.data == "constants":
            constant = storage.by_name[op.storage_name]
            assert isinstance(constant, ConstantOp)
            assert isinstance(op.offset, IntegerAttr)
            value, begin = deferred_constant(constant), op.offset.value.data
            value.write(region[begin : begin + value.nbytes].view(value.dtype).reshape(value.shape))
            value.forget()
    return region


@without_collector()
def build_artifact(
    module: ModuleOp,
    context: Context,
    target: str = "host",
    profile: bool = False,
    passes: Sequence[ModulePass] | None = None,
    room: Callable[[int], np.ndarray] = zeroed,
) -> Artifact:
    """
    Compile the only function of an allocated module; the module is turned into the `llvm` dialect.

    `passes` do that where whoever calls has checked or made the module. Without them it is `glow-low-to-llvm`, and a
    module that is none, or promises what does not hold, is a `GlowError`. `room` gives as many zero bytes as the
    constants take.
    """
    if passes is None:
        passes = (GlowLowToLlvmPass(target=target, profile=profile),)
        verify_module(module)
        check_given(module, context, memory_pipeline("cpu", target), ALLOCATED.name)
    storage = Storage(module)
    (function,) = low_functions(module)
    manifest = build_manifest(function, storage, target, profile)
    constants = build_constants(function, storage, room)
    for item in passes:
        item.apply(context, module)
    return Artifact(compile_text(emit_module(module), target_named(target)), constants, manifest)
