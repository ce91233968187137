"""`assign-target`: say for what machine functions are compiled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.backends.interface import HOST, backend_of, get_backend
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.dialects.target import FIELDS, Target, TargetAttr, with_fields
from glow_mlir.errors import OptionError
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import functions

_OF_USE = ("backend", "threads", "accuracy", "optimize", "ram_bytes", "flash_bytes")
"""Fields that say what a function is for, not the machine."""

MACHINE = (*(name for name in FIELDS if name not in _OF_USE), "costs")
"""What a name such as `avx2` says of a target."""


@dataclass(frozen=True)
class AssignTargetPass(ModulePass):
    """
    Give every function without a target the one that the options describe: that of the machine this runs on, or the one
    that the backend calls `target`, with the fields that are given besides.

    What a function says itself stands. Options that contradict it are an `OptionError`, unless `override` is set, which
    gives every function the target of the options.
    """

    name = "assign-target"

    backend: str | None = None
    target: str | None = None
    triple: str | None = None
    cpu: str | None = None
    features: str | None = None
    vector_bits: int | None = None
    vector_registers: int | None = None
    line_bytes: int | None = None
    page_bytes: int | None = None
    l1_bytes: int | None = None
    l2_bytes: int | None = None
    l3_bytes: int | None = None
    pointer_bits: int | None = None
    threads: int | None = None
    accuracy: str | None = None
    requantization: str | None = None
    optimize: str | None = None
    ram_bytes: int | None = None
    flash_bytes: int | None = None
    relocation: str | None = None
    code_model: str | None = None
    float_abi: str | None = None
    override: bool = False

    def __post_init__(self) -> None:
        # What no module can have is told whether there are functions without a target or not.
        if self.backend is not None or self.target is not None or self._fields:
            get_backend(self._made.backend).check_target(self._made)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            target = self.target_of(function)
            if function.assigned is None or function.assigned.data != target:
                function.assigned = TargetAttr(target)
                statistics.count("targets assigned")
            backend_of(function)

    def target_of(self, function: FunctionOp) -> Target:
        """The target of a function behind the pass; raises `OptionError` where its own contradicts the options."""
        if self.override or function.assigned is None:
            return self._made
        own = function.assigned.data
        if self.backend is not None and not get_backend(self.backend).accepts(own):
            raise contradiction(function, "backend", own.backend, self.backend)
        wanted = dict(self._fields)
        if self.target is not None and self._made.backend == own.backend:
            wanted = {name: getattr(self._made, name) for name in MACHINE} | wanted
        for name, value in wanted.items():
            if getattr(own, name) != value:
                raise contradiction(function, name, getattr(own, name), value)
        return own

    @cached_property
    def _fields(self) -> dict[str, str | int]:
        """The fields that are given."""
        given = {name: getattr(self, name) for name in FIELDS if name != "backend"}
        return {name: value for name, value in given.items() if value is not None}

    @cached_property
    def _made(self) -> Target:
        """The target of functions that have none."""
        return with_fields(get_backend(self.backend or DEFAULT_BACKEND).target(self.target or HOST), self._fields)


def contradiction(function: FunctionOp, name: str, own: str | int, wanted: str | int) -> OptionError:
    """The error for a function that says another value of a field than the options."""
    return OptionError(
        f"@{function.sym_name.data} is for {name}={own}, not {wanted}",
        hint="what a module says stands; 'assign-target{override=true}' replaces its target",
    )
