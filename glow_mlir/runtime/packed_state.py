"""State in the packed form that kernels read, computed from the plain form by a function of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from glow_mlir.runtime.state import State

Pack = Callable[[Mapping[str, np.ndarray]], np.ndarray]
"""Computes the packed array of a state, by name."""


class PackedState:
    """
    A packed form of some of a model's states, the `sources`.

    It is computed when a call first reads it, and again by the first call after a change. So state that is set once is
    packed once, and a hundred changes by another entry are also packed once.
    """

    def __init__(self, sources: Sequence[str], pack: Pack) -> None:
        self._sources = tuple(sources)
        self._pack = pack
        self._array: np.ndarray | None = None
        self._packed_at: tuple[int, ...] | None = None
        """The change counters of the sources when the array was packed."""

    def current(self, state: State) -> np.ndarray:
        """The packed form of the present state; requires the turn of the state."""
        changes = tuple(state.changes[name] for name in self._sources)
        if self._array is None or changes != self._packed_at:
            self._array = self._pack(state.arrays)
            self._packed_at = changes
        return self._array
