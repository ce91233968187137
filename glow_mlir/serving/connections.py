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
    """Connections at once; those beyond are closed as they come."""
    header_bytes: int = 16 << 10
    """Bytes of the head of a request."""
    header_seconds: float = 10.0
    """How long a new connection, or a request that has begun, may take until its head is there."""
    read_seconds: float = 30.0
    """The maximum time without progress of a client that reads a response, in seconds."""
    idle_seconds: int = 75
    """How long a connection is kept that asks for nothing."""


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
        """The head is there."""
        self._head_begun = None
        self._is_in_body = True

    def end(self) -> None:
        """All of the request is there."""
        self._is_in_body = self._was_answered = False

    def head_bytes(self, size: int) -> int:
        """The bytes of a head that has not ended, after so many more; 0 where it has."""
        if self._head_begun is None:
            return 0
        self._head_bytes += size
        return self._head_bytes

    def is_late(self, latest: float, is_answered: bool) -> bool:
        """
        Whether the head began before, and is not there, or the request was answered long before its body ended.

        That was long before if it was so the last time that somebody asked.
        """
        was_answered, self._was_answered = self._was_answered, self._is_in_body and is_answered
        if self._head_begun is not None:
            return self._head_begun < latest
        return was_answered and self._was_answered


class Unread:
    """The bytes of a response that wait in this process for the client to read."""

    def __init__(self) -> None:
        self._size = 0
        self._since = 0.0

    def is_stuck(self, size: int, now: float, seconds: float) -> bool:
        """Whether of so many bytes none was read for so long, as far as somebody has looked."""
        if size != self._size or not size:
            self._size, self._since = size, now
        return now - self._since > seconds


def unsent(transport: Any) -> int:
    """
    Bytes that the system of a client has not taken, where some lie with this program.

    The system takes more of a program after a third of a long queue is gone, for which a slow client takes a while: its
    queue counts as well.
    """
    size = transport.get_write_buffer_size()
    if not size:
        return 0
    queued = bytearray(_INT.size)
    with suppress(OSError):
        fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, queued)
    return size + _INT.unpack(queued)[0]


def _end_if_late(connection: Any, limits: ConnectionLimits, now: float) -> None:
    """End a connection whose request does not come, or whose client reads nothing."""
    is_answered = connection.cycle is not None and connection.cycle.response_complete
    if connection.unread.is_stuck(unsent(connection.transport), now, limits.read_seconds):
        connection.transport.abort()  # Closing would wait until all is read.
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
            """End it if its request does not come, or its client reads nothing; called once a second."""
            _end_if_late(self, limits, now)

    return Guarded
