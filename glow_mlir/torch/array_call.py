"""Calls of a session on arrays: for sizes that vary between calls, and for backends without machine code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from glow_mlir.api.model_session import ModelSession
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.builder.module_builder import RANDOM_CALLS, RANDOM_SEED
from glow_mlir.frontends.torch.graph_signature import computed_outputs, output_name
from glow_mlir.frontends.torch.layouts import inverse, memory_order
from glow_mlir.frontends.torch.traced_graph import TracedGraph, TracedTensor
from glow_mlir.torch.numbers import evaluated
from glow_mlir.torch.outputs import Outputs
from glow_mlir.torch.tensors import HOST, array_of, dtype_named, tensor_of


class ArrayCall:
    """
    Call a session on arrays that share memory with tensors.

    `size_inputs` are the symbols with an input of their own, `size_outputs` those with an output of their own.
    """

    def __init__(
        self,
        graph: TracedGraph,
        session: ModelSession,
        size_inputs: Sequence[str] = (),
        size_outputs: Sequence[str] = (),
    ) -> None:
        self._session = session
        self._outputs = Outputs(graph)
        names = {argument.name for argument in session.first.inputs}
        self._inputs = [
            (position, item.name, memory_order(*item.value.hint))
            for position, item in enumerate(graph.inputs)
            if isinstance(item.value, TracedTensor) and item.name in names
        ]
        values = graph.values
        self._computed: list[tuple[str, TracedTensor]] = []
        for item in computed_outputs(graph):
            value = values[item.name][item.index]
            assert isinstance(value, TracedTensor)
            self._computed.append((output_name(item), value))
        self._size_inputs = size_inputs
        self._size_outputs = size_outputs
        self._draws = RANDOM_SEED in session.loaded.state.arrays

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """Return the outputs as tensors with the strides that PyTorch traced."""
        numbers = dict(self._outputs.numbers(inputs))
        given = {name: array_of(inputs[position], order) for position, name, order in self._inputs}
        for symbol in self._size_inputs:
            if numbers[symbol] < 0:
                raise UnsupportedError(f"the number {symbol} of a call is {numbers[symbol]}, not a size")
            given[size_input(symbol)] = np.broadcast_to(np.zeros(1, np.bool_), (numbers[symbol],))
        if self._draws:
            self._session.set_state({RANDOM_SEED: new_seed().numpy(), RANDOM_CALLS: np.zeros((), np.int64)})
        found = self._session.run(given)
        numbers |= {symbol: int(found[size_output(symbol)]) for symbol in self._size_outputs}
        self._outputs.derive(numbers)
        computed = [self._tensor(found[name], value, numbers) for name, value in self._computed]
        return self._outputs.of(inputs, computed, numbers)

    def _tensor(self, array: np.ndarray, value: TracedTensor, numbers: Any) -> torch.Tensor:
        """Convert an array, whose axes lie in memory in order, to the tensor that PyTorch traced."""
        dense = np.asarray(array, order="C")  # A data-dependent size leaves a gap after each row.
        tensor, order = tensor_of(dense, dtype_named(value.dtype)), memory_order(*value.hint)
        if order is not None:
            tensor = tensor.permute(inverse(order))
        strides = tuple(evaluated(stride, numbers) for stride in value.strides)
        if tensor.stride() == strides:
            return tensor
        if order is not None and tensor.numel() and not _has_gaps(tensor.shape, strides):
            return tensor.as_strided(tensor.shape, strides)
        return tensor


def _has_gaps(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether tensors of these strides span more memory than their elements take."""
    reach = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) + 1
    return reach != int(np.prod(sizes))


def size_input(symbol: str) -> str:
    """The name of an empty input whose size is the value of a symbol that is no size of any tensor of the graph."""
    return f"{symbol}.size"


def size_output(symbol: str) -> str:
    """The name of an output that holds a data-dependent symbol."""
    return f"{symbol}.number"


def new_seed() -> torch.Tensor:
    """Draw a seed from PyTorch's generator, so that `torch.manual_seed` determines the random numbers."""
    return torch.randint(-(1 << 62), 1 << 62, (), dtype=torch.int64, device=HOST)
