"""gRPC calls from their start until their clients have read the whole answer, which may be never."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import Collection
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import unquote

from glow_mlir.serving.charges import Charge
from glow_mlir.serving.errors import OverloadError
from glow_mlir.serving.http_responses import logger
from glow_mlir.serving.service import Limits

TOGETHER_SECONDS = 0.1
"""Seconds for which disconnections are collected, because each search reads all open files."""

FILES = "/dev/fd"
"""The open files of this process."""


class Calls:
    """The calls of a server, used by the thread of one event loop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._late: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self.count = 0
        """The number of counted calls."""

    def call(self, context: Any) -> Call:
        """A new call, not counted yet."""
        return Call(self, context)

    def enter(self) -> None:
        """Count a call; raises `OverloadError` if there are too many."""
        if self.count >= self._limits.requests:
            raise OverloadError(f"the server already has {self.count} calls", hint="later")
        self.count += 1

    def seconds(self, size: int) -> float:
        """The time allowed to a client for reading that many bytes."""
        return self._limits.response_seconds + size / self._limits.response_rate

    def disconnect(self, peer: str) -> None:
        """Schedule the disconnection of a peer."""
        self._late.add(peer)
        if self._task is None:
            self._task = asyncio.create_task(self._end_late())

    async def _end_late(self) -> None:
        await asyncio.sleep(TOGETHER_SECONDS)
        peers, self._late, self._task = self._late, set(), None
        for peer in peers:
            logger.warning("%s does not read what it is sent, and is disconnected", peer)
        await asyncio.get_running_loop().run_in_executor(None, disconnect, peers)


class Call:
    """One call; it holds memory for its answer until the client has read it, or has disconnected."""

    def __init__(self, calls: Calls, context: Any) -> None:
        self._calls = calls
        self._context = context
        self._peer = context.peer()
        self._counts = False
        self._charge: Charge | None = None
        self._loop = asyncio.get_running_loop()
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        context.add_done_callback(self._end)

    def enter(self) -> None:
        """Count the call, unless it is a health check; raises `OverloadError` if there are too many."""
        self._calls.enter()
        self._counts = True

    async def send(self, data: bytes, charge: Charge) -> None:
        """Send one of several messages; its `charge` is released when the client has read it."""
        self._begin(len(data))
        try:
            await self._context.write(data)
        finally:
            self._until = None
            charge.release()

    def finish(self, size: int = 0, charge: Charge | None = None) -> None:
        """The following bytes, charged to `charge`, or an error, are the end of the answer."""
        self._charge = charge
        self._begin(size)

    def _begin(self, size: int) -> None:
        """Start to send bytes, for which the client has limited time; one timer serves all messages."""
        self._until = self._loop.time() + self._calls.seconds(size)
        if self._timer is None:
            self._timer = self._loop.call_at(self._until, self._look)

    def _look(self) -> None:
        """Check whether the client is late, at the deadline of this or an earlier message."""
        self._timer = None
        if self._until is None:
            return
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._look)
        else:
            self._calls.disconnect(self._peer)

    def _end(self, _: Any) -> None:
        """The client has read the answer, or disconnected."""
        self._calls.count -= self._counts
        if self._timer is not None:
            self._timer.cancel()
        if self._charge is not None:
            self._charge.release()


def disconnect(peers: Collection[str]) -> None:
    """
    Close this process's connections to peers in gRPC's notation: `ipv4:127.0.0.1:50000`, `ipv6:%5B::1%5D:50000`.

    gRPC for Python does not end calls of clients that do not read, and does not expose its sockets.
    """
    wanted = {_address(peer) for peer in peers}
    for name in os.listdir(FILES):
        with suppress(OSError, ValueError):  # Already closed, or not a connection.
            duplicate = os.dup(int(name))
            if not stat.S_ISSOCK(os.fstat(duplicate).st_mode):
                os.close(duplicate)
                continue
            with socket.socket(fileno=duplicate) as connection:
                if connection.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                host, port = connection.getpeername()[:2]
                if (_host(host), port) in wanted:
                    connection.shutdown(socket.SHUT_RDWR)


def _address(peer: str) -> tuple[str, int]:
    """The host and port of a peer; without a port, a value that matches no connection."""
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    return (_host(host.strip("[]")), int(port)) if port.isdecimal() else ("", 0)


def _host(name: str) -> str:
    """An address in a form shared by both address families."""
    address = ip_address(name.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
