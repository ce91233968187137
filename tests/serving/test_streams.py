"""Streams of gRPC: a client that leaves takes all of its requests with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from glow_mlir.serving import grpc_service
from glow_mlir.serving.grpc_service import GrpcInference


class Call:
    """A call without a limit of time."""

    def time_remaining(self) -> None:
        return None


def test_requests_end_with_their_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the one that is taken, and waits for a place among those that are computed at once."""
    monkeypatch.setattr(grpc_service, "DEPTH", 1)
    asked: list[bytes] = []
    ended: list[bytes] = []

    async def computed(self: GrpcInference, data: bytes, remaining: float | None) -> bytes:
        asked.append(data)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(data)
        return data

    async def requests() -> AsyncIterator[bytes]:
        for number in range(9):
            yield bytes([number])

    async def leave() -> None:
        given: Any = None  # Requests that are not computed ask for nothing.
        answers = GrpcInference(given, given)._answers(requests(), Call())  # pyright: ignore[reportPrivateUsage]
        first = asyncio.ensure_future(anext(answers))
        await asyncio.sleep(0.05)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.sleep(0.05)
        assert len(asked) == 3  # One is awaited, one is in the queue, and one waits in front of it.
        assert sorted(ended) == asked

    monkeypatch.setattr(GrpcInference, "_streamed", computed)
    asyncio.run(asyncio.wait_for(leave(), 10))
