"""Connections over HTTP: uvicorn's, with the limits that it lacks."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from glow_mlir.serving.packages import package
from glow_mlir.support.dataclass import dataclass

_INT = struct.Struct("i")

TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@dataclass(frozen=True)
class ConnectionLimits:
    """The limits of connections."""

    connections: int = 4096
    """Maximum number of connections; further ones are closed immediately."""
    header_bytes: int = 16 << 10
    """Maximum bytes of a request's head."""
    header_seconds: float = 10.0
    """Maximum time until the head of a new connection's request, or of a started request, is complete."""
    read_seconds: float = 30.0
    """The maximum time without progress of a client that reads a response, in seconds."""
    idle_seconds: int = 75
    """Maximum time that an idle connection is kept open."""


class Progress:
    """The progress of the request of a connection, which starts at the time `now`."""

    def __init__(self, now: float) -> None:
        self.begin(now)

    def begin(self, now: float) -> None:
        """The head of a request begins."""
        self._head_begun: float | None = now
        self._head_bytes = 0
        self._is_in_body = self._was_answered = False

    def end_head(self) -> None:
        """The head is complete."""
        self._head_begun = None
        self._is_in_body = True

    def end(self) -> None:
        """The request is complete."""
        self._is_in_body = self._was_answered = False

    def head_bytes(self, size: int) -> int:
        """The bytes of an incomplete head, after receiving more; 0 if the head is complete."""
        if self._head_begun is None:
            return 0
        self._head_bytes += size
        return self._head_bytes

    def is_late(self, latest: float, is_answered: bool) -> bool:
        """
        Whether an incomplete head began before `latest`, or the request was answered long before its body ended.

        The latter means that it was already so at the previous call.
        """
        was_answered, self._was_answered = self._was_answered, self._is_in_body and is_answered
        if self._head_begun is not None:
            return self._head_begun < latest
        return was_answered and self._was_answered


class Unread:
    """The bytes of a response in this process that the client has not read."""

    def __init__(self) -> None:
        self._size = 0
        self._since = 0.0

    def is_stuck(self, size: int, now: float, seconds: float) -> bool:
        """Whether none of the bytes was read for a number of seconds, judged by the previous calls."""
        if size != self._size or not size:
            self._size, self._since = size, now
        return now - self._since > seconds


def unsent(transport: Any) -> int:
    """
    Unsent bytes of a response, including the system's queue, if some are still in this process.

    The system accepts more data only after a third of a long queue is sent, which takes a while for a slow client;
    therefore its queue counts as well.
    """
    size = transport.get_write_buffer_size()
    if not size:
        return 0
    queued = bytearray(_INT.size)
    with suppress(OSError):
        fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, queued)
    return size + _INT.unpack(queued)[0]


def _end_if_late(connection: Any, limits: ConnectionLimits, now: float) -> None:
    """Abort a connection whose request is late, or whose client does not read."""
    is_answered = connection.cycle is not None and connection.cycle.response_complete
    if connection.unread.is_stuck(unsent(connection.transport), now, limits.read_seconds):
        connection.transport.abort()  # Closing would wait until everything is read.
    elif connection.progress.is_late(now - limits.header_seconds, is_answered):
        connection.transport.close()


def guarded_protocol(limits: ConnectionLimits) -> Callable[..., Any]:
    """Uvicorn's protocol, with limits on the heads of requests and on connections."""
    base: Any = package("uvicorn.protocols.http.httptools_impl").HttpToolsProtocol

    class Guarded(base):
        """A connection."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.progress = Progress(self.loop.time())
            self.unread = Unread()
            if len(self.connections) > limits.connections:
                self.connections.discard(self)
                transport.abort()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.progress.begin(self.loop.time())

        def on_headers_complete(self) -> None:
            self.progress.end_head()
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self.progress.end()
            super().on_message_complete()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.progress.head_bytes(len(data)) > limits.header_bytes and not self.transport.is_closing():
                self.transport.write(TOO_LONG)
                self.transport.close()

        def end_if_late(self, now: float) -> None:
            """Abort the connection if its request is late, or its client does not read; called once per second."""
            _end_if_late(self, limits, now)

    return Guarded
