"""Modules that the interpreter runs: its artifact is the module itself."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.constants.storage import constant_array
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.storage import FunctionOp, PlaceholderOp
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.entries import bindings_of, placeholders_of, shared_state
from glow_mlir.ir.out_of_memory import out_of_memory
from glow_mlir.ir.rewriting import functions
from glow_mlir.runtime.executable import EntryPoint, Executable
from glow_mlir.runtime.state import Initial, State


class InterpretedEntry(EntryPoint):
    """A function of a module, in either dialect."""

    def __init__(self, module: ModuleOp, function: FunctionOp, state: State) -> None:
        super().__init__(function.sym_name.data, bindings_of(function), state)
        self._module = module
        self._labels = {op.sym_name.data: op.public_name for op in placeholders_of(function)}
        """Symbol → the name that callers use."""
        self._symbols = {(b.role, b.name): symbol for symbol, b in zip(self._labels, self.bindings, strict=True)}

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        given = {"input": inputs, "state": state}
        arrays = {symbol: given[role][name] for (role, name), symbol in self._symbols.items() if role in given}
        try:
            results = run_function(self._module, arrays, self.name)
        except MemoryError as error:
            raise out_of_memory(self._module, error) from error
        for binding in self.bindings:
            if binding.role == "state":
                state[binding.name][...] = results[self._symbols["state", binding.name]]
        return {
            binding.name: results[self._symbols["output", binding.name]]
            for binding in self.bindings
            if binding.role == "output"
        }


def _initial(name: str, op: PlaceholderOp) -> Initial:
    """State as a module says that it begins."""
    dtype = numpy_dtype(op.tensor_type.element_type).name
    content = np.ascontiguousarray(constant_array(op)).reshape(-1).view(np.uint8) if op.has_content else None
    return Initial(name, dtype, op.tensor_type.get_shape(), content)


class InterpretedModule(Executable):
    """A module as it stands, at any stage down to `allocated`."""

    def __init__(self, module: ModuleOp) -> None:
        found = functions(module)
        initial = [_initial(name, op) for name, op in shared_state(found).items()]
        super().__init__([function.sym_name.data for function in found], State(initial))
        self.module = module
        self._functions = {function.sym_name.data: function for function in found}

    def load(self, name: str) -> InterpretedEntry:
        return InterpretedEntry(self.module, self._functions[name], self.state)
