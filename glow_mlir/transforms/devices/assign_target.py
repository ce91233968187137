"""`assign-target`: assign a target to functions."""

from __future__ import annotations

from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.backends.interface import HOST, backend_of, get_backend
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.dialects.target import FIELDS, PARTS, Target, TargetAttr, field_of, named_fields, with_fields
from glow_mlir.errors import OptionError
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import functions
from glow_mlir.options.declaration import declared, given_of, may_say
from glow_mlir.options.machine import Linking, Machine
from glow_mlir.support.dataclass import dataclass

OF_A_NAME = (*declared(Machine), *declared(Linking))
"""The fields of a target that a name such as `avx2` determines, with its costs."""


@dataclass(frozen=True)
@may_say(Machine, *PARTS.values())
class AssignTargetPass(ModulePass):
    """
    Assign the target that the options describe to every function without one: this machine's target, or the target
    called `target` of the backend, with the given fields.

    Targets that functions declare take precedence. Options that contradict them raise an `OptionError`, unless
    `override` is set: then every function gets the target of the options.
    """

    name = "assign-target"

    backend: str | None = None
    target: str | None = None
    override: bool = False

    def __post_init__(self) -> None:
        # Report impossible options even if all functions have targets.
        if self.target is not None or self._fields:
            get_backend(self._made.backend).check_target(self._made)
        elif self.backend is not None:
            get_backend(self.backend)  # The device need not exist here if all functions have targets.

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            target = self.target_of(function)
            if function.assigned is None or function.assigned.data != target:
                function.assigned = TargetAttr(target)
                statistics.count("targets assigned")
            backend_of(function)

    def target_of(self, function: FunctionOp) -> Target:
        """The target of a function after the pass; raises `OptionError` if its own target contradicts the options."""
        if self.override or function.assigned is None:
            return self._made
        own = function.assigned.data
        if self.backend is not None and not get_backend(self.backend).accepts(own):
            raise contradiction(function, "backend", own.backend, self.backend)
        wanted = dict(self._fields)
        if self.target is not None and self._made.backend == own.backend:
            if own.costs != self._made.costs:
                raise contradiction(function, "costs", own.costs, self._made.costs)
            _, fields_given = named_fields(self.target)
            names = [*OF_A_NAME, *(name for name in fields_given if name in FIELDS)]
            wanted = {name: field_of(self._made, name) for name in names} | wanted
        for name, value in wanted.items():
            if field_of(own, name) != value:
                raise contradiction(function, name, field_of(own, name), value)
        return own

    @cached_property
    def _fields(self) -> dict[str, str | int]:
        """The given fields."""
        given = given_of(self, Machine, *PARTS.values())
        return {name: value for name, value in given.items() if name != "backend"}

    @cached_property
    def _made(self) -> Target:
        """The target for functions without one."""
        return with_fields(get_backend(self.backend or DEFAULT_BACKEND).target(self.target or HOST), self._fields)


def contradiction(function: FunctionOp, name: str, own: object, wanted: object) -> OptionError:
    """The error for a function whose target has another value of a field than the options."""
    return OptionError(
        f"@{function.sym_name.data} is for {name}={own}, not {wanted}",
        hint="what a module says stands; 'assign-target{override=true}' replaces its target",
    )
