"""Messages of gRPC while they arrive: its package assembles each one before anybody knows its size."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import cast

from glow_mlir.errors import InputError
from glow_mlir.serving.errors import OverloadError, SlowBodyError
from glow_mlir.serving.service import Limits


class Arrivals:
    """
    The messages that may arrive at once: as many as fit in memory, each as large as a message may be.

    Calls wait for their turn. A stream keeps its turn, because its next message may arrive at any time. Calls and
    streams each take at most half of `memory_bytes`, in addition to the requests that have arrived. Objects of a gRPC
    call form reference cycles, which keep the message of a call that has ended. They are collected when such messages
    may take an eighth of `memory_bytes`.
    """

    def __init__(self, limits: Limits) -> None:
        self._most = max(1, limits.memory_bytes // (2 * limits.message_bytes))
        self._turns = asyncio.Semaphore(self._most)
        self._seconds = limits.body_seconds
        self._streams = 0
        self._kept_bytes, self._most_kept = 0, limits.memory_bytes // 8

    @asynccontextmanager
    async def message(self, messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """
        The one message of a call, for the time of the call.

        Raises `OverloadError` if the turn does not come in time, `SlowBodyError` if the message does not arrive in time
        after that, and `InputError` if there is none.
        """
        data = await self._received(messages)
        try:
            yield data
        finally:
            self._keep(len(data))

    async def _received(self, messages: AsyncIterator[bytes]) -> bytes:
        try:
            async with asyncio.timeout(self._seconds):
                await self._turns.acquire()
        except TimeoutError:
            reason = f"{self._most} messages are received at once, and no turn came within {self._seconds:g} seconds"
            hint = "try again later, raise --max-memory, or lower --max-message"
            raise OverloadError(reason, hint=hint) from None
        try:
            async with (
                asyncio.timeout(self._seconds),
                aclosing(cast("AsyncGenerator[bytes]", aiter(messages))) as parts,
            ):
                # A closed generator does not keep the message until the client has read the response.
                found = await anext(parts, None)
        except TimeoutError:
            raise SlowBodyError(f"the message did not arrive within {self._seconds:g} seconds") from None
        finally:
            self._turns.release()
        if found is None:
            raise InputError("the call has no message")
        return found

    def _keep(self, size: int) -> None:
        """A call with a message of that size ends; collect ended calls if they take too much memory."""
        self._kept_bytes += size
        if self._kept_bytes > self._most_kept:
            gc.collect()
            self._kept_bytes = size  # This call still holds its message.

    @contextmanager
    def stream(self) -> Generator[None]:
        """Occupy a stream's place; raises `OverloadError` if there are too many streams."""
        if self._streams >= self._most:
            hint = "send several requests in one stream, raise --max-memory, or lower --max-message"
            raise OverloadError(f"the server already has {self._streams} streams", hint=hint)
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1
