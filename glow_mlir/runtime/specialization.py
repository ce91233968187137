"""An executable for some sizes and values of a model's inputs, and what it costs and saves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, cast

import numpy as np

from glow_mlir.runtime.assumptions import Assumptions
from glow_mlir.runtime.device_array import OutputTarget, Tensor
from glow_mlir.runtime.executable import DirectCall, EntryPoint, Executable
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Dimension


@dataclass
class Loaded:
    """An executable, and the seconds that each stage of its compilation took; none where it came from the cache."""

    executable: Executable
    seconds: dict[str, float] = field(default_factory=dict[str, float])


@dataclass
class Specialization:
    """An executable for some sizes and values, and what it costs and saves."""

    sizes: Mapping[str, Dimension]
    """Free dimension → its size, or the bounds of one that grows."""
    values: Mapping[str, np.ndarray]
    """Input that fixes shapes → its value."""
    executable: Executable
    entry: EntryPoint
    compile_seconds: Mapping[str, float]
    """Seconds that each stage of its compilation took; none where it came from the cache."""
    seconds: float
    """How long the call waited that needed it first; 0 where none did."""
    begin: float = 0.0
    """How many seconds after the session began that compilation began, or the look into the cache."""
    is_background: bool = False
    """Whether it was made beside the calls."""
    is_range: bool = False
    """Whether it is for a range of sizes that nobody has asked for: results look as those of code for one size."""
    calls: int = 0
    """How many calls it served."""
    direct: DirectCall | None = None
    """What calls it on arrays of its shapes without looking at them, once somebody has asked for it."""

    @property
    def nbytes(self) -> int:
        """Bytes of code, constants, and activations of one thread, what it shares with others among them."""
        return sum(self.executable.memory.values())

    def data(self) -> dict[str, object]:
        """What it is for, what it costs and saves, and when it was made, as JSON has it."""
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
        """The inputs that it takes without gaps between elements."""
        return tuple(item.name for item in self.entry.bindings if item.role == "input" and not item.sizes)

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """
        The outputs for inputs.

        Code for a range has parts of larger arrays, which may share memory with outputs of other calls: what nobody has
        asked for is copied.
        """
        found = self.entry.run(self.fitting(inputs))
        return {name: _apart(array) for name, array in found.items()} if self.is_range else found

    def run_on(self, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]) -> dict[str, Tensor]:
        """The outputs for inputs that may be on devices, in their places."""
        fitting = self.fitting({name: value for name, value in inputs.items() if isinstance(value, np.ndarray)})
        found = self.entry.bound_on({**inputs, **fitting}, targets)()
        return {
            name: _apart(value) if self.is_range and name not in targets and isinstance(value, np.ndarray) else value
            for name, value in found.items()
        }

    def fitting(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Inputs as its entry takes them, of any layout before."""
        copied: list[str] = []
        for name in self._packed_inputs:  # Each call asks: generators take longer.
            if name in inputs and not ((known := inputs[name].flags).c_contiguous and known.aligned):
                copied.append(name)
        if not copied:
            return inputs
        copies = ((name, np.require(inputs[name], requirements=("C", "ALIGNED"))) for name in copied)
        return {**inputs, **{name: copy.reshape(inputs[name].shape) for name, copy in copies}}


def _apart(value: Any) -> Any:
    """An array that is no part of a larger one, or a list of such; other values of Python as they are."""
    if isinstance(value, list):
        return list(map(_apart, cast("list[Any]", value)))
    if not isinstance(value, np.ndarray):
        return value
    array = cast("np.ndarray", value)
    whole = array.base
    is_part = isinstance(whole, np.ndarray) and whole.nbytes > array.nbytes and whole.dtype == array.dtype
    return array.copy() if is_part or not array.flags.c_contiguous else array


Compile = Callable[[Assumptions], Loaded]
"""Compiles a model for what it may take for granted."""


def _found_nothing(_: Assumptions) -> None:
    """What is stored where nothing is."""


def _forgotten(_: object) -> None:
    """What is kept where nothing is."""


@dataclass(frozen=True)
class Making:
    """How executables of a model are made, and what later sessions may know of it."""

    compile: Compile
    """Compiles for assumptions; raises `InputValuesError` for inputs whose values they have to have."""
    background: Compile | None = None
    """The same in a thread beside calls; `None` where nothing is made there."""
    stored: Callable[[Assumptions], Loaded | None] = _found_nothing
    """What is made for assumptions already."""
    learned: Callable[[Sequence[str]], None] = _forgotten
    """Is told of all inputs whose values fix shapes."""
    opened: Callable[[Assumptions], None] = _forgotten
    """Is told of the range that there is code for."""
