"""Modules run by the interpreter: the artifact is the module itself."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.entries import bindings_of, entries_of, initial_state, placeholders_of
from glow_mlir.ir.out_of_memory import out_of_memory
from glow_mlir.runtime.executable import EntryPoint, Executable
from glow_mlir.runtime.state import State


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


class InterpretedModule(Executable):
    """An unchanged module, at any stage down to `allocated`."""

    def __init__(self, module: ModuleOp) -> None:
        found = entries_of(module)
        super().__init__([function.sym_name.data for function in found], State(initial_state(module)))
        self.module = module
        self._functions = {function.sym_name.data: function for function in found}

    def load(self, name: str) -> InterpretedEntry:
        return InterpretedEntry(self.module, self._functions[name], self.state)
