"""The interface of a backend to passes, sessions and tools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.costs import Costs, with_costs
from glow_mlir.dialects.device import devices_of
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.packages import DEFAULT_BACKEND, SEVERAL_BACKENDS
from glow_mlir.dialects.target import Target, named_fields, with_fields
from glow_mlir.driver.pipelines import OPTIMIZE, Pipeline, memory_pipeline
from glow_mlir.errors import ModelError, OptionError
from glow_mlir.ir.locations import source_location
from glow_mlir.ir.registry import BACKENDS, LayoutMaker, kernels_of, packed_forms_of
from glow_mlir.ir.rewriting import functions
from glow_mlir.options.declaration import Range
from glow_mlir.options.placement import HOST
from glow_mlir.options.policy import MAX_THREADS, THREADS
from glow_mlir.runtime.devices import DeviceMemory
from glow_mlir.runtime.executable import Executable

AllocateConstants = Callable[[int], np.ndarray]
"""Allocates zero bytes for constants, aligned to 64."""

Made = TypeVar("Made")

QUEUE_SECONDS = 2e-5
"""Seconds from the end of an operation in one queue to the start of a dependent one in another."""


class Compiling(Protocol):
    """A compilation as its backend sees it, implemented by `glow_mlir.driver.compiler`."""

    module: ModuleOp
    as_given: bool
    """Whether the module was given as IR, and should run unchanged if the backend supports that."""

    @property
    def context(self) -> Context:
        """The context with the registered dialects."""
        ...

    @property
    def ladder(self) -> Pipeline:
        """The pipeline of the compilation."""
        ...

    def targets(self) -> dict[str, Target]:
        """Function → its target."""
        ...

    def run(self, until: str | None = None) -> ModuleOp:
        """Run the stages up to and including `until`, by default all."""
        ...

    def check_given(self) -> None:
        """Verify the guarantees of the stage that the module declares."""

    def with_module(self, module: ModuleOp, backend: str) -> Any:
        """The result of another backend for an optimized module, compiled under the same observers."""
        ...

    def finish(self, make: Callable[[Sequence[ModulePass]], Made]) -> Made:
        """Let `make` run the passes of the last stage; return its result for the module."""
        ...


class Backend(ABC):
    """
    A target of compilation: which operators it executes, how modules are compiled for it, and how they run.

    Sessions and tools call `compile` and `load`; passes call the other methods, on the backend named by the target of a
    function.
    """

    name: ClassVar[str]
    KEEPS_MODULE: ClassVar[bool] = True
    """Whether the module must outlive its artifact, so that its weights stay in memory."""
    MACHINE_CODE: ClassVar[bool] = False
    """Whether it loads `MachineCode`, with sizes, steps and stamps."""
    MAX_THREADS: ClassVar[int] = MAX_THREADS
    """The maximum thread count of an inference."""
    PART_SCRATCH: ClassVar[int] = 0
    """
    The maximum private scratch in bytes of an instruction's tasks, if all may run at once; 0 if scratch belongs to the
    threads that run them.
    """
    TABLES: ClassVar[tuple[str, ...]] = ()
    """The backends that provide its kernels and packed forms, the preferred first; by default only itself."""

    @cached_property
    def kernels(self) -> dict[str, Any]:
        """Name → kernel, in order of preference."""
        makers: dict[str, Any] = {}
        for table in self.TABLES or (self.name,):
            makers |= {name: make for name, make in kernels_of(table).all().items() if name not in makers}
        return {name: make() for name, make in makers.items()}

    @cached_property
    def packed_forms(self) -> dict[str, LayoutMaker]:
        """Name of a packed form of operands → its layout."""
        forms: dict[str, LayoutMaker] = {}
        for table in self.TABLES or (self.name,):
            forms = {**packed_forms_of(table).all(), **forms}
        return forms

    def compile(self, compilation: Compiling, allocate: AllocateConstants | None = None) -> Any:
        """
        Compile a module to an artifact for `load`; this default returns the module after the last stage.

        A backend whose artifacts are stored on disk returns an `Artifact`, with its constants in memory from
        `allocate`.
        """
        return compilation.run()

    @abstractmethod
    def load(self, artifact: Any, threads: int) -> Executable:
        """Load an artifact; an inference uses up to `threads` threads."""

    def targets(self) -> Mapping[str, Target]:
        """The named machines of the backend, except `host`."""
        return {}

    def about_targets(self) -> Mapping[str, str]:
        """Short descriptions of the named machines."""
        return {}

    def host(self) -> Target:
        """The machine of this process, or its attached device that the backend compiles for."""
        return Target(self.name)

    def target(self, text: str = HOST) -> Target:
        """
        The machine of a name, with other values for some fields: `avx2`, or `avx2,vector_bits=128,threads=2`.

        Raises `OptionError` for an unknown name or field, and for an invalid value.
        """
        name, fields = named_fields(text)
        if name == HOST:
            return with_fields(self.host(), fields)
        known = self.targets()
        if name not in known:
            raise OptionError(f"no target is called '{name}'", hint=f"there are {', '.join((HOST, *sorted(known)))}")
        return with_fields(known[name], fields)

    def measured(self, target: Target) -> Costs:
        """The measured costs of such a machine; by default those of the default backend."""
        return get_backend(DEFAULT_BACKEND).measured(target)

    def check_target(self, target: Target) -> None:
        """Raise `OptionError` for a machine that the backend cannot compile for."""
        costs_of(target)
        Range(1, self.MAX_THREADS, THREADS).check("threads", target.policy.threads)

    def accepts(self, target: Target) -> bool:
        """Whether the backend runs code for a target; by default only for its own targets."""
        return target.backend == self.name

    def lacks(self, target: Target) -> str:
        """The requirements of code for a target that this machine lacks, as text; empty if it lacks none."""
        return ""

    @abstractmethod
    def supports(self, op: Operation) -> bool:
        """Whether the backend executes this operator of `glow_high` directly, so that it is not lowered."""

    def refuses(self, op: Operation, storage: Storage, target: Target) -> str:
        """
        The reason why a device refuses an operator of `glow_high`, in a few words; empty if it accepts.

        Called before operators are lowered, to partition a module (docs/devices.md); `supports` is called as well, for
        the lowered operators. The answer holds for all operators of the same kind, properties and types with the same
        operands constant, whatever their values.
        """
        return ""

    def cost(self, op: Operation, target: Target) -> float | None:
        """The approximate seconds of an operator of `glow_high` on a device; `None` leaves that to the cost model."""
        return None

    def transfer_cost(self, nbytes: int, target: Target) -> float:
        """Seconds of a transfer between host and device; by default the overhead of a queue."""
        return QUEUE_SECONDS

    def memory(self, target: Target) -> DeviceMemory:
        """The memory of a device; by default host memory."""
        return DeviceMemory(alignment=target.alignment, is_host=True)

    def load_on(self, artifact: Any, number: int, threads: int) -> Executable:
        """
        Load an artifact on the device of a number, with up to `threads` threads on the host.

        If the executable has a device, its entries are `QueueEntry`s; the host, which exists any number of times, calls
        all others. Raises `OptionError` for a missing device.
        """
        return self.load(artifact, threads)

    def can_select(self, op: Operation, storage: Storage, target: Target) -> bool:
        """
        Whether `select` can implement this instruction as it is: types, properties, strides, bodies.

        Passes call it before they keep a change of an instruction. Operands may be views with any strides and offsets.
        """
        return self.supports(op)

    def can_fuse(self, op: Operation, storage: Storage, target: Target) -> bool:
        """
        Whether `select` can implement this instruction with its bodies, in less time or memory than separate
        instructions.
        """
        return self.can_select(op, storage, target)

    def supports_strided_inner(self, op: Operation, storage: Storage, target: Target) -> bool:
        """Whether an instruction is equally fast if the innermost axis of an operand is strided."""
        return False

    def supports_row_tiling(self, op: Operation, storage: Storage, target: Target, must_be_best: bool = True) -> bool:
        """
        Whether an instruction can compute some lines of an image, as fast and with the same bits as in the whole image,
        given the number of lines of the image (`image_lines`).

        Without `must_be_best`, it may be slower, or have other bits.
        """
        return False

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        """
        The pipeline from an imported graph to the backend's executable form, for functions without a target.

        This default ends with memory allocation. A backend adds its own passes by name (`Pipeline.before`, `after`,
        `replace`, `without`) and its own stages (`Pipeline.then`). With `profile`, the code records the time of each
        instruction.
        """
        return memory_pipeline(self.name, target)

    def select(
        self, op: Operation, storage: Storage, target: Target, tune: bool = False, capacity: int | None = None
    ) -> None:
        """
        Choose kernel, tiles, operand packing, scratch and parts for one instruction, and write them on it.

        An instruction that no kernel executes is left as it is. With the accuracy strict, sums keep the bound of
        docs/floating-point.md for plain ones. For several threads, an instruction is cut up where that is faster.
        With `tune` the choice is measured, on this machine; raises `OptionError` for a target whose code it cannot run.
        With `capacity`, scratch takes at most so many bytes, if there is such a way.
        """

    def check_selected(self, op: Operation, target: Target) -> None:
        """Raise `ModelError` if the attributes written by `select` are inconsistent, or do not fit the target."""


def get_backend(name: str) -> Backend:
    """The backend of a name; raises `OptionError` for an unknown one."""
    make = BACKENDS.first(name)
    if make is None:
        raise OptionError(f"no backend '{name}'", hint=f"there are {', '.join(sorted(BACKENDS.all()))}")
    return make()


@cache
def costs_of(target: Target) -> Costs:
    """
    The costs of operations on a machine: its own, or those measured by its backend.

    Raises `OptionError` for an unknown cost.
    """
    return with_costs(get_backend(target.backend).measured(target), target.costs)


def backend_of(function: FunctionOp) -> Backend:
    """The backend of a function; raises `ModelError` if it cannot compile for the function's target."""
    backend = get_backend(function.target.backend)
    try:
        backend.check_target(function.target)
    except OptionError as error:
        location, name = source_location(function), function.sym_name.data
        raise ModelError(f"the target of @{name} cannot be: {error.reason}", file=location, hint=error.hint) from error
    return backend


def module_backend(module: ModuleOp) -> str:
    """
    The backend of a module's functions; the backend for several devices if it has devices; or the default.

    Raises `OptionError` if functions of a module without devices disagree.
    """
    if devices_of(module):
        return SEVERAL_BACKENDS
    found: dict[str, str] = {}
    for function in functions(module):
        if function.assigned is not None:
            found.setdefault(function.assigned.data.backend, function.sym_name.data)
    if len(found) > 1:
        listed = ", ".join(f"@{function} for '{name}'" for name, function in found.items())
        hint = "a module for each, or a backend that runs what is for any; partitions say their devices"
        raise OptionError(f"the functions of the module are for several backends: {listed}", hint=hint)
    return next(iter(found), DEFAULT_BACKEND)


def runnable_targets(backend: Backend) -> list[str]:
    """The named machines of a backend whose code this machine can run."""
    return [HOST, *(name for name, target in sorted(backend.targets().items()) if not backend.lacks(target))]


def named_pipelines(target: str | None = None) -> dict[str, Pipeline]:
    """All pipelines by name: `optimize`, shared by all backends, and that of each backend under its name."""
    backends = (get_backend(name).pipeline(target) for name in sorted(BACKENDS.all()))
    return {pipeline.name: pipeline for pipeline in (OPTIMIZE.for_target(target), *backends)}


def named_pipeline(name: str, target: str | None = None) -> Pipeline:
    """The pipeline of a name; raises `OptionError` for an unknown one."""
    if name == OPTIMIZE.name:
        return OPTIMIZE.for_target(target)
    if BACKENDS.get(name) is None:
        names = ", ".join((OPTIMIZE.name, *sorted(BACKENDS.all())))
        raise OptionError(f"no pipeline '{name}'", hint=f"there are {names}")
    return get_backend(name).pipeline(target)
