"""Connections that send requests of the inference protocol, over HTTP and gRPC, and take little time for it."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any, cast

from glow_mlir.serving.json_text import is_object
from glow_mlir.serving.packages import package
from glow_mlir.tools.load.load_driver import LATE, Done, Failure

REST = 0.1
"""Seconds to wait after a connection that could not be had: who cannot be reached would fail a million times."""

LONGEST_REASON = 200
"""Characters that are shown of what a server says of an error."""

UNKNOWN = 1 << 62
"""The size of a response that ends with its connection."""


def one_line(text: str) -> str:
    """What a server says, in one line of some length."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}…"


class _Wire(asyncio.Protocol):
    """One connection of a sender, which may have had others before: what those still tell is of no interest."""

    def __init__(self, sender: HttpSender) -> None:
        self.transport: asyncio.Transport | None = None
        self._sender = sender

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self.transport = cast(asyncio.Transport, transport)  # That of uvloop is no subclass.

    def data_received(self, data: bytes) -> None:
        """A part of an answer, or all of it."""
        self._sender.received(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._sender.lost(self, exc)


class HttpSender:
    """A connection over HTTP/1.1, which is kept, and sends the same request each time."""

    def __init__(self, host: str, port: int, request: bytes, encryption: ssl.SSLContext | None = None) -> None:
        """Of the event loop that runs; `request` is all of it, its head and its body."""
        self._loop = asyncio.get_running_loop()
        self._where = host, port
        self._request = request
        self._encryption = encryption
        self._wire: _Wire | None = None
        self._transport: asyncio.Transport | None = None
        self._is_new = True
        self._done: Done | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._data = bytearray()
        self._begin = self._size = 0

    def send(self, done: Done) -> None:
        """Send the request; `done` is called when the answer is there."""
        self._done = done
        self._begin = self._size = 0
        self._data.clear()
        if self._transport is None:
            self._attempt = self._loop.create_task(self._connect())
        else:
            self._transport.write(self._request)

    def abort(self) -> None:
        """End the request, and the connection with it: its answer may still come."""
        if self._attempt is not None:
            self._attempt.cancel()
        self._fail(LATE)

    async def close(self) -> None:
        """End the connection."""
        self._done = None
        self._drop()

    @property
    def body(self) -> bytes:
        """The body of the answer that came last."""
        return bytes(self._data[self._begin : self._size])

    async def _connect(self) -> None:
        """Connect, and send the request."""
        try:
            _, wire = await self._loop.create_connection(lambda: _Wire(self), *self._where, ssl=self._encryption)
        except OSError as error:
            await asyncio.sleep(REST)
            self._fail(Failure("connection", one_line(error.strerror or str(error))))
            return
        self._is_new, self._wire, self._transport = True, wire, wire.transport
        if self._transport is not None:
            self._transport.write(self._request)

    def received(self, wire: _Wire, data: bytes) -> None:
        """A part of the answer has come, or all of it."""
        if wire is not self._wire or self._done is None:
            return
        self._data += data
        try:
            if not self._size and not self._read_head():
                return
            if self._size < 0:
                self._size = self._chunked()
        except ValueError:
            self._fail(Failure("connection", "the answer is no HTTP"))
            return
        if 0 <= self._size <= len(self._data):
            self._answered()

    def lost(self, wire: _Wire, error: Exception | None) -> None:
        """A connection has ended."""
        if wire is not self._wire:
            return
        self._wire = self._transport = None
        if self._done is None:
            return
        if self._size == UNKNOWN:
            self._size = len(self._data)
            self._answered()
        elif not self._data and not self._is_new:  # It was idle for too long for the server's taste.
            self.send(self._done)
        else:
            self._fail(Failure("connection", one_line(str(error or "the server closed it without an answer"))))

    def _read_head(self) -> bool:
        """Find out how long the answer is: -1 for one in chunks; whether its head is there."""
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._data[:end]).lower()
        if not head.startswith(b"http/1."):
            raise ValueError
        self._begin = end + 4
        at = head.find(b"\r\ncontent-length:")
        if at >= 0:
            self._size = self._begin + int(head[at + 17 :].partition(b"\r")[0])
        else:
            self._size = -1 if b"\r\ntransfer-encoding:" in head else UNKNOWN
        return True

    def _chunked(self) -> int:
        """The bytes of an answer in chunks, which are put together when all are there; -1 before."""
        parts, begin = list[bytes](), self._begin
        while (end := self._data.find(b"\r\n", begin)) >= 0:
            size = int(bytes(self._data[begin:end]).partition(b";")[0], 16)
            parts.append(bytes(self._data[end + 2 : end + 2 + size]))
            begin = end + 2 + size + 2
            if not size and begin <= len(self._data):
                self._data[self._begin :] = b"".join(parts)
                return len(self._data)
        return -1

    def _answered(self) -> None:
        """The answer is there."""
        self._is_new = False
        done, self._done = self._done, None
        if b"connection: close" in bytes(self._data[: self._begin]).lower():
            self._drop()
        status = bytes(self._data[9:12])
        if done is not None:
            done(
                None
                if status == b"200"
                else Failure(status.decode("ascii", "replace"), one_line(_message_of(self.body)))
            )

    def _fail(self, failure: Failure) -> None:
        """There is no answer."""
        self._drop()
        done, self._done = self._done, None
        if done is not None:
            done(failure)

    def _drop(self) -> None:
        transport, self._wire, self._transport = self._transport, None, None
        if transport is not None:
            transport.abort()


def _message_of(body: bytes) -> str:
    """What a server says of an error."""
    text = body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except ValueError:
        return text or "the server says nothing of it"
    return str(found["error"]) if is_object(found) and "error" in found else text


class GrpcSender:
    """A method of a channel of gRPC, which is sent the same request each time."""

    def __init__(self, channel: Any, method: str, request: bytes, metadata: Any = None) -> None:
        """Of the event loop that runs; `channel` is one of `grpc.aio`."""
        self._channel = channel
        self._method = channel.unary_unary(method)
        self._request = request
        self._metadata = metadata
        self._task: asyncio.Task[None] | None = None
        self.body = b""
        """The answer that came last."""

    def send(self, done: Done) -> None:
        """Send the request; `done` is called when the answer is there."""
        self._task = asyncio.get_running_loop().create_task(self._call(done))

    def abort(self) -> None:
        """End the request."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """End the channel."""
        await self._channel.close()

    async def _call(self, done: Done) -> None:
        try:
            failure = await self._outcome()
        except asyncio.CancelledError:
            failure = LATE
        done(failure)

    async def _outcome(self) -> Failure | None:
        """Ask once: why there is no answer, or that there is one."""
        try:
            self.body = await self._method(self._request, metadata=self._metadata)
            return None
        except package("grpc").RpcError as error:
            found: Any = error
        status = found.code().name
        if status == "UNAVAILABLE":
            await asyncio.sleep(REST)
        return Failure(status, one_line(found.details() or "the server says nothing of it"))
