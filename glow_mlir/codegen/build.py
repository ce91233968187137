"""From an allocated module to an artifact: constants region, manifest and machine code of its functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.analysis.accesses import is_written
from glow_mlir.codegen.binding_layouts import bound_layouts
from glow_mlir.codegen.glow_low_to_scf import (
    GlowLowToScfPass,
    executed,
    failing,
    may_take_long,
    modules_of_targets,
)
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbols import FLOATS_ARE_USED, is_arithmetic, undefined_symbols
from glow_mlir.codegen.scf_to_llvm import ScfToLlvmPass
from glow_mlir.codegen.selection.tables import TABLES
from glow_mlir.constants.deferred import Deferred
from glow_mlir.constants.index_ranges import failure_of
from glow_mlir.constants.storage import Storage, deferred_constant
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.storage import ContentOp
from glow_mlir.dialects.glow_low.memory import FuncOp, WeightOp, aligned_size
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.dialects.target import Target, str_of
from glow_mlir.driver.model_checks import check_given
from glow_mlir.driver.pipelines import ALLOCATED, memory_pipeline
from glow_mlir.errors import CompilerBugError
from glow_mlir.ir.entries import packing_functions, placeholders_of, shared_state, symbols_in
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.run_time_sizes import apply_pass
from glow_mlir.ir.text import verify_module
from glow_mlir.ir.traversal import operations, own_operations
from glow_mlir.runtime.aligned_memory import aligned
from glow_mlir.runtime.artifact import Artifact, Binding, Entry, Failure, Manifest, ProfiledStep, StateValue
from glow_mlir.runtime.shared_constants import is_shared
from glow_mlir.support.activity import say
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.collector import without_collector
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.parallel_work import both


def build_entry(function: FuncOp, profile: bool, code: int, emission: GlowLowToScfPass) -> Entry:
    """
    How to call an allocated function.

    `emission` is the pass that generates its machine code, and `code` the number of the object file.
    """
    steps = [
        ProfiledStep(op.kernel_name, op.name.split(".")[1], location_name(op.location)) for op in executed(function)
    ]
    target = function.target
    return Entry(
        name=function.sym_name.data,
        bindings=placed_layouts(function),
        activations=_size(function, "activations"),
        activations_bound=_size(function, "activations_bound"),
        target=str_of(target),
        machine=target.machine,
        triple=target.triple,
        features=tuple(sorted(target.enabled)),
        code=code,
        profile=profile,
        observed=emission.instrument,
        cancellable=emission.cancellable and may_take_long(function),
        threads=_threads(function),
        symbols=tuple(symbols_in(function)),
        steps=tuple(steps),
        failures=tuple(Failure(failure_of(op), location_name(op.location)) for op in failing(function)),
        writes=_written_state(function),
    )


def placed_layouts(function: FuncOp) -> tuple[Binding, ...]:
    """Inputs, outputs and state of a function; some have an offset among its activations."""
    layouts = bound_layouts(function)
    if function.binding_offsets is None:
        return layouts
    offsets = function.binding_offsets.get_values()
    return tuple(replace(layout, activations_offset=offset) for layout, offset in zip(layouts, offsets, strict=True))


def _written_state(function: FuncOp) -> tuple[str, ...]:
    """The public names of the state that a function writes."""
    state = {op.sym_name.data: op.public_name for op in placeholders_of(function) if op.role == "state"}
    weights = (op for op in own_operations(function) if isinstance(op, WeightOp) and op.storage_name in state)
    return tuple(state[op.storage_name] for op in weights if is_written(op.result))


def _threads(function: FuncOp) -> int:
    """The number of threads that have work: those of the target if an instruction is partitioned, else 1."""
    return function.target.policy.threads if _is_cut(function) else 1


def _is_cut(function: FuncOp) -> bool:
    """Whether an instruction of a function is partitioned."""
    return any("partitions" in op.properties for op in operations(function))


def _size(function: FuncOp, name: str) -> int:
    attribute = function.properties.get(name)
    if not isinstance(attribute, IntegerAttr):
        raise CompilerBugError(f"@{function.sym_name.data} is not allocated", hint="run the pass 'allocate' first")
    return attribute.value.data


def zeroed(size: int) -> np.ndarray:
    """An aligned array of `size` zero bytes."""
    return aligned(size, np.zeros)


@dataclass(frozen=True)
class Content:
    """A constant, or the initial value of state, at its offset in the constants region."""

    offset: int
    value: Deferred

    @property
    def end(self) -> int:
        """The offset at which the next one may begin."""
        return aligned_size(self.offset + self.value.nbytes)

    def write(self, region: np.ndarray) -> None:
        """Write the value to the region."""
        value = self.value
        value.write(region[self.offset : self.offset + value.nbytes].view(value.dtype).reshape(value.shape))
        value.forget()


def constants_of(functions: Iterable[FuncOp], storage: Storage) -> list[Content]:
    """The constants that allocated functions read, each once, in the order of their offsets."""
    found: dict[str, int] = {}
    for function in functions:
        for op in own_operations(function):
            if isinstance(op, WeightOp) and op.region is not None and op.region.data == "constants":
                assert isinstance(op.offset, IntegerAttr)
                found[op.storage_name] = op.offset.value.data
    return [
        Content(offset, deferred_constant(_content_op(storage, name)))
        for name, offset in sorted(found.items(), key=lambda item: item[1])
    ]


def _content_op(storage: Storage, name: str) -> ContentOp:
    op = storage.by_name[name]
    assert isinstance(op, ContentOp)
    return op


def build_state(functions: Iterable[FuncOp], begin: int) -> tuple[list[StateValue], list[Content]]:
    """The state that functions share, and its initial values, at offsets from `begin` on."""
    values: list[StateValue] = []
    contents: list[Content] = []
    for name, op in shared_state(functions).items():
        offset = -1
        if op.has_content:
            offset = contents[-1].end if contents else begin
            contents.append(Content(offset, deferred_constant(op)))
        type_ = op.tensor_type
        values.append(StateValue(name, numpy_dtype(type_.element_type).name, shape_of(type_), offset))
    return values, contents


class Interface(Protocol):
    """Functions that describe machine code to callers that use no session, in addition to its entries."""

    SEAL_BYTES: int
    """The bytes that they need at the end of the constants region."""

    def complete(self, modules: Mapping[Target, ModuleOp], manifest: Manifest, region: np.ndarray) -> None:
        """
        Add the functions to modules of the `llvm` dialect, one per target, and fill their bytes in the constants
        region.
        """


PROGRESS_BYTES = 1 << 25
"""Bytes of constants whose packing takes long enough to report progress."""


def region_bytes(contents: Sequence[Content]) -> int:
    """The size of a constants region with these contents, in bytes."""
    return max((content.end for content in contents), default=0)


def build_manifest(module: ModuleOp, entries: Sequence[Entry], further: int = 0) -> tuple[Manifest, list[Content]]:
    """
    The manifest of an allocated module, and the contents of its constants region: constants, then the initial values of
    state.

    The region has `further` bytes after these.
    """
    functions, hidden = low_functions(module), packing_functions(module)
    contents = constants_of(functions, Storage(module))
    state, initial = build_state(functions, region_bytes(contents))
    whole = [*contents, *initial]
    manifest = Manifest(
        tuple(entry for entry in entries if entry.name not in hidden),
        region_bytes(whole) + further,
        tuple(state),
        tuple(entry for entry in entries if entry.name in hidden),
        tuple((content.offset, content.value.nbytes) for content in contents if is_shared(content.value.nbytes)),
    )
    return manifest, whole


def build_region(
    contents: Sequence[Content], allocate: Callable[[int], np.ndarray] = zeroed, further: int = 0
) -> np.ndarray:
    """The constants region with those contents, and `further` bytes, in zero bytes from `allocate`."""
    size = region_bytes(contents)
    region = allocate(size + further)
    reported = 0
    for content in contents:
        check_cancellation()
        if content.end - reported >= PROGRESS_BYTES:
            say(f"packing weights, {reported >> 20} of {size >> 20} MB")
            reported = content.end
        content.write(region)
    return region


@without_collector()
def build_artifact(
    module: ModuleOp,
    context: Context,
    profile: bool = False,
    passes: Sequence[ModulePass] | None = None,
    allocate: Callable[[int], np.ndarray] = zeroed,
    interface: Interface | None = None,
) -> Artifact:
    """
    Compile the functions of an allocated module, which share their constants; the module is converted to the `llvm`
    dialect.

    `passes` convert it, where the caller has made the module or checked it. By default, these are `glow-low-to-scf` and
    `scf-to-llvm`, and the module is checked: one that is invalid, or whose promises do not hold, is a `GlowError`.
    `allocate` returns zero bytes for the constants. With an `interface`, the object files also have its functions.
    """
    if passes is None:
        passes = (GlowLowToScfPass(profile=profile), ScfToLlvmPass())
        verify_module(module)
        check_given(module, context, memory_pipeline(TABLES), ALLOCATED.name)
    functions = low_functions(module)
    of_entry = {function.sym_name.data: function.target for function in functions}
    # Functions of one target share an object file.
    targets = list(dict.fromkeys(of_entry.values()))
    emission = next((item for item in passes if isinstance(item, GlowLowToScfPass)), GlowLowToScfPass())
    entries = [build_entry(function, profile, targets.index(function.target), emission) for function in functions]
    further = 0 if interface is None else interface.SEAL_BYTES
    manifest, contents = build_manifest(module, entries, further)
    for item in passes:
        apply_pass(item, context, module)
    modules = modules_of_targets(module, of_entry)

    def region() -> np.ndarray:
        return build_region(contents, allocate, further)

    if interface is None:
        code, constants = _code_and_constants(modules, targets, region)
    else:
        constants = region()
        interface.complete(modules, manifest, constants)
        code = tuple(compile_text(emit_module(modules[target]), target) for target in targets)
    return Artifact(code, constants, replace(manifest, requirements=_requirements(code, targets)))


def _code_and_constants(
    modules: Mapping[Target, ModuleOp], targets: Sequence[Target], region: Callable[[], np.ndarray]
) -> tuple[tuple[bytes, ...], np.ndarray]:
    """The object files by target, and the constants region, which is filled while LLVM compiles."""
    texts = [emit_module(modules[target]) for target in targets]
    return both(lambda: tuple(map(compile_text, texts, targets)), region)


def _requirements(code: Sequence[bytes], targets: Sequence[Target]) -> tuple[str, ...]:
    """
    The functions of a compiler's runtime library that object files call, for arithmetic that their processors lack.

    Raises `CompilerBugError` for any other undefined symbol, and for any on x86.
    """
    found: set[str] = set()
    for data, target in zip(code, targets, strict=True):
        missing = undefined_symbols(data)
        if not all(map(is_arithmetic, missing)) or (target.is_x86 and set(missing) - {FLOATS_ARE_USED}):
            raise CompilerBugError(f"machine code calls undefined functions: {', '.join(missing)}")
        found.update(missing)
    return tuple(sorted(found))
