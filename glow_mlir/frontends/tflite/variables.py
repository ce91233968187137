"""Variables of a TensorFlow Lite model, which are state of the function: values that are kept from call to call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.storage import GetOp, SaveOp
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.tflite.file import Operator, Subgraph, TfliteFile
from glow_mlir.support.dataclass import dataclass


def handle_of(operator: Operator) -> tuple[int, str]:
    """
    The tensor of a VAR_HANDLE, and the name of its variable: that in its options, behind the container, if it has one.

    All variables without a name are the same one, as in LiteRT.
    """
    if not operator.outputs or operator.outputs[0] < 0:
        raise ModelError("VAR_HANDLE: it has no result", node=operator.name)
    names = [] if operator.options is None else [operator.options.text(field) for field in (0, 1)]
    return operator.outputs[0], "/".join(name for name in names if name) or "variable"


def state_names(file: TfliteFile) -> dict[tuple[int, int], str]:
    """
    The name of each tensor that keeps its values from call to call, by the numbers of its graph and of itself.

    It is that of the tensor, with both numbers where it is empty, or another tensor or variable has it.
    """
    numbers = [
        (graph, number, item.name)
        for graph, own in enumerate(file.subgraphs)
        for number, item in enumerate(own.tensors)
        if item.is_variable
    ]
    handles = (item for graph in file.subgraphs for item in graph.operators if item.kind == "VAR_HANDLE")
    counts = Counter([name for _, _, name in numbers] + [handle_of(item)[1] for item in handles])
    return {
        (graph, number): name if name and counts[name] == 1 else f"{name or 'state'}.{graph}.{number}"
        for graph, number, name in numbers
    }


@dataclass
class Variables:
    """The variables of a file; `initial` are the values that graphs run by CALL_ONCE assign, and those of states."""

    file: TfliteFile
    builder: ModuleBuilder
    states: Mapping[tuple[int, int], str]
    """Numbers of a graph and of a tensor that keeps its values → the name of the variable."""
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
