"""A device without arithmetic: models are compiled for it down to places in memory, and every output is zeros."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from glow_mlir.backends.interface import Backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.target import Target
from glow_mlir.ir.entries import bindings_of, initial_state
from glow_mlir.ir.registry import backend
from glow_mlir.ir.rewriting import functions
from glow_mlir.runtime.executable import EntryPoint, Executable
from glow_mlir.runtime.state import State
from glow_mlir.support.dtypes import named_dtype


@backend("null")
class NullBackend(Backend):
    """Accepts every operator; its artifact is the allocated module."""

    name = "null"

    def supports(self, op: Operation) -> bool:
        return True

    def select(
        self, op: Operation, storage: Storage, target: Target, tune: bool = False, capacity: int | None = None
    ) -> None:
        op.properties["kernel"] = StringAttr("null")

    def load(self, artifact: ModuleOp, threads: int) -> Executable:
        return NullDevice(artifact)


class NullDevice(Executable):
    """The functions of a module, each of which can be called."""

    def __init__(self, module: ModuleOp) -> None:
        entries = {function.sym_name.data: bindings_of(function) for function in functions(module)}
        super().__init__(tuple(entries), State(initial_state(module)))
        self._entries = entries

    def load(self, name: str) -> EntryPoint:
        return NullEntry(name, self._entries[name], self.state)


class NullEntry(EntryPoint):
    """A function that ignores its inputs and keeps its state."""

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = (binding for binding in self.bindings if binding.role == "output")
        return {binding.name: np.zeros(binding.shape, named_dtype(binding.dtype)) for binding in outputs}
