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
"""How many requests of one stream are computed at once."""


class Answer(NamedTuple):
    """A response, and the memory that it takes."""

    data: bytes
    charge: Charge


class Step:
    """
    A request of a stream.

    Requests are read in steps, beside each other, and a short one is read before a long one that came earlier. Networks
    get them in the order in which they came, as the requests of a sequence need it.
    """

    def __init__(self, before: asyncio.Event) -> None:
        """`before` is that the network has the request in front of it, or never will."""
        self._before = before
        self.is_passed = asyncio.Event()
        """That the network has this one, or never will, and those in front of it."""
        self._passing: asyncio.Future[None] | None = None
        self.id = ""
        """Its identifier, as far as it was read."""

    async def submitted(self, request: InferenceRequest, network: Network) -> Future[Outputs]:
        """Submit it when its turn comes."""
        await self._before.wait()
        try:
            return request.submit(network)
        finally:
            self.is_passed.set()

    def leave(self, _: object = None) -> None:
        """The network has the request by now, or never gets it: the turn is passed on when it comes."""
        if self._before.is_set():
            self.is_passed.set()
        elif not self.is_passed.is_set() and self._passing is None:
            self._passing = asyncio.ensure_future(self._pass())

    async def _pass(self) -> None:
        await self._before.wait()
        self.is_passed.set()


Answering = Callable[[bytes, float | None, Step], Awaitable[Answer]]
"""What answers a request of a stream that has so many seconds left, and raises nothing."""


class Stream:
    """One stream; it ends where it has no request for so many seconds, and none is being answered."""

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
        """The answers, which have been sent when the next is asked for; raises `SlowBodyError` for an idle stream."""
        reader = asyncio.create_task(self._take(messages))
        self._timer = self._loop.call_later(self._idle_seconds, self._look, reader)
        task = None
        try:
            while (task := await self._tasks.get()) is not None:
                answer = await task
                task = None  # Who asked has it.
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
        """Begin to answer what comes, one behind the other."""
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
                    _discard(task)  # Nobody else knows it.
                    raise
        except Exception as error:  # What was taken is still answered.
            logger.warning("a stream of requests failed", exc_info=error)
        await self._tasks.put(None)

    def _look(self, reader: asyncio.Task[None]) -> None:
        """End the stream if nothing goes on in it."""
        left = self._since + self._idle_seconds - self._loop.time()
        if self._waiting or left > 0:
            self._timer = self._loop.call_later(self._idle_seconds if self._waiting else left, self._look, reader)
        elif not reader.done():
            self._is_idle = True
            reader.cancel()
            self._tasks.put_nowait(None)  # There is room: nobody waits for an answer.


def _discard(task: asyncio.Task[Answer] | None) -> None:
    """Nobody is told of an answer any more."""
    if task is not None:
        task.cancel()
        task.add_done_callback(_release)


def _release(task: asyncio.Task[Answer]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().charge.release()
