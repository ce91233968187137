"""
Launch programs: which device functions an entry runs, in order, on which operands and in how many parts.

A backend for a device executes one on its queue. It says nothing of machine code: a function is a name in the module
that `codegen.device_functions` makes beside it, and an operand is a place in one of the regions of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from glow_mlir.support.dataclass import dataclass

CONSTANTS = "constants"
"""The region of constants."""
ACTIVATIONS = "activations"
"""The region of buffers of one call."""
BINDINGS = "bindings"
"""The buffers that a call is bound to, each with a number of its own."""
STATUS = "status"
"""An i32 for each instruction that may fail: calls start with 0, and a failing instruction writes 1."""
SCALARS = "scalars"
"""The numbers of bodies that functions share, i32 words that the program has itself."""


@dataclass(frozen=True)
class Address:
    """An offset in a region: bytes from its start, or from the start of a numbered binding."""

    region: str
    offset: int
    binding: int = 0
    """The number of the binding; 0 for other regions."""
    strides: tuple[int, ...] = ()
    """How many bytes further it is with each trip of the loops around, the outermost first; none where it stays."""

    def at(self, indices: Sequence[int]) -> int:
        """The offset in trips of those numbers of the loops around."""
        return self.offset + sum(index * stride for index, stride in zip(indices, self.strides, strict=False))


@dataclass(frozen=True)
class Launch:
    """
    One run of a device function: all parts may run at once, and the next launch begins when they are done.

    A function takes the addresses of the `operands`, then the numbers of the `symbols`, then, if it `takes_round`, the
    number of the trip of the innermost loop around, an i64, and last the number of the part, an i64.
    """

    function: str
    operands: tuple[Address, ...]
    parts: int = 1
    symbols: tuple[str, ...] = ()
    takes_round: bool = False
    threads: int = 1
    """The number of threads that run a task together, with barriers; 1 if one thread runs a task."""


@dataclass(frozen=True)
class Repeat:
    """Launches that run several times, one trip after the other."""

    trips: int
    body: tuple[Launch | Repeat, ...]


@dataclass(frozen=True)
class LaunchProgram:
    """The launch program of one entry: `steps` in order."""

    name: str
    steps: tuple[Launch | Repeat, ...]
    statuses: int = 0
    """How many instructions may fail: so many words has the region of statuses."""
    scalars: tuple[int, ...] = ()
    """The words of the region of scalar parameters."""

    def launches(self) -> Iterator[tuple[Launch, tuple[int, ...]]]:
        """All launches in order, each with the numbers of the trips of the loops around, the outermost first."""
        return _launches(self.steps, ())

    def functions(self) -> tuple[str, ...]:
        """The functions that it launches, each once."""
        return tuple(dict.fromkeys(launch.function for launch in _each(self.steps)))

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> LaunchProgram:
        """The program that a manifest in JSON has; raises `KeyError` or `TypeError` for anything else."""
        tuples: dict[str, Any] = {"steps": _steps(data["steps"]), "scalars": tuple(map(int, data["scalars"]))}
        return LaunchProgram(**{**data, **tuples})


def _each(steps: Sequence[Launch | Repeat]) -> Iterator[Launch]:
    """The launches in steps, each once."""
    for step in steps:
        if isinstance(step, Repeat):
            yield from _each(step.body)
        else:
            yield step


def _launches(steps: Sequence[Launch | Repeat], indices: tuple[int, ...]) -> Iterator[tuple[Launch, tuple[int, ...]]]:
    for step in steps:
        if isinstance(step, Repeat):
            for index in range(step.trips):
                yield from _launches(step.body, (*indices, index))
        else:
            yield step, indices


def _steps(items: Sequence[Mapping[str, Any]]) -> tuple[Launch | Repeat, ...]:
    """Steps in JSON as values."""
    return tuple(_repeat(item) if "trips" in item else _launch(item) for item in items)


def _repeat(item: Mapping[str, Any]) -> Repeat:
    return Repeat(int(item["trips"]), _steps(item["body"]))


def _launch(item: Mapping[str, Any]) -> Launch:
    tuples: dict[str, Any] = {"operands": tuple(map(_address, item["operands"])), "symbols": tuple(item["symbols"])}
    return Launch(**{**item, **tuples})


def _address(item: Mapping[str, Any]) -> Address:
    strides: dict[str, Any] = {"strides": tuple(item["strides"])}
    return Address(**{**item, **strides})
