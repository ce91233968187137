"""State of a loaded model: arrays that persist between calls, shared by all of its entries."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.runtime.artifact import Binding
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import named_dtype
from glow_mlir.support.forks import reset_in_forks

RANDOM = "random."
"""What names of the state of random numbers begin with, of which code for each size may have its own."""


@dataclass(frozen=True)
class Initial:
    """Initial state: name, element type, shape, and the bytes of the initial value, `None` for zeros."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    content: np.ndarray | None = None

    def make(self) -> np.ndarray:
        """A new array with the initial value."""
        if self.content is None:
            return np.zeros(self.shape, named_dtype(self.dtype))
        return self.content.view(named_dtype(self.dtype)).reshape(self.shape).copy()


class State:
    """
    The states of a loaded model by name, initialized with their initial values.

    `turn` is a lock for calls that read or write state; it also works in a child of `os.fork`.
    """

    def __init__(self, initial: Iterable[Initial]) -> None:
        self._initial = {value.name: value for value in initial}
        self.arrays = {name: value.make() for name, value in self._initial.items()}
        self.changes = dict.fromkeys(self.arrays, 0)
        """Change counters of the states; a possible write counts as a change."""
        self.moves = 0
        """How often states have got other memory."""
        self.reset_after_fork()
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Take a new lock in a child process, because another thread of the parent may hold the old one."""
        self.turn = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all states."""
        return tuple(self._initial)

    def initial(self, name: str) -> Initial:
        """The initial value of a state."""
        return self._initial[name]

    def get(self, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Copies of the named states, or of all; raises `InputError` for an unknown name."""
        chosen = tuple(self.arrays) if names is None else tuple(names)
        with self.turn:
            return {name: self._known(name).copy() for name in chosen}

    def set(self, values: Mapping[str, np.ndarray]) -> None:
        """Overwrite states; if any array is invalid, change nothing and raise `InputError`."""
        for name, value in values.items():
            array = self._known(name)
            if value.dtype != array.dtype or value.shape != array.shape:
                wanted, given = (f"{item.dtype.name}{list(item.shape)}" for item in (array, value))
                raise InputError(f"state '{name}' must be {wanted}, not {given}")
        with self.turn:
            self.change(values)
            for name, value in values.items():
                self.arrays[name][...] = value

    def reset(self, names: Sequence[str] | None = None) -> None:
        """Reset the named states, or all, to their initial values; raises `InputError` for an unknown name."""
        chosen = tuple(self._initial) if names is None else tuple(names)
        for name in chosen:
            self._known(name)
        with self.turn:
            self.change(chosen)
            for name in chosen:
                self.arrays[name][...] = self._initial[name].make()

    def attach(self, targets: Mapping[str, np.ndarray]) -> None:
        """
        Keep states in other memory from now on: arrays of the same types and shapes, which get the present values.
        """
        with self.turn:
            for name, target in targets.items():
                target[...] = self._known(name)
                self.arrays[name] = target
            self.moves += 1

    def change(self, names: Iterable[str]) -> None:
        """Count a coming write of states; requires the turn."""
        for name in names:
            self.changes[name] += 1

    def _known(self, name: str) -> np.ndarray:
        if name not in self.arrays:
            known = ", ".join(self.arrays) or "none"
            raise InputError(f"there is no state '{name}'", hint=f"the model has {known}")
        return self.arrays[name]


def uses_state(bindings: Iterable[Binding]) -> bool:
    """Whether an entry with these bindings reads or writes state, plain or packed."""
    return any(binding.role in ("state", "packed") for binding in bindings)
