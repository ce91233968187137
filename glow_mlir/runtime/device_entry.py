"""
Entries run by device queues, as functions of arrays.

Tensors on the device are read and written there; the queue copies all others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TypeGuard

import numpy as np

from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.device_array import DeviceArray, OutputTarget, Tensor, all_on_targets, is_apart, on_host
from glow_mlir.runtime.devices import Buffer, Device, DeviceState, Event, wait_for_all
from glow_mlir.runtime.executable import EntryPoint
from glow_mlir.runtime.state import State
from glow_mlir.support.cancellation import held


class QueueEntry(ABC):
    """A function run by the queue of a device."""

    bindings: tuple[Binding, ...]

    @property
    def passed(self) -> tuple[Binding, ...]:
        """The inputs and outputs, in order."""
        return tuple(binding for binding in self.bindings if binding.role in ("input", "output"))

    @abstractmethod
    def enqueue(self, buffers: Sequence[Buffer], after: Sequence[Event] = ()) -> Event:
        """
        Queue a call on the device, with a buffer for each input and output.

        Each buffer has at least the size of its binding. Failures are reported by the event. Calls of functions with
        state are queued by one thread at a time, in the order in which they see the state.
        """


class Pending(ABC):
    """A call in device queues."""

    @abstractmethod
    def wait(self) -> dict[str, Tensor]:
        """Wait for the call; return the outputs by name, or raise its error."""


class QueuedEntryPoint(EntryPoint):
    """An entry whose calls are queued; several may be queued at once."""

    @abstractmethod
    def begin(self, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]) -> Pending:
        """
        Queue a call; outputs go to their targets, or to new host arrays.

        Inputs must not change until the call is done. Calls begun by one thread see state in that order.
        """

    def bound_on(
        self, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]
    ) -> Callable[[], dict[str, Tensor]]:
        return lambda: self.begin(inputs, targets).wait()

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        # The state stays on the device: its host arrays are not read.
        return {name: on_host(value) for name, value in self.begin(inputs, {}).wait().items()}

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return self.run(inputs)


class DeviceEntry(QueuedEntryPoint, QueueEntry):
    """A function on a device: `submit` queues it, and calls with arrays are built on that."""

    def __init__(self, name: str, bindings: Sequence[Binding], state: State, device: Device) -> None:
        super().__init__(name, bindings, state)
        self.device = device

    @abstractmethod
    def submit(self, buffers: Sequence[Buffer], after: Sequence[Event] = ()) -> Event:
        """
        Queue a call on the device, with a buffer for each of the `bindings`, including state.

        Packed state has no buffer here: a device that needs it packs it itself.
        """

    def enqueue(self, buffers: Sequence[Buffer], after: Sequence[Event] = ()) -> Event:
        given, state = iter(buffers), self._state
        kept = [binding.name for binding in self.bindings if binding.role == "state"]
        if not kept:
            return self.submit(buffers, after)
        assert isinstance(state, DeviceState)
        bound = (item for item in self.bindings if item.role != "packed")
        every = [state.buffer(item.name) if item.role == "state" else next(given) for item in bound]
        done = self.submit(every, after)
        state.written(kept)
        return done

    def begin(self, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]) -> Pending:
        call = _DeviceCall(self.device, inputs, targets)
        with call.buffers_for(self.passed) as buffers:
            # Readers of the state wait for the queue.
            with held(self._state.turn) if self._has_state else nullcontext():
                done = self.enqueue(buffers, call.events)
            call.enqueued(done)
        return call


class _DeviceCall(Pending):
    """A call on one device; tensors elsewhere are copied to and from new buffers."""

    def __init__(self, device: Device, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]) -> None:
        self.events: list[Event] = []
        """The queued operations, in order."""
        self._device = device
        self._inputs = {name: value if self._is_near(value) else on_host(value) for name, value in inputs.items()}
        self._targets = targets
        self._found: dict[str, Tensor] = {}
        self._copied: list[tuple[Buffer, np.ndarray]] = []

    def _is_near(self, value: OutputTarget | None) -> TypeGuard[DeviceArray]:
        """Whether it is a tensor on this device."""
        return isinstance(value, DeviceArray) and value.device is self._device

    @contextmanager
    def buffers_for(self, bindings: Sequence[Binding]) -> Generator[list[Buffer]]:
        """The buffers of these inputs and outputs, owned by the queue until it has finished."""
        own, buffers = list[Buffer](), list[Buffer]()
        try:
            for binding in bindings:
                tensor = self._inputs[binding.name] if binding.role == "input" else self._output(binding)
                if isinstance(tensor, DeviceArray):
                    buffers.append(tensor.buffer)
                    continue
                own.append(self._device.allocate(binding.nbytes))
                buffers.append(own[-1])
                if binding.role == "input":
                    self.events.append(self._device.upload(own[-1], tensor))
                else:
                    self._copied.append((own[-1], tensor))
            yield buffers
        finally:
            for buffer in own:
                self._device.free(buffer)

    def _output(self, binding: Binding) -> Tensor:
        """The tensor of an output: its target, or a new one, copied from the device."""
        target, shape, dtype = self._targets.get(binding.name), binding.shape, binding.numpy_dtype
        if target is self._device:
            tensor = DeviceArray.empty(self._device, shape, dtype)
        elif self._is_near(target) and is_apart(target, [*self._inputs.values(), *self._found.values()]):
            tensor = target
        else:
            tensor = np.empty(shape, dtype)
        self._found[binding.name] = tensor
        return tensor

    def enqueued(self, done: Event) -> None:
        """Queue the copies to the host after the call."""
        self.events += [done, *(self._device.download(buffer, array, (done,)) for buffer, array in self._copied)]

    def wait(self) -> dict[str, Tensor]:
        wait_for_all(self.events)
        return all_on_targets(self._found, self._targets)
