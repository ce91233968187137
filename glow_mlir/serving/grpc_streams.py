"""Streams of requests over gRPC: several are computed at once, and answered in their order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from glow_mlir.serving.charges import Charge
from glow_mlir.serving.errors import SlowBodyError
from glow_mlir.serving.http_responses import logger
from glow_mlir.serving.inference import InferenceRequest, Outputs
from glow_mlir.serving.models import Network

DEPTH = 32
"""The maximum number of requests of a stream computed at once."""


class Answer(NamedTuple):
    """A response, and the memory charged for it."""

    data: bytes
    charge: Charge


class Step:
    """
    A request of a stream.

    Steps are decoded concurrently, so a short request may be decoded before an earlier long one. Requests are submitted
    to networks in order of arrival, as sequences require.
    """

    def __init__(self, before: asyncio.Event) -> None:
        """`before` is set when the previous request was submitted, or never will be."""
        self._before = before
        self.is_passed = asyncio.Event()
        """Set when this request and those before it were submitted, or never will be."""
        self._passing: asyncio.Future[None] | None = None
        self.id = ""
        """The request's identifier, as far as it was decoded."""

    async def submitted(self, request: InferenceRequest, network: Network) -> Future[Outputs]:
        """Submit the request in turn."""
        await self._before.wait()
        try:
            return request.submit(network)
        finally:
            self.is_passed.set()

    def leave(self, _: object = None) -> None:
        """This request was submitted, or never will be: pass the turn on in order."""
        if self._before.is_set():
            self.is_passed.set()
        elif not self.is_passed.is_set() and self._passing is None:
            self._passing = asyncio.ensure_future(self._pass())

    async def _pass(self) -> None:
        await self._before.wait()
        self.is_passed.set()


Answering = Callable[[bytes, float | None, Step], Awaitable[Answer]]
"""Answers a request of a stream with a number of seconds left; raises nothing."""


class Stream:
    """One stream; it ends after a number of seconds without requests and pending answers."""

    def __init__(self, answering: Answering, context: Any, idle_seconds: float) -> None:
        self._answering = answering
        self._context = context
        self._idle_seconds = idle_seconds
        self._loop = asyncio.get_running_loop()
        self._tasks: asyncio.Queue[asyncio.Task[Answer] | None] = asyncio.Queue(DEPTH)
        self._waiting = 0
        self._since = self._loop.time()
        self._is_idle = False

    async def answers(self, messages: AsyncIterator[bytes]) -> AsyncGenerator[Answer]:
        """The answers, each sent before the next is requested; raises `SlowBodyError` for an idle stream."""
        reader = asyncio.create_task(self._take(messages))
        self._timer = self._loop.call_later(self._idle_seconds, self._look, reader)
        task = None
        try:
            while (task := await self._tasks.get()) is not None:
                answer = await task
                task = None  # The caller has it.
                yield answer
                self._waiting -= 1
                self._since = self._loop.time()
            if self._is_idle:
                raise SlowBodyError(f"the stream had no request for {self._idle_seconds:g} seconds")
        finally:
            self._timer.cancel()
            reader.cancel()
            _discard(task)
            while not self._tasks.empty():
                _discard(self._tasks.get_nowait())

    async def _take(self, messages: AsyncIterator[bytes]) -> None:
        """Start to answer requests in order of arrival."""
        before = asyncio.Event()
        before.set()
        try:
            async for data in messages:
                self._waiting += 1
                step = Step(before)
                before = step.is_passed
                task = asyncio.ensure_future(self._answering(data, self._context.time_remaining(), step))
                task.add_done_callback(step.leave)
                try:
                    await self._tasks.put(task)
                except asyncio.CancelledError:
                    _discard(task)  # It was not queued.
                    raise
        except Exception as error:  # Accepted requests are still answered.
            logger.warning("a stream of requests failed", exc_info=error)
        await self._tasks.put(None)

    def _look(self, reader: asyncio.Task[None]) -> None:
        """End the stream if it is idle."""
        left = self._since + self._idle_seconds - self._loop.time()
        if self._waiting or left > 0:
            self._timer = self._loop.call_later(self._idle_seconds if self._waiting else left, self._look, reader)
        elif not reader.done():
            self._is_idle = True
            reader.cancel()
            self._tasks.put_nowait(None)  # There is room, because no answer is pending.


def _discard(task: asyncio.Task[Answer] | None) -> None:
    """Discard an answer that is no longer needed."""
    if task is not None:
        task.cancel()
        task.add_done_callback(_release)


def _release(task: asyncio.Task[Answer]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().charge.release()
