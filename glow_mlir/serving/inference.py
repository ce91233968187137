"""A request for an inference, independent of its protocol, and its result."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.host.sequences import SequenceStep
from glow_mlir.serving.errors import NotReadyError
from glow_mlir.serving.models import Network
from glow_mlir.serving.shared_memory import RegionSlice
from glow_mlir.support.dataclass import dataclass

Outputs = dict[str, np.ndarray]


@dataclass
class WantedOutput:
    """An output requested by a client: in the response as binary data or numbers, or in shared memory."""

    name: str
    is_binary: bool = False
    region_slice: RegionSlice | None = None


@dataclass
class InferenceRequest:
    """An inference request; `timeout` is in seconds, and empty `outputs` ask for all."""

    inputs: dict[str, np.ndarray]
    outputs: list[WantedOutput]
    names: list[str] | None = None
    """The names of the requested outputs, if any are named."""
    id: str = ""
    priority: int = 0
    timeout: float | None = None
    sequence: SequenceStep | None = None

    def submit(self, network: Network) -> Future[Outputs]:
        """Queue the request at the network; raises the errors of the future, and `NotReadyError`."""
        if not network.is_ready:
            raise NotReadyError(f"model '{network.name}' accepts no requests now")
        options: dict[str, Any] = {} if self.sequence is None else {"sequence": self.sequence}
        return network.submit(self.inputs, outputs=self.names, priority=self.priority, timeout=self.timeout, **options)

    def add_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Apply the parameters of the request; raises `InputError` for values of a wrong type."""
        if "priority" in parameters:
            self.priority = natural(parameters, "priority")
        if microseconds := natural(parameters, "timeout"):
            self.timeout = microseconds / 1e6
        name = parameters.get("sequence_id", 0)
        if type(name) not in (int, str):
            raise InputError("the parameter 'sequence_id' must be a number or a string")
        if isinstance(name, str):
            check_text("the parameter 'sequence_id'", name)
        if name not in (0, ""):
            is_start, is_end = (flag(parameters, word) for word in ("sequence_start", "sequence_end"))
            self.sequence = SequenceStep(name, is_start, is_end)


MOST = (1 << 63) - 1
"""The largest integer parameter."""

MAX_TEXT = 1 << 16
"""The maximum length of names and identifiers in requests."""


def check_text(what: str, text: str) -> None:
    """Raise `InputError` for an identifier longer than `MAX_TEXT`."""
    if len(text) > MAX_TEXT:
        raise InputError(f"{what} has {len(text)} characters, more than {MAX_TEXT}")


def natural(parameters: Mapping[str, Any], name: str, default: int = 0) -> int:
    """A parameter that is a natural number; raises `InputError` for anything else."""
    value = parameters.get(name, default)
    if type(value) is not int or not 0 <= value <= MOST:
        raise InputError(f"the parameter '{name}' must be an integer from 0 to {MOST}")
    return value


def flag(parameters: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    """A boolean parameter; raises `InputError` for anything else."""
    value = parameters.get(name, default)
    if type(value) is not bool:
        raise InputError(f"the parameter '{name}' must be true or false")
    return value


class Completions:
    """
    Pass results of other threads to coroutines of one event loop.

    Waking the loop takes a system call, which results that arrive together share.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._done: deque[asyncio.Future[None]] = deque()
        self._is_called = False

    async def result(self, future: Future[Outputs]) -> Outputs:
        """The result of a future, which is cancelled together with the task that awaits it."""
        if not future.done():
            waiter = self._loop.create_future()
            future.add_done_callback(partial(self._add, waiter))
            try:
                await waiter
            except asyncio.CancelledError:
                future.cancel()
                raise
        return future.result()

    def _add(self, waiter: asyncio.Future[None], _: Future[Outputs]) -> None:
        """A future is done; called in any thread."""
        self._done.append(waiter)
        if not self._is_called:
            self._is_called = True
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # The loop is closed, and nothing waits any more.
                self._done.clear()

    def _wake(self) -> None:
        """Resume the coroutines whose futures are done."""
        self._is_called = False  # Later additions may wake twice, but are not missed.
        while self._done:
            waiter = self._done.popleft()
            if not waiter.done():
                waiter.set_result(None)
