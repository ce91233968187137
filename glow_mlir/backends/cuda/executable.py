"""Loaded artifacts: launch programs on a device, one graph for each set of buffers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from glow_mlir.backends.cuda.device import CudaBuffer, CudaDevice, CudaEvent
from glow_mlir.backends.cuda.driver import Grid, Handle
from glow_mlir.errors import GlowError, failed_call
from glow_mlir.runtime.artifact import Artifact, Binding, Entry
from glow_mlir.runtime.device_entry import DeviceEntry
from glow_mlir.runtime.devices import Buffer, DeviceState, Event
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.launches import ACTIVATIONS, BINDINGS, CONSTANTS, SCALARS, STATUS, Launch
from glow_mlir.runtime.machine_code import initial_state
from glow_mlir.support.dataclass import dataclass

BLOCK = 128
"""The number of threads per block if each thread runs a task of its own (`codegen.nvptx`)."""

MAX_GRAPHS = 8
"""The number of buffer sets for which an entry keeps graphs."""

WORD = 4


@dataclass(frozen=True)
class Prepared:
    """A launch with its loaded function."""

    function: Handle
    grid: Grid
    launch: Launch
    indices: tuple[int, ...]

    def values(self, bases: Mapping[str, Sequence[int]]) -> list[int]:
        """The arguments for regions at the given addresses."""
        operands = self.launch.operands
        found = [bases[operand.region][operand.binding] + operand.at(self.indices) for operand in operands]
        return [*found, *self.indices[-1:]] if self.launch.takes_round else found


class CudaEntry(DeviceEntry):
    """A function of a loaded artifact; a graph runs all its launches at once."""

    def __init__(self, entry: Entry, loaded: CudaExecutable) -> None:
        super().__init__(entry.name, entry.bindings, loaded.state, loaded.device)
        assert entry.program is not None
        self._entry, self._loaded, self._cuda = entry, loaded, loaded.device
        self.program = entry.program
        self._launches = [loaded.prepared(entry, *item) for item in self.program.launches()]
        words = np.array(self.program.scalars, np.int32)
        self._scalars = self._cuda.allocate(words.nbytes)
        self._status = self._cuda.allocate(WORD * self.program.statuses)
        if words.size:
            self._cuda.upload(self._scalars, words).wait()
        self._graphs: OrderedDict[tuple[int, ...], Handle] = OrderedDict()

    def submit(self, buffers: Sequence[Buffer], after: Sequence[Event] = ()) -> CudaEvent:
        self._cuda.wait_for(after)
        with self._cuda.used():
            given = iter(buffers)
            every = [self._loaded.packed(item) if item.role == "packed" else next(given) for item in self.bindings]
            return self.submit_all(every)

    def submit_all(self, buffers: Sequence[Buffer]) -> CudaEvent:
        """Queue a call on the stream, with a buffer for each binding, including packed state."""
        device, addresses = self._cuda, list[int]()
        for buffer in buffers:
            assert isinstance(buffer, CudaBuffer)
            addresses.append(buffer.address)
        with device.used():
            device.driver.launch_graph(self._graph(tuple(addresses)), device.stream)
            if not self.program.statuses:
                return device.event()
            status = np.zeros(self.program.statuses, np.int32)
            return device.download_at(self._status.address, status, behind=lambda: self._check(status))

    def _graph(self, addresses: tuple[int, ...]) -> Handle:
        """The graph of all launches for bindings at these addresses."""
        driver, activations = self._cuda.driver, self._loaded.activations(self._entry.activations)
        key = (activations, *addresses)
        if key in self._graphs:
            self._graphs.move_to_end(key)
            return self._graphs[key]
        bases = {
            CONSTANTS: [self._loaded.constants.address],
            ACTIVATIONS: [activations],
            BINDINGS: addresses,
            STATUS: [self._status.address],
            SCALARS: [self._scalars.address],
        }
        self._graphs[key] = self._captured(bases)
        if len(self._graphs) > MAX_GRAPHS:
            driver.forget_graph(self._graphs.popitem(last=False)[1])
        return self._graphs[key]

    def _captured(self, bases: Mapping[str, Sequence[int]]) -> Handle:
        """Capture a graph of all launches, with regions at the given addresses."""
        driver, stream = self._cuda.driver, self._cuda.stream
        driver.capture(stream)
        try:
            if self.program.statuses:
                driver.clear(self._status.address, WORD * self.program.statuses, stream)
            for item in self._launches:
                driver.launch(item.function, item.grid, item.values(bases), stream)
        except GlowError:
            with suppress(GlowError):  # All models share the stream: end the capture.
                driver.forget_graph(driver.captured(stream))
            raise
        return driver.captured(stream)

    def _check(self, status: np.ndarray) -> None:
        """Raise `ExecutionError` for the first failed instruction."""
        failed = [number for number, word in enumerate(status.tolist()) if word]
        if failed:
            failure = self._entry.failures[failed[0]]
            raise failed_call(failure.reason, failure.location)


class CudaExecutable(Executable):
    """A loaded artifact on one device, including its constants. Entries share one activation buffer."""

    def __init__(self, artifact: Artifact, device: CudaDevice) -> None:
        manifest = artifact.manifest
        super().__init__([entry.name for entry in manifest.entries], DeviceState(initial_state(artifact), device))
        self._device = device
        self._manifest = manifest
        self._code = artifact.code
        self._modules: dict[int, Handle] = {}
        self._functions: dict[tuple[int, str], Handle] = {}
        self._entries: dict[str, CudaEntry] = {}
        self._packed: dict[str, tuple[CudaBuffer, int]] = {}
        self._activations = device.allocate(0)
        self.constants = device.allocate(artifact.constants.nbytes)
        if artifact.constants.nbytes:
            device.upload(self.constants, artifact.constants).wait()

    @property
    def device(self) -> CudaDevice:
        return self._device

    @property
    def activation_bytes(self) -> int:
        return max((entry.activations for entry in self._manifest.entries), default=0)

    def load(self, name: str) -> CudaEntry:
        with self._device.used():
            if name not in self._entries:
                every = (*self._manifest.entries, *self._manifest.packing)
                self._entries[name] = CudaEntry(next(entry for entry in every if entry.name == name), self)
            return self._entries[name]

    def prepared(self, entry: Entry, launch: Launch, indices: tuple[int, ...]) -> Prepared:
        """A launch of an entry with its loaded function."""
        driver = self._device.driver
        if entry.code not in self._modules:
            self._modules[entry.code] = driver.load(self._code[entry.code])
        key = entry.code, launch.function
        if key not in self._functions:
            self._functions[key] = driver.function(self._modules[entry.code], launch.function)
        parts, threads = launch.parts, launch.threads
        grid = Grid(parts, threads) if threads > 1 else Grid(-(-parts // BLOCK), BLOCK)
        return Prepared(self._functions[key], grid, launch, indices)

    def activations(self, nbytes: int) -> int:
        """The address of the activation buffer, which has at least this size."""
        if self._activations.nbytes < nbytes:
            self._device.free(self._activations)
            self._activations = self._device.allocate(nbytes)
        return self._activations.address

    def packed(self, binding: Binding) -> CudaBuffer:
        """Packed state, packed again if its sources were written."""
        (entry,) = (entry for entry in self._manifest.packing if binding in entry.bindings)
        sources = [item.name for item in entry.bindings if item.role == "state"]
        state = self.state
        assert isinstance(state, DeviceState)
        version = sum(state.changes[name] for name in sources)
        found = self._packed.get(binding.name)
        if found is None or found[1] != version:
            buffer = self._device.allocate(binding.nbytes) if found is None else found[0]
            of = {name: state.buffer(name) for name in sources}
            bound = [buffer if item.role == "packed" else of[item.name] for item in entry.bindings]
            self.load(entry.name).submit_all(bound)
            self._packed[binding.name] = buffer, version
        return self._packed[binding.name][0]
