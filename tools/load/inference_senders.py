"""Low-overhead connections that send requests of the inference protocol over HTTP and gRPC."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any, cast

from glow_mlir.serving.json_text import is_object
from glow_mlir.serving.packages import package
from glow_mlir.tools.load.load_driver import LATE, Done, Failure

REST = 0.1
"""Seconds to wait after a failed connection, so that an unreachable server does not cause a flood of failures."""

LONGEST_REASON = 200
"""Characters of a server's error message that are shown."""

UNKNOWN = 1 << 62
"""The size of a response that ends when the connection closes."""


def one_line(text: str) -> str:
    """Shorten a server's message to one line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}…"


class _Wire(asyncio.Protocol):
    """One connection of a sender; events of a connection that the sender has replaced are ignored."""

    def __init__(self, sender: HttpSender) -> None:
        self.transport: asyncio.Transport | None = None
        self._sender = sender

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass.

    def data_received(self, data: bytes) -> None:
        """Receive a part of an answer, or all of it."""
        self._sender.received(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._sender.lost(self, exc)


class HttpSender:
    """A persistent HTTP/1.1 connection that sends the same request each time."""

    def __init__(self, host: str, port: int, request: bytes, encryption: ssl.SSLContext | None = None) -> None:
        """Use the running event loop; `request` is the complete request, head and body."""
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
        """Abort the request, and close its connection, because the answer may still arrive."""
        if self._attempt is not None:
            self._attempt.cancel()
        self._fail(LATE)

    async def close(self) -> None:
        """End the connection."""
        self._done = None
        self._drop()

    @property
    def body(self) -> bytes:
        """The body of the last answer."""
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
        """Handle received bytes of the answer."""
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
        """Handle the end of a connection."""
        if wire is not self._wire:
            return
        self._wire = self._transport = None
        if self._done is None:
            return
        if self._size == UNKNOWN:
            self._size = len(self._data)
            self._answered()
        elif not self._data and not self._is_new:  # The server closed the idle connection: send again.
            self.send(self._done)
        else:
            self._fail(Failure("connection", one_line(str(error or "the server closed it without an answer"))))

    def _read_head(self) -> bool:
        """Parse the head, and find the length of the body (-1 if chunked); return whether the head is complete."""
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
        """The length of a chunked answer, joined once it is complete; -1 before."""
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
        """Complete the request with its answer."""
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
        """Fail the request."""
        self._drop()
        done, self._done = self._done, None
        if done is not None:
            done(failure)

    def _drop(self) -> None:
        transport, self._wire, self._transport = self._transport, None, None
        if transport is not None:
            transport.abort()


def _message_of(body: bytes) -> str:
    """The message of a server's error response."""
    text = body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except ValueError:
        return text or "the server says nothing of it"
    return str(found["error"]) if is_object(found) and "error" in found else text


class GrpcSender:
    """A gRPC method of a channel that is sent the same request each time."""

    def __init__(self, channel: Any, method: str, request: bytes, metadata: Any = None) -> None:
        """Use the running event loop; `channel` is one of `grpc.aio`."""
        self._channel = channel
        self._method = channel.unary_unary(method)
        self._request = request
        self._metadata = metadata
        self._task: asyncio.Task[None] | None = None
        self.body = b""
        """The last answer."""

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
        """Send one request; return the failure, or `None`."""
        try:
            self.body = await self._method(self._request, metadata=self._metadata)
            return None
        except package("grpc").RpcError as error:
            found: Any = error
        status = found.code().name
        if status == "UNAVAILABLE":
            await asyncio.sleep(REST)
        return Failure(status, one_line(found.details() or "the server says nothing of it"))
