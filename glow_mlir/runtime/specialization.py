"""An executable for given sizes and values of inputs, with its costs and uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from glow_mlir.runtime.assumptions import Assumptions
from glow_mlir.runtime.device_array import OutputTarget, Tensor
from glow_mlir.runtime.executable import DirectCall, EntryPoint, Executable, Shapes
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Dimension

MAX_DIRECT = 64
"""The number of input shapes for which one specialization keeps direct calls."""


@dataclass
class Loaded:
    """An executable, and the seconds of each stage of its compilation; empty if it came from the cache."""

    executable: Executable
    seconds: dict[str, float] = field(default_factory=dict[str, float])


@dataclass
class Specialization:
    """An executable for given sizes and values, with its costs and uses."""

    sizes: Mapping[str, Dimension]
    """Free dimension → its size, or the bounds of an open one."""
    values: Mapping[str, np.ndarray]
    """Input that determines shapes → its value."""
    executable: Executable
    entry: EntryPoint
    compile_seconds: Mapping[str, float]
    """Seconds of each stage of its compilation; empty if it came from the cache."""
    seconds: float
    """Seconds that the first call waited for it; 0 if none did."""
    begin: float = 0.0
    """Seconds from the start of the session to the start of its compilation or cache lookup."""
    is_background: bool = False
    """Whether it was made in the background."""
    is_range: bool = False
    """Whether it is for an automatic range of sizes; its results look like those of code for one size."""
    calls: int = 0
    """The number of calls it served."""
    direct: dict[Shapes, DirectCall] = field(default_factory=dict["Shapes", "DirectCall"])
    """Shapes of inputs → a call on arrays of these shapes without checks, once requested."""

    bound: WeakKeyDictionary[object, Callable[[], dict[str, np.ndarray]]] = field(
        default_factory=WeakKeyDictionary[object, "Callable[[], dict[str, np.ndarray]]"]
    )
    """Binding of memory → the call that is prepared for it."""

    def keep_direct(self, shapes: Shapes, call: DirectCall) -> None:
        """Keep a call for inputs of these shapes; a few are kept."""
        if len(self.direct) >= MAX_DIRECT:
            self.direct.clear()
        self.direct[shapes] = call

    @property
    def nbytes(self) -> int:
        """Bytes of code, constants, and activations of one thread, including shared parts."""
        return sum(self.executable.memory.values())

    def data(self) -> dict[str, object]:
        """Its sizes and values, costs, uses and creation time as JSON data."""
        return {
            "sizes": dict(self.sizes),
            "values": {name: value.tolist() for name, value in self.values.items()},
            "bytes": self.nbytes,
            "calls": self.calls,
            "waited_seconds": self.seconds,
            "begin_seconds": self.begin,
            "is_background": self.is_background,
            "compile_seconds": dict(self.compile_seconds),
        }

    @cached_property
    def _packed_inputs(self) -> tuple[str, ...]:
        """The inputs that must be contiguous."""
        return tuple(item.name for item in self.entry.bindings if item.role == "input" and not item.sizes)

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """
        The outputs for inputs.

        Outputs of code for a range are views of larger arrays, which may share memory with outputs of other calls. They
        are copied if the range was automatic.
        """
        found = self.entry.run(self.fitting(inputs))
        return {name: _apart(array) for name, array in found.items()} if self.is_range else found

    def run_on(self, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]) -> dict[str, Tensor]:
        """The outputs for inputs that may be on devices, delivered to their targets."""
        fitting = self.fitting({name: value for name, value in inputs.items() if isinstance(value, np.ndarray)})
        found = self.entry.bound_on({**inputs, **fitting}, targets)()
        return {
            name: _apart(value) if self.is_range and name not in targets and isinstance(value, np.ndarray) else value
            for name, value in found.items()
        }

    def fitting(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Convert inputs of any layout for its entry."""
        copied: list[str] = []
        for name in self._packed_inputs:  # Runs in each call: faster than generators.
            if name in inputs and not ((known := inputs[name].flags).c_contiguous and known.aligned):
                copied.append(name)
        if not copied:
            return inputs
        copies = ((name, np.require(inputs[name], requirements=("C", "ALIGNED"))) for name in copied)
        return {**inputs, **{name: copy.reshape(inputs[name].shape) for name, copy in copies}}


def _apart(value: Any) -> Any:
    """Copy an array that is a view of a larger one, also inside lists; other Python values are unchanged."""
    if isinstance(value, list):
        return list(map(_apart, cast("list[Any]", value)))
    if not isinstance(value, np.ndarray):
        return value
    array = cast("np.ndarray", value)
    whole = array.base
    is_part = isinstance(whole, np.ndarray) and whole.nbytes > array.nbytes and whole.dtype == array.dtype
    return array.copy() if is_part or not array.flags.c_contiguous else array


Compile = Callable[[Assumptions], Loaded]
"""Compiles a model under assumptions."""


def _found_nothing(_: Assumptions) -> None:
    """The default of `stored`: nothing."""


def _forgotten(_: object) -> None:
    """The default of notifications: do nothing."""


@dataclass(frozen=True)
class Making:
    """How to make executables of a model, and what to store for later sessions."""

    compile: Compile
    """Compiles for assumptions; raises `InputValuesError` for inputs whose values are needed."""
    background: Compile | None = None
    """The same in the background thread; `None` if nothing is made in the background."""
    stored: Callable[[Assumptions], Loaded | None] = _found_nothing
    """Finds a stored executable for assumptions."""
    learned: Callable[[Sequence[str]], None] = _forgotten
    """Is notified of all inputs whose values determine shapes."""
    opened: Callable[[Assumptions], None] = _forgotten
    """Is notified of the range that code exists for."""
