"""Variables of a TensorFlow Lite model, which are state of the function: values that are kept from call to call."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.storage import GetOp, SaveOp
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.tflite.file import Operator, Subgraph, TfliteFile
from glow_mlir.support.dataclass import dataclass


def handle_of(operator: Operator) -> tuple[int, str]:
    """The tensor of a VAR_HANDLE, and the name of its variable: the shared name in its options, or the tensor's."""
    if not operator.outputs or operator.outputs[0] < 0:
        raise ModelError("VAR_HANDLE: it has no result", node=operator.name)
    options = operator.options
    return operator.outputs[0], (options.text(1) if options is not None else "") or operator.name


@dataclass
class Variables:
    """The variables of a file; `initial` are the values that graphs run by CALL_ONCE assign."""

    file: TfliteFile
    builder: ModuleBuilder
    initial: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    _values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """Name → the value at this point of the call."""
    _states: dict[str, str] = field(default_factory=dict[str, str])
    """Name → the placeholder of the state."""
    _changed: set[str] = field(default_factory=set[str])

    def initialize(self, number: int) -> None:
        """Take the values that a graph assigns, which must be constants."""
        if not 0 <= number < len(self.file.subgraphs):
            raise ModelError(f"calls graph {number} of {len(self.file.subgraphs)}")
        graph, names = self.file.subgraphs[number], dict[int, str]()
        for operator in graph.operators:
            if operator.kind == "VAR_HANDLE":
                handle, name = handle_of(operator)
                names[handle] = name
            elif operator.kind == "ASSIGN_VARIABLE":
                name, value = _assigned(graph, operator, names)
                self.initial[name] = value
            else:
                raise UnsupportedError(f"{operator.kind} in a graph that is called once is not supported")

    def read(self, name: str) -> SSAValue:
        """The value of a variable."""
        if name not in self._values:
            if name not in self.initial:
                raise UnsupportedError(f"the variable '{name}' has no initial value")
            value = self.builder.add_state(name, self.initial[name], is_trainable=False)
            assert isinstance(value.owner, GetOp)
            self._values[name], self._states[name] = value, value.owner.storage_name
        return self._values[name]

    def assign(self, name: str, value: SSAValue) -> None:
        """Give a variable a value."""
        self.read(name)  # The state exists even if it is never read.
        self._values[name] = value
        self._changed.add(name)

    def save(self) -> None:
        """Keep the values for the next call."""
        for name in self._values:
            if name in self._changed:
                location = named_location(name)
                self.builder.function.block.add_op(SaveOp.to(self._values[name], self._states[name], location))


def _assigned(graph: Subgraph, operator: Operator, names: dict[int, str]) -> tuple[str, np.ndarray]:
    """The name and the constant of an ASSIGN_VARIABLE."""
    if len(operator.inputs) != 2 or operator.inputs[0] not in names:
        raise ModelError("assigns no variable", node=operator.name)
    values = graph.tensors[operator.inputs[1]].values
    if values is None:
        raise UnsupportedError("an initial value is computed", node=operator.name)
    return names[operator.inputs[0]], values
