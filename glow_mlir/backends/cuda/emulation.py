"""The driver of an emulated device: device functions compiled for the CPU run block by block."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from glow_mlir.backends.cuda.driver import Driver, Grid, Properties
from glow_mlir.errors import ExecutionError, OutOfMemoryError
from glow_mlir.runtime.loader import Library
from glow_mlir.support.dlpack import CPU

ALIGNMENT = 256

RACES = "races"
"""The function of a module that returns the address of its `Race` record."""


class Race(ctypes.Structure):
    """
    A race: two threads accessed the same word of shared memory without a barrier in between, and one of them wrote.

    `found` is 0 without a race; the first race is kept.
    """

    _fields_ = [
        ("found", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("first", ctypes.c_int64),
        ("other", ctypes.c_int64),
    ]


class EmulatedStream:
    """A stream that executes operations immediately, or records them while a graph is captured."""

    def __init__(self) -> None:
        self.kept: list[Callable[[], None]] | None = None

    def put(self, work: Callable[[], None]) -> None:
        """Execute an operation, or record it."""
        if self.kept is None:
            work()
        else:
            self.kept.append(work)


class EmulatedModule:
    """Device functions as machine code of this process."""

    def __init__(self, code: bytes) -> None:
        self.library = Library(code)
        self.race = Race.from_address(self.library.function(RACES, [], ctypes.c_int64)())


class EmulatedFunction:
    """A device function; its last arguments are the number of the first block, the number of blocks, and the step."""

    def __init__(self, module: EmulatedModule, name: str) -> None:
        self.name = name
        self._module = module
        self._call: Callable[..., None] | None = None

    def run(self, grid: Grid, values: Sequence[int], backwards: bool) -> None:
        """Run all blocks, in forward or reverse order; raises `ExecutionError` for a race."""
        if self._call is None:
            types = [ctypes.c_int64] * (len(values) + 3)
            self._call = self._module.library.function(self.name, types)
        order = (grid.blocks - 1, grid.blocks, -1) if backwards else (0, grid.blocks, 1)
        self._call(*values, *order)
        race = self._module.race
        if race.found:
            threads = f"{race.first} and {race.other}"
            race.found = 0
            reason = f"'{self.name}' has a race: threads {threads} at byte {race.offset} of shared memory"
            raise ExecutionError(reason, hint="a barrier between what one writes and another reads")


class EmulatedDriver(Driver):
    """
    Implements a driver in host memory. Every other launch runs its blocks in reverse, because their order must not
    matter.
    """

    DLPACK = CPU[0]

    def __init__(self, generation: int = 80) -> None:
        self._generation = generation
        self._memory: dict[int, np.ndarray] = {}
        self._launches = 0
        self._number = 0

    def count(self) -> int:
        return 1

    def properties(self, device: int) -> Properties:
        return Properties("emulation", self._generation, 0)

    def open(self, device: int) -> int:
        self._number = device
        return device

    def use(self, context: int) -> None:
        """Do nothing: there is only one context."""

    def allocate(self, nbytes: int) -> int:
        try:
            whole = np.full(nbytes + ALIGNMENT, 0xFF, np.uint8)  # Unwritten memory reads as NaN.
        except MemoryError as error:
            raise OutOfMemoryError(f"no {nbytes:,} bytes for a buffer") from error
        address = whole.ctypes.data + -whole.ctypes.data % ALIGNMENT
        self._memory[address] = whole
        return address

    def free(self, address: int) -> None:
        del self._memory[address]

    def allocate_pinned(self, nbytes: int) -> int:
        return self.allocate(nbytes)

    def free_pinned(self, address: int) -> None:
        self.free(address)

    def stream(self) -> EmulatedStream:
        return EmulatedStream()

    def device_at(self, address: int) -> int:
        return self._number

    def stream_address(self, stream: EmulatedStream) -> None:
        """Return `None`: other libraries do not know the stream."""

    def synchronize(self, stream: int) -> None:
        """Do nothing: there are no other streams."""

    def upload(self, address: int, source: int, nbytes: int, stream: EmulatedStream) -> None:
        stream.put(lambda: _copy(address, source, nbytes))

    def download(self, host_address: int, address: int, nbytes: int, stream: EmulatedStream) -> None:
        stream.put(lambda: _copy(host_address, address, nbytes))

    def clear(self, address: int, nbytes: int, stream: EmulatedStream) -> None:
        def clear() -> None:
            ctypes.memset(address, 0, nbytes)

        stream.put(clear)

    def record(self, stream: EmulatedStream) -> None:
        """Do nothing: all operations are complete."""

    def forget(self, event: None) -> None:
        """Do nothing: there is nothing to release."""

    def is_done(self, event: None) -> bool:
        return True

    def wait(self, event: None) -> None:
        """Do nothing: the event has happened."""

    def load(self, code: bytes) -> EmulatedModule:
        return EmulatedModule(code)

    def function(self, module: EmulatedModule, name: str) -> EmulatedFunction:
        return EmulatedFunction(module, name)

    def launch(self, function: EmulatedFunction, grid: Grid, values: Sequence[int], stream: EmulatedStream) -> None:
        def run() -> None:
            self._launches += 1
            function.run(grid, values, self._launches % 2 == 0)

        stream.put(run)

    def capture(self, stream: EmulatedStream) -> None:
        stream.kept = []

    def captured(self, stream: EmulatedStream) -> list[Callable[[], None]]:
        found, stream.kept = stream.kept, None
        return found or []

    def launch_graph(self, graph: Sequence[Callable[[], None]], stream: EmulatedStream) -> None:
        for work in graph:
            stream.put(work)

    def forget_graph(self, graph: Sequence[Callable[[], None]]) -> None:
        """Do nothing: the graph is freed with its last reference."""


def _copy(host_address: int, source: int, nbytes: int) -> None:
    ctypes.memmove(host_address, source, nbytes)
