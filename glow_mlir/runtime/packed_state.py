"""State in the packed form that kernels read; a function of the model computes it from the plain form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from glow_mlir.runtime.state import State

Pack = Callable[[Mapping[str, np.ndarray]], np.ndarray]
"""Gives a packed array of the state by name."""


class PackedState:
    """
    A packed form of some of a model's state, the `sources`.

    It is made when a call first reads it, and again by the first call behind a change: state that is set once is packed
    once, and what a hundred calls of another entry have changed is packed once as well.
    """

    def __init__(self, sources: Sequence[str], pack: Pack) -> None:
        self._sources = tuple(sources)
        self._pack = pack
        self._array: np.ndarray | None = None
        self._packed_at: tuple[int, ...] | None = None
        """The changes of the sources that the array has seen."""

    def current(self, state: State) -> np.ndarray:
        """The packed form of the state as it is; called by whoever has the state's turn."""
        changes = tuple(state.changes[name] for name in self._sources)
        if self._array is None or changes != self._packed_at:
            self._array = self._pack(state.arrays)
            self._packed_at = changes
        return self._array
