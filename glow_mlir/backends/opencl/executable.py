"""Execution of launch programs on a device: kernels, their arguments, and statuses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from glow_mlir.backends.opencl.device import OpenCLBuffer, OpenCLDevice, OpenCLEvent, naming_failures
from glow_mlir.backends.opencl.library import opencl
from glow_mlir.backends.opencl.programs import BuiltProgram
from glow_mlir.errors import OutOfMemoryError, failed_call
from glow_mlir.runtime.artifact import Artifact, Binding, Entry
from glow_mlir.runtime.device_entry import DeviceEntry
from glow_mlir.runtime.devices import Buffer, DeviceState, Event
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.launches import ACTIVATIONS, BINDINGS, CONSTANTS, SCALARS, STATUS, Address, Launch
from glow_mlir.runtime.machine_code import initial_state
from glow_mlir.support.kernel_names import kernel_name

_ONE = (1,)
"""The number of items in a work-group."""

WORD = 4
"""The bytes of a status word."""


class LaunchedKernel:
    """
    A launch with its arguments.

    Constant arguments are set once; buffers of bindings, and addresses that change with loops, for each run.
    """

    def __init__(self, launch: Launch, kernel: Any, regions: Mapping[str, Any]) -> None:
        self._kernel = kernel
        self._size = (launch.parts,)
        self._kept: dict[int, Any] = {}
        """Argument number → its buffer, because PyOpenCL does not keep kernel arguments alive."""
        self._bound: list[tuple[int, int]] = []
        """The number of each argument that is a binding, and the binding's number."""
        self._moving: list[tuple[int, Address]] = []
        """The number of each argument that is an offset changing with loops."""
        for number, operand in enumerate(launch.operands):
            if operand.region == BINDINGS:
                self._bound.append((2 * number, operand.binding))
            else:
                self._set_buffer(2 * number, regions[operand.region])
            if any(operand.strides):
                self._moving.append((2 * number + 1, operand))
            else:
                self._kernel.set_arg(2 * number + 1, np.uint64(operand.offset))
        self._round = 2 * len(launch.operands) if launch.takes_round else None
        self._enqueue = opencl().enqueue_nd_range_kernel

    def _set_buffer(self, number: int, memory: Any) -> None:
        if self._kept.get(number) is not memory:
            self._kernel.set_arg(number, memory)
            self._kept[number] = memory

    def run(self, queue: Any, buffers: Sequence[Any], indices: Sequence[int], after: Any) -> Any:
        """Queue the launch for the given iterations of the enclosing loops."""
        for number, binding in self._bound:
            self._set_buffer(number, buffers[binding])
        for number, operand in self._moving:
            self._kernel.set_arg(number, np.uint64(operand.at(indices)))
        if self._round is not None:
            self._kernel.set_arg(self._round, np.uint64(indices[-1]))
        return self._enqueue(queue, self._kernel, self._size, _ONE, wait_for=after)


class CallEvent(OpenCLEvent):
    """The end of a call; it fails if an instruction has failed."""

    def __init__(self, event: Any, after: Sequence[Event], entry: OpenCLEntry, statuses: np.ndarray) -> None:
        super().__init__(event, after)
        self._failures = entry.entry.failures
        self._statuses = statuses
        self._keep = entry.loaded.unkept(entry.entry)

    def wait(self) -> None:
        super().wait()
        keep, self._keep = self._keep, None  # Several threads may wait.
        if keep is not None:
            keep()
        if self._statuses.any():
            failure = self._failures[int(np.flatnonzero(self._statuses)[0])]
            raise failed_call(failure.reason, failure.location)


class OpenCLEntry(DeviceEntry):
    """A function on an OpenCL device. Calls run one after the other in its queue, and share the activations."""

    def __init__(self, entry: Entry, loaded: OpenCLExecutable) -> None:
        super().__init__(entry.name, entry.bindings, loaded.state, loaded.device)
        assert entry.program is not None
        self.entry, self.loaded, self._device = entry, loaded, loaded.device
        self._statuses = self._device.allocate(WORD * entry.program.statuses) if entry.program.statuses else None
        regions = {
            CONSTANTS: loaded.constants,
            ACTIVATIONS: loaded.activations.memory,
            SCALARS: loaded.constant_buffer(np.array(entry.program.scalars, np.int32)),
            STATUS: self._statuses and self._statuses.memory,
        }
        kernels: dict[Launch, LaunchedKernel] = {}
        self._steps: list[tuple[LaunchedKernel, tuple[int, ...]]] = []
        for launch, indices in entry.program.launches():
            if launch not in kernels:
                kernels[launch] = LaunchedKernel(launch, loaded.kernel(entry.code, launch.function), regions)
            self._steps.append((kernels[launch], indices))

    def submit(self, buffers: Sequence[Buffer], after: Sequence[Event] = ()) -> Event:
        given = iter(buffers)
        every = [self.loaded.packed(item) if item.role == "packed" else next(given) for item in self.bindings]
        return self.submit_all(every, after)

    def submit_all(self, buffers: Sequence[Buffer], after: Sequence[Event] = ()) -> Event:
        """Queue a call, with a buffer for each binding, including packed state."""
        memories = [buffer.memory for buffer in buffers if isinstance(buffer, OpenCLBuffer)]
        statuses = np.zeros(0 if self._statuses is None else self._statuses.nbytes // WORD, np.int32)
        with self.loaded.turn, naming_failures(self._device.name, f"@{self.name}"):
            done = self._submit(memories, self._device.awaited(after), statuses)
            return CallEvent(done, after, self, statuses)

    def _submit(self, memories: Sequence[Any], awaited: Any, statuses: np.ndarray) -> Any:
        """The event of all launches, after which the statuses are available."""
        cl, queue, event = opencl(), self._device.queue, None
        if self._statuses is not None:
            cl.enqueue_fill_buffer(queue, self._statuses.memory, np.int32(0), 0, self._statuses.nbytes, awaited)
            awaited = None
        for kernel, indices in self._steps:
            event = kernel.run(queue, memories, indices, awaited)
            awaited = None
        if self._statuses is not None:
            event = self._device.copied(statuses, self._statuses.memory)
        event = event or cl.enqueue_marker(queue, awaited)
        queue.flush()
        return event


class OpenCLExecutable(Executable):
    """A loaded artifact on one device: its programs, built for the device, and its constants."""

    def __init__(self, artifact: Artifact, device: OpenCLDevice) -> None:
        manifest = artifact.manifest
        super().__init__([entry.name for entry in manifest.entries], DeviceState(initial_state(artifact), device))
        self._device = device
        self._manifest = manifest
        self._code = artifact.code
        self._nbytes = artifact.constants.nbytes
        self._programs: dict[int, BuiltProgram] = {}
        self._entries: dict[str, OpenCLEntry] = {}
        self._packed: dict[str, tuple[OpenCLBuffer, tuple[int, ...]]] = {}
        self._begun = frozenset[str]()
        """The entries that were queued so far."""
        self._loading = threading.RLock()
        self.turn = threading.RLock()
        """A lock for queueing calls, because they share the activations and the arguments of kernels."""
        self.constants = self.constant_buffer(artifact.constants)
        self.activations = device.allocate(self.activation_bytes)
        """The activation buffer of all entries, which run one after the other."""

    def constant_buffer(self, array: np.ndarray) -> Any:
        """A read-only buffer with the bytes of an array."""
        cl = opencl()
        if not array.nbytes:
            return self.device.allocate(0).memory
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        try:
            return cl.Buffer(self.device.context, flags, hostbuf=array)
        except cl.Error as error:
            raise OutOfMemoryError(f"there are no {array.nbytes} bytes of memory on {self.device.name}") from error

    def kernel(self, code: int, function: str) -> Any:
        """A new kernel of a device function, with arguments of its own."""
        if code not in self._programs:
            self._programs[code] = BuiltProgram(self.device.context, self.device.handle, self._code[code])
        return opencl().Kernel(self._programs[code].program, kernel_name(function))

    @property
    def device(self) -> OpenCLDevice:
        return self._device

    @property
    def memory(self) -> dict[object, int]:
        return {self: self._nbytes + self.activation_bytes}

    @property
    def activation_bytes(self) -> int:
        every = (*self._manifest.entries, *self._manifest.packing)
        return max((entry.activations for entry in every), default=0)

    def load(self, name: str) -> OpenCLEntry:
        with self._loading:
            if name not in self._entries:
                every = (*self._manifest.entries, *self._manifest.packing)
                self._entries[name] = OpenCLEntry(next(entry for entry in every if entry.name == name), self)
            return self._entries[name]

    def unkept(self, entry: Entry) -> Callable[[], None] | None:
        """
        A function that stores a program's binary after an entry has run; `None` if it is already stored.

        Drivers may compile kernels at their first run. Entries that pack state run before the entry that reads it.
        """
        program = self._programs.get(entry.code)
        self._begun |= {entry.name}
        if program is None or program.is_kept(self._begun):
            return None
        return partial(program.keep, self._begun)

    def packed(self, binding: Binding) -> OpenCLBuffer:
        """Packed state, packed again if its sources were written."""
        (entry,) = (entry for entry in self._manifest.packing if binding in entry.bindings)
        sources = [item.name for item in entry.bindings if item.role == "state"]
        state = self.state
        assert isinstance(state, DeviceState)
        version = tuple(state.changes[name] for name in sources)
        buffer, made_of = self._packed.get(binding.name, (None, None))
        if buffer is None:
            buffer = self.device.allocate(binding.nbytes)
        if made_of != version:
            of = {name: state.buffer(name) for name in sources}
            bound = [buffer if item.role == "packed" else of[item.name] for item in entry.bindings]
            self.load(entry.name).submit_all(bound)
            self._packed[binding.name] = buffer, version
        return buffer
