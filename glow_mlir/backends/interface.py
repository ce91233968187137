"""What a backend says about itself, and what the passes ask it."""

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
"""Gives as many zero bytes as constants take, aligned to 64."""

Made = TypeVar("Made")

QUEUE_SECONDS = 2e-5
"""Seconds from the end of what one queue does to the begin of what another one does behind that."""


class Compiling(Protocol):
    """A compilation as its backend drives it; `glow_mlir.driver.compiler` has it."""

    module: ModuleOp
    as_given: bool
    """Whether the module was given as IR, and is to run as it stands where the backend can do that."""

    @property
    def context(self) -> Context:
        """Where its dialects are registered."""
        ...

    @property
    def ladder(self) -> Pipeline:
        """The pipeline."""
        ...

    def targets(self) -> dict[str, Target]:
        """Function → its target."""
        ...

    def run(self, until: str | None = None) -> ModuleOp:
        """Run the stages up to and including `until`, by default all."""
        ...

    def check_given(self) -> None:
        """Check what the module promises at the stage that it says to be at."""

    def with_module(self, module: ModuleOp, backend: str) -> Any:
        """What another backend makes of an optimized module, compiled under the same observers."""
        ...

    def finish(self, make: Callable[[Sequence[ModulePass]], Made]) -> Made:
        """Let `make` run the passes of the last stage, and give what it makes of the module."""
        ...


class Backend(ABC):
    """
    A target of compilation: what it can execute, how modules are compiled for it, and how they run.

    Sessions and tools ask it to `compile` and `load`; passes ask the rest, of the backend that the target of a function
    names.
    """

    name: ClassVar[str]
    KEEPS_MODULE: ClassVar[bool] = True
    """Whether a module lives as long as what is made of it, so that its weights have to be in memory."""
    MACHINE_CODE: ClassVar[bool] = False
    """Whether what it loads is `MachineCode`, with sizes, steps and stamps."""
    MAX_THREADS: ClassVar[int] = MAX_THREADS
    """For how many threads an inference may be cut."""
    PART_SCRATCH: ClassVar[int] = 0
    """
    How many bytes private scratch of the parts of an instruction may have, which may all run at once; 0 where it is of
    the threads that run them.
    """
    TABLES: ClassVar[tuple[str, ...]] = ()
    """The backends in whose tables its kernels and packed forms are, the preferred first; by default its own alone."""

    @cached_property
    def kernels(self) -> dict[str, Any]:
        """Name → kernel, in the order in which they are preferred."""
        makers: dict[str, Any] = {}
        for table in self.TABLES or (self.name,):
            makers |= {name: make for name, make in kernels_of(table).all().items() if name not in makers}
        return {name: make() for name, make in makers.items()}

    @cached_property
    def packed_forms(self) -> dict[str, LayoutMaker]:
        """Name of a form in which its kernels have operands → its layout."""
        forms: dict[str, LayoutMaker] = {}
        for table in self.TABLES or (self.name,):
            forms = {**packed_forms_of(table).all(), **forms}
        return forms

    def compile(self, compilation: Compiling, allocate: AllocateConstants | None = None) -> Any:
        """
        What `load` takes, made of the module of a compilation: here the module, behind the last stage.

        A backend whose artifacts are kept on disk gives an `Artifact`, with its constants in what `allocate` gives.
        """
        return compilation.run()

    @abstractmethod
    def load(self, artifact: Any, threads: int) -> Executable:
        """What `compile` gave, ready to be called; an inference computes in up to `threads`."""

    def targets(self) -> Mapping[str, Target]:
        """The machines that the backend knows by name, besides `host`."""
        return {}

    def about_targets(self) -> Mapping[str, str]:
        """What the machines that the backend knows by name are, in a few words for people."""
        return {}

    def host(self) -> Target:
        """The machine that this process runs on, or the device beside it that the backend compiles for."""
        return Target(self.name)

    def target(self, text: str = HOST) -> Target:
        """
        The machine of a name, with other values for some of its fields: `avx2`, or `avx2,vector_bits=128,threads=2`.

        Raises `OptionError` for a name or a field that there is not, and for a value that the field cannot have.
        """
        name, fields = named_fields(text)
        if name == HOST:
            return with_fields(self.host(), fields)
        known = self.targets()
        if name not in known:
            raise OptionError(f"no target is called '{name}'", hint=f"there are {', '.join((HOST, *sorted(known)))}")
        return with_fields(known[name], fields)

    def measured(self, target: Target) -> Costs:
        """What the backend has measured of such a machine; one that has measured nothing takes what the default has."""
        return get_backend(DEFAULT_BACKEND).measured(target)

    def check_target(self, target: Target) -> None:
        """Raise `OptionError` for a machine that the backend cannot compile for."""
        costs_of(target)
        Range(1, self.MAX_THREADS, THREADS).check("threads", target.policy.threads)

    def accepts(self, target: Target) -> bool:
        """Whether the backend runs what is compiled for a target: by default, what is compiled for itself."""
        return target.backend == self.name

    def lacks(self, target: Target) -> str:
        """What this machine lacks to run code for a target, in words; empty where it lacks nothing."""
        return ""

    @abstractmethod
    def supports(self, op: Operation) -> bool:
        """Whether the backend executes this operator of `glow_high` as it is, so that it need not be lowered."""

    def refuses(self, op: Operation, storage: Storage, target: Target) -> str:
        """
        Why a device of that target does not get an operator of `glow_high`, in a few words; empty where it may.

        It is asked before operators are lowered, of one among the partitions of a module (docs/devices.md), besides
        `supports`, which is asked of what it is lowered to. The answer is that for all operators of the same kind,
        properties and types, of whose operands the same are constants, whatever these hold.
        """
        return ""

    def cost(self, op: Operation, target: Target) -> float | None:
        """Seconds that an operator of `glow_high` takes on a device, about; `None` leaves that to the cost model."""
        return None

    def transfer_cost(self, nbytes: int, target: Target) -> float:
        """Seconds that so many bytes take from the host to a device or back; by default what a queue takes."""
        return QUEUE_SECONDS

    def memory(self, target: Target) -> DeviceMemory:
        """The memory of a device; by default that of the host."""
        return DeviceMemory(alignment=target.alignment, is_host=True)

    def load_on(self, artifact: Any, number: int, threads: int) -> Executable:
        """
        What `compile` gave, ready to be called on the device of that number, in up to `threads` where that is the host.

        Where the executable says a device, its entries are `QueueEntry`s; the host, of which there is any number, calls
        all others. Raises `OptionError` where there is no such device.
        """
        return self.load(artifact, threads)

    def can_select(self, op: Operation, storage: Storage, target: Target) -> bool:
        """
        Whether `select` finds a way to execute this instruction as it is: types, properties, strides, bodies.

        Passes ask before they keep a change of an instruction. Its operands may be views, whose strides and offsets the
        backend has to cope with.
        """
        return self.supports(op)

    def can_fuse(self, op: Operation, storage: Storage, target: Target) -> bool:
        """
        Whether `select` finds a way to execute this instruction with its bodies, and in less time or memory than these
        take for themselves.
        """
        return self.can_select(op, storage, target)

    def supports_strided_inner(self, op: Operation, storage: Storage, target: Target) -> bool:
        """Whether an instruction is as fast where elements along the innermost axis of an operand lie apart."""
        return False

    def supports_row_tiling(self, op: Operation, storage: Storage, target: Target, must_be_best: bool = True) -> bool:
        """
        Whether an instruction computes some lines of an image as it would among all: as fast, and the same bits, if it
        says of how many lines the image is (`image_lines`).

        Without `must_be_best` it may be slower, or have other bits, than where it computes all lines at once.
        """
        return False

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        """
        The way from an imported graph to what the backend runs, for functions that say no other target.

        This one ends with places in memory. A backend adds its own passes by name (`Pipeline.before`, `after`,
        `replace`, `without`) and its own stages (`Pipeline.then`). With `profile`, its code keeps the time of each
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
        """Raise `ModelError` where what `select` writes on an instruction does not fit together, or to the target."""


def get_backend(name: str) -> Backend:
    """The backend of that name; raises `OptionError` where there is none."""
    make = BACKENDS.get(name)
    if make is None:
        raise OptionError(f"no backend '{name}'", hint=f"there are {', '.join(sorted(BACKENDS.all()))}")
    return make()


@cache
def costs_of(target: Target) -> Costs:
    """
    What operations cost on a machine: what it says itself, and else what its backend has measured.

    Raises `OptionError` for a cost that there is not.
    """
    return with_costs(get_backend(target.backend).measured(target), target.costs)


def backend_of(function: FunctionOp) -> Backend:
    """The backend of a function; raises `ModelError` where it does not compile for the target of the function."""
    backend = get_backend(function.target.backend)
    try:
        backend.check_target(function.target)
    except OptionError as error:
        location, name = source_location(function), function.sym_name.data
        raise ModelError(f"the target of @{name} cannot be: {error.reason}", file=location, hint=error.hint) from error
    return backend


def module_backend(module: ModuleOp) -> str:
    """
    The backend that functions of a module are for, that for several where it has devices, else the default.

    Raises `OptionError` where they differ in a module without devices.
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
    """The names of the machines of a backend whose code this one can run."""
    return [HOST, *(name for name, target in sorted(backend.targets().items()) if not backend.lacks(target))]


def named_pipelines(target: str | None = None) -> dict[str, Pipeline]:
    """All pipelines by name: `optimize`, which all backends share, and that of each backend under its name."""
    backends = (get_backend(name).pipeline(target) for name in sorted(BACKENDS.all()))
    return {pipeline.name: pipeline for pipeline in (OPTIMIZE.for_target(target), *backends)}


def named_pipeline(name: str, target: str | None = None) -> Pipeline:
    """The pipeline of that name; raises `OptionError` where there is none."""
    if name == OPTIMIZE.name:
        return OPTIMIZE.for_target(target)
    if BACKENDS.get(name) is None:
        names = ", ".join((OPTIMIZE.name, *sorted(BACKENDS.all())))
        raise OptionError(f"no pipeline '{name}'", hint=f"there are {names}")
    return get_backend(name).pipeline(target)
