"""The executables of a backend: callable entries and their shared state."""

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
Returns the outputs for all inputs in order, given as C-contiguous, aligned arrays of the declared types and the
expected shapes; `None` if it is no longer valid for them. Raises the errors of `EntryPoint.run`.
"""

MAIN = "main"
"""The default entry of a model with several."""


class EntryPoint(ABC):
    """One function of a loaded model; several threads may call it at once."""

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
        Call the function; return its outputs by name, in new arrays.

        `inputs` are C-contiguous arrays of the declared type, aligned to their elements, and used in place; arrays with
        symbolic sizes may have any layout. Outputs with symbolic sizes behind the first axis are views of larger arrays
        if that saves a copy.
        Calls of functions with state run one after the other. Raises `ExecutionError` if the function fails on its
        data, and `OutOfMemoryError`.
        """
        if not self._has_state:
            return self._call(inputs, self._state.arrays)
        with held(self._state.turn):
            return self._call(inputs, self._state.arrays)

    def direct(self, shapes: Shapes) -> DirectCall | None:
        """
        Return a function that calls this one on arrays of the given shapes without checks, for repeated calls.

        `None` if there is none, now or in general.
        """
        return None

    def bound(
        self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> Callable[[], dict[str, np.ndarray]]:
        """
        Prepare a call on these arrays, whose contents are read when it is called; it returns outputs by name.

        Outputs in `outputs`, writable C-contiguous arrays of the declared type, are written there; results are copied
        if the function cannot write to them in place. Raises the errors of `run`, and `InputError` for an array in
        `outputs` of another shape than the result.
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
        As `bound`, with device tensors among inputs and outputs; a device as output means a new tensor there.

        Tensors elsewhere than the function runs are copied.
        """

        def call() -> dict[str, Tensor]:
            found = self.run({name: on_host(value) for name, value in inputs.items()})
            return all_on_targets(found, targets)

        return call

    @abstractmethod
    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Call the function on inputs and state, and update the state in place; return the outputs by name."""


class Executable(ABC):
    """A loaded artifact."""

    def __init__(self, names: Sequence[str], state: State) -> None:
        self.names = tuple(names)
        """The names of all entries."""
        self.state = state

    @property
    def memory(self) -> dict[object, int]:
        """
        Bytes of code, constants, and activations of one thread, by part.

        Executables that share a part use the same key for it.
        """
        return {}

    @property
    def activation_bytes(self) -> int:
        """Bytes of the activations of one thread if their layout is fixed before a call, otherwise 0."""
        return 0

    @property
    def device(self) -> Device | None:
        """The single device whose queue runs the entries; `None` for the host, and for several devices."""
        return None

    @property
    def is_queued(self) -> bool:
        """Whether calls go to device queues, so that concurrent calls help even with one core."""
        return self.device is not None

    @property
    def current(self) -> Executable:
        """The executable itself; for a set of specializations, the last that ran."""
        return self

    @abstractmethod
    def load(self, name: str) -> EntryPoint:
        """The entry of an existing name; raises `GlowError` if this machine cannot run it."""

    def entry(self, name: str | None = None) -> EntryPoint:
        """
        The entry of that name; without a name the only entry, or `main`.

        Raises `InputError` as `chosen`, and `GlowError` if it cannot run here.
        """
        return self.load(self.chosen(name))

    def chosen(self, name: str | None) -> str:
        """The name if given, else that of the only entry, or `main`; raises `InputError` if there is no such entry."""
        chosen = self.names[0] if name is None and len(self.names) == 1 else name or MAIN
        if chosen not in self.names:
            known = ", ".join(self.names) or "none"
            raise InputError(f"there is no entry '{chosen}'", hint=f"the model has {known}")
        return chosen
