"""Memory that all processes of a training see: the gradients of each, and the parts of a batch for each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import groupby

import numpy as np

from glow_mlir.api.model_session import ModelSession
from glow_mlir.support.dataclass import dataclass
from glow_mlir.training.batches import Arrays
from glow_mlir.training.step import gradient_states
from glow_mlir.training.training_module import GRADIENTS

_ALIGNMENT = 64
"""Bytes at whose multiples arrays begin: no cache line is in two of them."""

_CHUNK = 1 << 15
"""Elements that are summed at once, so that sums stay in the first caches."""

_Kind = tuple[np.dtype, tuple[int, ...]]
"""The element type and the shape of an array."""


@dataclass(frozen=True)
class SharedKinds:
    """
    What is shared: the gradients of parameters, and the inputs of the function that computes them.

    All processes lay these out alike, from the same compiled functions.
    """

    gradients: Mapping[str, _Kind]
    inputs: Mapping[str, _Kind]
    processes: int
    parts: int
    """Parts of a batch for each process."""

    @staticmethod
    def of(session: ModelSession, processes: int, parts: int) -> SharedKinds:
        """What processes with such a session share."""
        state = session.loaded.state.arrays
        kinds = {name: (state[name].dtype, state[name].shape) for name in gradient_states(state.keys())}
        inputs = {item.name: (item.numpy_dtype, item.numbers) for item in session.entry(GRADIENTS).inputs}
        return SharedKinds(kinds, inputs, processes, parts)

    @property
    def size(self) -> int:
        """Bytes of the memory."""
        return self.processes * (_room(self.gradients) + self.parts * _room(self.inputs))

    def laid_out(self, memory: np.ndarray) -> SharedMemory:
        """The arrays in a memory of that size."""
        whole = memory[: self.size].reshape(self.processes, -1)
        split = _room(self.gradients)
        gradients = [_arrays(self.gradients, row[:split]) for row in whole]
        room = _room(self.inputs)
        batches = [
            [_arrays(self.inputs, row[split + part * room :][:room]) for part in range(self.parts)] for row in whole
        ]
        return SharedMemory(gradients, batches, [_flat(self.gradients, row[:split]) for row in whole])


@dataclass(frozen=True)
class SharedMemory:
    """The arrays of each process by its number, which counts from 0."""

    gradients: list[Arrays]
    batches: list[list[Arrays]]
    """The inputs of each part."""
    _sums: list[list[np.ndarray]]
    """All gradients of a type as one array."""

    def reduce(self, process: int) -> None:
        """
        Put the sum of the gradients of all processes in the places of all, for one of as many shares of them.

        Processes are added in order, so that sums do not depend on which of them adds.
        """
        for rows in zip(*self._sums, strict=True):
            for chunk in _chunks(len(rows[0]), process, len(rows)):
                total = rows[0][chunk].copy()
                for row in rows[1:]:
                    total += row[chunk]
                for row in rows:
                    row[chunk] = total


def _chunks(size: int, process: int, processes: int) -> Iterator[slice]:
    """The places of a share of an array, some at a time."""
    begin, end = (size * number // processes for number in (process, process + 1))
    for first in range(begin, end, _CHUNK):
        yield slice(first, min(first + _CHUNK, end))


def _ordered(kinds: Mapping[str, _Kind]) -> list[tuple[str, _Kind]]:
    """Arrays in the order in which they lie: those of a type behind each other."""
    return sorted(kinds.items(), key=lambda item: (item[1][0].str, item[0]))


def _bytes(kind: _Kind) -> int:
    """Bytes of an array with those behind it up to the next one."""
    dtype, shape = kind
    return -(-math.prod(shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT


def _room(kinds: Mapping[str, _Kind]) -> int:
    return sum(map(_bytes, kinds.values()))


def _arrays(kinds: Mapping[str, _Kind], memory: np.ndarray) -> Arrays:
    """The arrays in a memory, by name."""
    found: Arrays = {}
    begin = 0
    for name, kind in _ordered(kinds):
        dtype, shape = kind
        found[name] = memory[begin : begin + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
        begin += _bytes(kind)
    return found


def _flat(kinds: Mapping[str, _Kind], memory: np.ndarray) -> list[np.ndarray]:
    """All arrays of each type, with the zeros between them, as one."""
    found: list[np.ndarray] = []
    begin = 0
    for _, group in groupby(_ordered(kinds), key=lambda item: item[1][0].str):
        members = [kind for _, kind in group]
        size = sum(map(_bytes, members))
        found.append(memory[begin : begin + size].view(members[0][0]))
        begin += size
    return found
