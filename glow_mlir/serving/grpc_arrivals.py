"""Messages of gRPC while they come: its package puts each together at one go, and nobody sees of how many bytes."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator

from glow_mlir.errors import InputError
from glow_mlir.serving.errors import OverloadError, SlowBodyError
from glow_mlir.serving.service import Limits


class Arrivals:
    """
    The messages that may come at once: as many as memory has room for, each as long as one may be.

    Calls wait for their turn. A stream keeps its place, since its next message may come at any time. Both together take
    `memory_bytes` at most, beside those that requests take that are there. Objects of a call of gRPC refer to each
    other, and keep its message until they are collected, which is done once there may be an eighth of `memory_bytes`.
    """

    def __init__(self, limits: Limits) -> None:
        self._most = max(1, limits.memory_bytes // (2 * limits.message_bytes))
        self._turns = asyncio.Semaphore(self._most)
        self._seconds = limits.body_seconds
        self._streams = 0
        self._kept_bytes, self._most_kept = 0, limits.memory_bytes // 8

    async def message(self, messages: AsyncIterator[bytes]) -> bytes:
        """The one message of a call; raises `SlowBodyError` where it does not come, and `InputError` for none."""
        try:
            async with asyncio.timeout(self._seconds), self._turns:
                found = await anext(messages, None)
        except TimeoutError:
            raise SlowBodyError(f"the message did not arrive within {self._seconds:g} seconds") from None
        if found is None:
            raise InputError("the call has no message")
        self._kept_bytes += len(found)
        if self._kept_bytes > self._most_kept:
            gc.collect()
            self._kept_bytes = 0
        return found

    def enter_stream(self) -> None:
        """One more stream; raises `OverloadError` where there are as many as may be."""
        if self._streams >= self._most:
            hint = "send several requests in one stream, raise --max-memory, or lower --max-message"
            raise OverloadError(f"the server already has {self._streams} streams", hint=hint)
        self._streams += 1

    def leave_stream(self) -> None:
        """A stream has ended."""
        self._streams -= 1
