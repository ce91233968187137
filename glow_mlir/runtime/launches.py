"""
Launch programs: the device functions that an entry runs, in order, with their operands and numbers of tasks.

A device backend executes one on its queue. It is independent of machine code: a function is a name in the module from
`codegen.device_functions`, and an operand is an offset in one of the memory regions.
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
"""The buffers that a call is bound to, each with its own number."""
STATUS = "status"
"""An i32 for each instruction that may fail: calls start with 0, and a failing instruction writes 1."""
SCALARS = "scalars"
"""Scalar parameters of function bodies shared by several instructions: i32 words stored in the program."""


@dataclass(frozen=True)
class Address:
    """An offset in a region: bytes from its start, or from the start of a numbered binding."""

    region: str
    offset: int
    binding: int = 0
    """The number of the binding; 0 for other regions."""
    strides: tuple[int, ...] = ()
    """The increment in bytes for each iteration of the enclosing loops, the outermost first; empty if constant."""

    def at(self, indices: Sequence[int]) -> int:
        """The offset in the given iterations of the enclosing loops."""
        return self.offset + sum(index * stride for index, stride in zip(indices, self.strides, strict=False))


@dataclass(frozen=True)
class Launch:
    """
    One run of a device function: all tasks may run at once, and the next launch begins when they are done.

    The arguments of a function are the addresses of the `operands`; the values of the `symbols`; with `takes_round`,
    the iteration number of the innermost enclosing loop, an i64; and the task number, an i64.
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
    """Launches that are repeated, one iteration after the other."""

    trips: int
    body: tuple[Launch | Repeat, ...]


@dataclass(frozen=True)
class LaunchProgram:
    """The launch program of one entry: `steps` in order."""

    name: str
    steps: tuple[Launch | Repeat, ...]
    statuses: int = 0
    """The number of instructions that may fail, which is the size of the status region in words."""
    scalars: tuple[int, ...] = ()
    """The words of the region of scalar parameters."""

    def launches(self) -> Iterator[tuple[Launch, tuple[int, ...]]]:
        """All launches in order, each with the iteration numbers of the enclosing loops, the outermost first."""
        return _launches(self.steps, ())

    def functions(self) -> tuple[str, ...]:
        """The functions that it launches, without duplicates."""
        return tuple(dict.fromkeys(launch.function for launch in _each(self.steps)))

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> LaunchProgram:
        """The program from a JSON manifest; raises `KeyError` or `TypeError` for anything else."""
        tuples: dict[str, Any] = {"steps": _steps(data["steps"]), "scalars": tuple(map(int, data["scalars"]))}
        return LaunchProgram(**{**data, **tuples})


def _each(steps: Sequence[Launch | Repeat]) -> Iterator[Launch]:
    """The launches in steps, without repetition."""
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
