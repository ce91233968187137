"""Shared memory of training processes: the gradients of each, and the batch parts for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from glow_mlir.api.model_session import ModelSession
from glow_mlir.runtime.array_layout import Kind, Layout, aligned, arrays_in, layout_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import named_dtype
from glow_mlir.training.batches import Arrays
from glow_mlir.training.step import gradient_states
from glow_mlir.training.training_module import GRADIENTS

_CHUNK = 1 << 15
"""The number of elements summed at once, so that sums stay in the L1 cache."""


@dataclass(frozen=True)
class SharedKinds:
    """
    The shared arrays: the gradients of parameters, and the inputs of the function that computes them.

    All processes use the same layout, because it follows from the same compiled functions.
    """

    gradients: Mapping[str, Kind]
    inputs: Mapping[str, Kind]
    processes: int
    parts: int
    """The number of batch parts for each process."""

    @staticmethod
    def of(session: ModelSession, processes: int, parts: int) -> SharedKinds:
        """The arrays that processes with such a session share."""
        state = session.loaded.state.arrays
        kinds = {name: (state[name].dtype, state[name].shape) for name in gradient_states(state.keys())}
        inputs = {item.name: (item.numpy_dtype, item.numbers) for item in session.entry(GRADIENTS).inputs}
        return SharedKinds(kinds, inputs, processes, parts)

    @property
    def size(self) -> int:
        """The size of the memory in bytes."""
        return self.processes * (_bytes_of(self.gradients) + self.parts * _bytes_of(self.inputs))

    def laid_out(self, memory: np.ndarray) -> SharedMemory:
        """The arrays in a memory of that size."""
        whole = memory[: self.size].reshape(self.processes, -1)
        split = _bytes_of(self.gradients)
        gradients = [_arrays(self.gradients, row[:split]) for row in whole]
        input_bytes = _bytes_of(self.inputs)
        batches = [
            [_arrays(self.inputs, row[split + part * input_bytes :][:input_bytes]) for part in range(self.parts)]
            for row in whole
        ]
        return SharedMemory(gradients, batches, [_flat(self.gradients, row[:split]) for row in whole])


@dataclass(frozen=True)
class SharedMemory:
    """The arrays of each process, indexed by its number from 0."""

    gradients: list[Arrays]
    batches: list[list[Arrays]]
    """The inputs of each part."""
    _sums: list[list[np.ndarray]]
    """All gradients of one type as a single array."""

    def reduce(self, process: int) -> None:
        """
        Replace one share of all gradients, in every process, by their sum over all processes.

        Processes are added in order, so the sums do not depend on the process that adds.
        """
        for rows in zip(*self._sums, strict=True):
            for chunk in _chunks(len(rows[0]), process, len(rows)):
                total = rows[0][chunk].copy()
                for row in rows[1:]:
                    total += row[chunk]
                for row in rows:
                    row[chunk] = total


def _chunks(size: int, process: int, processes: int) -> Iterator[slice]:
    """Slices of one process's share of an array, of limited size."""
    begin, end = (size * number // processes for number in (process, process + 1))
    for first in range(begin, end, _CHUNK):
        yield slice(first, min(first + _CHUNK, end))


def _layout(kinds: Mapping[str, Kind]) -> tuple[Layout, int]:
    """The layout of arrays, grouped by type, and their total size in bytes."""
    layout, end = layout_of(sorted(kinds.items(), key=lambda item: (item[1][0].str, item[0])))
    return layout, aligned(end)


def _bytes_of(kinds: Mapping[str, Kind]) -> int:
    return _layout(kinds)[1]


def _arrays(kinds: Mapping[str, Kind], memory: np.ndarray) -> Arrays:
    """The arrays in a memory, by name."""
    return arrays_in(memory, _layout(kinds)[0])


def _flat(kinds: Mapping[str, Kind], memory: np.ndarray) -> list[np.ndarray]:
    """For each type, one array that covers all its arrays and the padding (zeros) between them."""
    layout, end = _layout(kinds)
    begins = {kind: begin for _, kind, _, begin in reversed(layout)}  # Of the first one.
    starts = sorted(begins.values())
    ends = dict(zip(starts, [*starts[1:], end], strict=True))
    return [memory[begin : ends[begin]].view(named_dtype(kind)) for kind, begin in begins.items()]
