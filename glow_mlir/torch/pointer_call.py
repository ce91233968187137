"""Calls of machine code on the memory of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch._C._dynamo import guards

from glow_mlir.frontends.builder.module_builder import RANDOM_CALLS, RANDOM_SEED
from glow_mlir.frontends.torch.graph_signature import computed_outputs, output_name
from glow_mlir.frontends.torch.layouts import memory_order
from glow_mlir.frontends.torch.traced_graph import TracedGraph, TracedTensor, TracedValue
from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.machine_code import MachineEntry
from glow_mlir.runtime.state import State
from glow_mlir.support.cancellation import held
from glow_mlir.torch.array_call import new_seed
from glow_mlir.torch.outputs import Outputs
from glow_mlir.torch.tensors import array_of, dtype_named

NOTHING: Mapping[str, int] = {}


Layout = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
"""The sizes, strides and element type of a new tensor."""

_address = torch.Tensor.data_ptr

# The allocation that inductor's code calls: it takes a third of the time of `torch.empty_strided`.
_empty: Callable[[tuple[int, ...], tuple[int, ...], torch.dtype], torch.Tensor] = getattr(guards, "_empty_strided_cpu")


class PointerCall:
    """
    Call an entry of machine code with fixed sizes on the memory of tensors.

    Outputs are new PyTorch tensors; inputs that are state are changed in place.
    """

    def __init__(self, graph: TracedGraph, entry: MachineEntry, state: State) -> None:
        self._entry = entry
        self._state = state
        self._outputs = Outputs(graph)
        positions = {item.name: position for position, item in enumerate(graph.inputs)}
        values, computed = graph.values, computed_outputs(graph)
        outputs = {output_name(item): values[item.name][item.index] for item in computed}
        self._own: list[tuple[int, Binding]] = []
        self._new = [_layout(item) for item in outputs.values()]
        made = {name: len(graph.inputs) + number for number, name in enumerate(outputs)}
        self._sources: list[int] = []
        """For each binding, the position of its tensor among inputs and new tensors; -1 for state."""
        for slot, binding in enumerate(entry.bindings):
            if binding.role == "output":
                self._sources.append(made[binding.name])
            elif binding.name in positions:
                self._sources.append(positions[binding.name])
            else:
                self._sources.append(-1)
                self._own.append((slot, binding))
        self._gapped = self._inputs_with_gaps(graph)

    def changed(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Record the tensors that hold state from now on, and that their contents changed."""
        with self._state.turn:
            for name, tensor in tensors.items():
                if name in self._state.arrays:
                    order = memory_order(tuple(tensor.shape), tensor.stride())
                    self._state.arrays[name] = np.ascontiguousarray(array_of(tensor, order))
                    self._state.change((name,))

    def _inputs_with_gaps(self, graph: TracedGraph) -> list[int]:
        """The inputs that have to be copied because they have gaps."""
        read = set(self._sources)
        found: list[int] = []
        for position, item in enumerate(graph.inputs):
            if position in read and isinstance(item.value, TracedTensor) and memory_order(*item.value.hint) is None:
                found.append(position)
        return found

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """The outputs; raises `ExecutionError` where the graph fails on these inputs."""
        given = inputs
        if self._gapped:
            given = list(inputs)
            for position in self._gapped:
                given[position] = given[position].contiguous()
        computed = [_empty(*layout) for layout in self._new]
        tensors = [*given, *computed]
        if self._own:
            self._call_with_state([0 if place < 0 else tensors[place].data_ptr() for place in self._sources])
        else:
            self._entry.call_at(list(map(_address, map(tensors.__getitem__, self._sources))))
        return self._outputs.of(inputs, computed, NOTHING)

    def _call_with_state(self, addresses: list[int]) -> None:
        """Call an entry with state of its own: random numbers, or packed parameters."""
        with held(self._state.turn):
            for slot, binding in self._own:
                if binding.role == "packed":
                    addresses[slot] = self._entry.packed_address(binding)
                    continue
                array = self._state.arrays[binding.name]
                if binding.name == RANDOM_SEED:
                    array[...] = new_seed().item()
                elif binding.name == RANDOM_CALLS:
                    array[...] = 0  # Each call has another seed.
                addresses[slot] = array.ctypes.data
            self._entry.call_at(addresses)


def _layout(value: TracedValue) -> Layout:
    """The layout of the tensor of a computed output."""
    assert isinstance(value, TracedTensor)
    (sizes, strides), dtype = value.hint, dtype_named(value.dtype)
    if memory_order(sizes, strides) is None:
        strides = torch.empty(sizes, device="meta").stride()
    return tuple(sizes), tuple(strides), dtype
