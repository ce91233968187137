"""
Backends defined by a table: the operators of a device, and a function that emits each.

Everything else follows: other operators are lowered to those in the table, or go to another device; constants, inputs,
outputs and state are passed by name.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from glow_mlir.backends.interface import AllocateConstants, Backend, Compiling
from glow_mlir.constants.storage import Storage, constant_array, splat_array
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import ConstantOp, FuncOp, GetOp, SaveOp, SplatOp
from glow_mlir.dialects.target import Target
from glow_mlir.driver.pipelines import LOWERED, OPTIMIZE, Pipeline
from glow_mlir.ir.entries import bindings_of, entries_of, initial_state
from glow_mlir.ir.traversal import own_operations
from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.executable import EntryPoint, Executable
from glow_mlir.runtime.state import Initial, State
from glow_mlir.support.dataclass import dataclass


class Program(Protocol):
    """The program of one function, built by emitters; values are objects of the device."""

    def input(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An input of that name, or the state of that name."""
        ...

    def constant(self, array: np.ndarray) -> Any:
        """A constant."""
        ...

    def output(self, name: str, value: Any) -> None:
        """Return a value to callers by name, or store it as the state of that name."""
        ...


Emitter = Callable[[Any, Any, list[Any]], Any]
"""
Emits an operator: takes the program, the operator and the values of its operands, in order; returns the value of its
result, or a tuple for several results.
"""


@dataclass(frozen=True)
class CompiledFunction:
    """A program and its bindings."""

    name: str
    bindings: tuple[Binding, ...]
    program: Any


@dataclass(frozen=True)
class CompiledModule:
    """The programs of a module, and their shared initial state."""

    functions: tuple[CompiledFunction, ...]
    state: tuple[Initial, ...]


class SimpleBackend(Backend):
    """
    A backend that is a table of emitters. A subclass provides the table, and functions to begin and run a program.

    Splats and constants need no emitter. Branches and loops are not supported.
    """

    EMITTERS: ClassVar[Mapping[type[HighOp], Emitter]] = {}
    """Operator → its emitter."""

    @abstractmethod
    def begin(self, name: str) -> Program:
        """An empty program for a function."""

    @abstractmethod
    def run(self, program: Any, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """The outputs of a program by name, given inputs and state by name."""

    def executes(self, op: HighOp) -> bool:
        """Whether the device executes an operator of the table with these types and properties; by default always."""
        return True

    def supports(self, op: Operation) -> bool:
        if isinstance(op, SplatOp):
            return True
        return isinstance(op, HighOp) and type(op) in self.EMITTERS and self.executes(op)

    def refuses(self, op: Operation, storage: Storage, target: Target) -> str:
        return "it has no branches and loops" if isinstance(op, ControlFlowOp) else ""

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        """Optimization, and lowering to the operators in the table."""
        return OPTIMIZE.named(self.name).then(LOWERED).for_target(target, self.name)

    def compile(self, compilation: Compiling, allocate: AllocateConstants | None = None) -> CompiledModule:
        module = compilation.run()
        storage = Storage(module)
        functions = [function for function in entries_of(module) if isinstance(function, FuncOp)]
        return CompiledModule(
            tuple(self._compiled(function, storage) for function in functions), tuple(initial_state(module))
        )

    def _compiled(self, function: FuncOp, storage: Storage) -> CompiledFunction:
        bindings = dict(zip(function.binding_names, bindings_of(function), strict=True))
        program, known = self.begin(function.sym_name.data), dict[SSAValue, Any]()
        for op in own_operations(function):
            if isinstance(op, GetOp):
                known[op.result] = _read(program, storage.by_name[op.storage_name], bindings)
            elif isinstance(op, SaveOp):
                program.output(bindings[op.storage_name].name, known[op.input])
            elif isinstance(op, SplatOp):
                known[op.result] = program.constant(splat_array(op))
            else:
                assert isinstance(op, HighOp)
                made = self.EMITTERS[type(op)](program, op, [known[value] for value in op.operands])
                results = cast("tuple[Any, ...]", made) if isinstance(made, tuple) else (made,)
                known.update(zip(op.results, results, strict=True))
        return CompiledFunction(function.sym_name.data, tuple(bindings.values()), program)

    def load(self, artifact: CompiledModule, threads: int) -> SimpleExecutable:
        return SimpleExecutable(artifact, self)


def _read(program: Program, op: Any, bindings: Mapping[str, Binding]) -> Any:
    """The value that a program reads from storage."""
    if isinstance(op, ConstantOp):
        return program.constant(constant_array(op))
    binding = bindings[op.sym_name.data]
    return program.input(binding.name, binding.shape, binding.numpy_dtype)


class SimpleEntry(EntryPoint):
    """A program, ready to be called."""

    def __init__(self, function: CompiledFunction, backend: SimpleBackend, state: State) -> None:
        super().__init__(function.name, function.bindings, state)
        self._program = function.program
        self._backend = backend

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        kept = [binding.name for binding in self.bindings if binding.role == "state"]
        found = self._backend.run(self._program, {**inputs, **{name: state[name] for name in kept}})
        for name in kept:
            if name in found:
                state[name][...] = found[name]
        outputs = (binding for binding in self.bindings if binding.role == "output")
        return {binding.name: np.asarray(found[binding.name], binding.numpy_dtype) for binding in outputs}


class SimpleExecutable(Executable):
    """The programs of a module."""

    def __init__(self, module: CompiledModule, backend: SimpleBackend) -> None:
        super().__init__([function.name for function in module.functions], State(module.state))
        self._functions = {function.name: function for function in module.functions}
        self._backend = backend

    def load(self, name: str) -> SimpleEntry:
        return SimpleEntry(self._functions[name], self._backend, self.state)
