"""The executables of a backend: entries that can be called, and the state that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.device_array import OutputTarget, Tensor, all_on_targets, on_host, on_target
from glow_mlir.runtime.signature import Argument
from glow_mlir.runtime.state import State, uses_state
from glow_mlir.support.cancellation import held

if TYPE_CHECKING:
    from glow_mlir.runtime.devices import Device

Shapes = tuple[tuple[int, ...], ...]
"""The shapes of all inputs, in order."""

DirectCall = Callable[[Sequence[np.ndarray]], "dict[str, np.ndarray] | None"]
"""
Gives the outputs for all inputs in order, which are C-contiguous and aligned arrays of the declared types and of the
shapes that it is for; `None` where it is for them no longer. Raises as `EntryPoint.run`.
"""

MAIN = "main"
"""The entry of a model that has several, where none is named."""


class EntryPoint(ABC):
    """One function of a loaded model, ready to be called; several threads may do so at once."""

    def __init__(self, name: str, bindings: Sequence[Binding], state: State) -> None:
        self.name = name
        self.bindings = tuple(bindings)
        """Inputs, outputs and state, in order."""
        self._state = state
        self._has_state = uses_state(bindings)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The inputs, in order."""
        return tuple(Argument.of(binding) for binding in self.bindings if binding.role == "input")

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The outputs, in order."""
        return tuple(Argument.of(binding) for binding in self.bindings if binding.role == "output")

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """
        Call the function: its outputs by name, in arrays of their own.

        `inputs` are C-contiguous arrays of the declared type, aligned to their elements, used in place; those of sizes
        that symbols decide may have any layout. Outputs of such sizes are parts of larger arrays where that saves a
        copy. Calls of functions with state follow one another. Raises `ExecutionError` where the function fails on its
        data, and `OutOfMemoryError`.
        """
        if not self._has_state:
            return self._call(inputs, self._state.arrays)
        with held(self._state.turn):
            return self._call(inputs, self._state.arrays)

    def direct(self, shapes: Shapes) -> DirectCall | None:
        """
        What calls the function on arrays of those shapes without looking at them: for calls that follow one like them.

        `None` where there is none, for now or at all.
        """
        return None

    def bound(
        self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> Callable[[], dict[str, np.ndarray]]:
        """
        A call of the function on these arrays, whatever they hold when it is called: its outputs by name.

        Those in `outputs`, C-contiguous arrays of the declared type that may be written, are these arrays; where the
        function cannot write to one in place, its results are copied there. Raises as `run`, and `InputError` for an
        array of `outputs` of another shape than the result.
        """

        def call() -> dict[str, np.ndarray]:
            found = self.run(inputs)
            for name, array in outputs.items():
                on_target(name, found[name], array)
            return {**found, **outputs}

        return call

    def bound_on(
        self, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]
    ) -> Callable[[], dict[str, Tensor]]:
        """
        As `bound`, with tensors on devices among the inputs and outputs; a device is the place of a new tensor there.

        What is not where the function runs is copied.
        """

        def call() -> dict[str, Tensor]:
            found = self.run({name: on_host(value) for name, value in inputs.items()})
            return all_on_targets(found, targets)

        return call

    @abstractmethod
    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Call the function on inputs and on state, which it updates in place; returns the outputs by name."""


class Executable(ABC):
    """A loaded artifact."""

    def __init__(self, names: Sequence[str], state: State) -> None:
        self.names = tuple(names)
        """The names of all entries."""
        self.state = state

    @property
    def memory(self) -> dict[object, int]:
        """
        Bytes of code, constants, and activations of one thread, by what is in memory once.

        Executables that share a part have the same key for it.
        """
        return {}

    @property
    def activation_bytes(self) -> int:
        """Bytes of the activations of one thread, where they are laid out before a call; else 0."""
        return 0

    @property
    def device(self) -> Device | None:
        """The one device on whose queue its entries run; `None` for the host, and for several."""
        return None

    @property
    def is_queued(self) -> bool:
        """Whether its calls are put into queues of devices, so that several at once are worth it on one core."""
        return self.device is not None

    @property
    def current(self) -> Executable:
        """The executable itself; of a set for different sizes, the one that ran last."""
        return self

    @abstractmethod
    def load(self, name: str) -> EntryPoint:
        """The entry of this name, which exists; raises `GlowError` if this machine cannot run it."""

    def entry(self, name: str | None = None) -> EntryPoint:
        """
        The entry of that name; without one the only entry, or `main`.

        Raises `InputError` as `chosen`, and `GlowError` where it cannot be run here.
        """
        return self.load(self.chosen(name))

    def chosen(self, name: str | None) -> str:
        """The name of that entry, or of the only one, or `main`; raises `InputError` where there is none."""
        chosen = self.names[0] if name is None and len(self.names) == 1 else name or MAIN
        if chosen not in self.names:
            known = ", ".join(self.names) or "none"
            raise InputError(f"there is no entry '{chosen}'", hint=f"the model has {known}")
        return chosen
