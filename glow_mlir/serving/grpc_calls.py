"""Calls of gRPC from their begin until their clients have read all of the answer, which may be never."""

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
"""For so long connections that are to end are collected: to find them takes a look at all open files."""

FILES = "/dev/fd"
"""The open files of this process."""


class Calls:
    """The calls at a server, for the thread of one event loop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._late: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self.count = 0
        """How many there are that count."""

    def call(self, context: Any) -> Call:
        """One more call, which does not count yet."""
        return Call(self, context)

    def enter(self) -> None:
        """One more call that counts; raises `OverloadError` where there are as many as may be."""
        if self.count >= self._limits.requests:
            raise OverloadError(f"the server already has {self.count} calls", hint="later")
        self.count += 1

    def seconds(self, size: int) -> float:
        """The time in which a client reads so many bytes."""
        return self._limits.response_seconds + size / self._limits.response_rate

    def disconnect(self, peer: str) -> None:
        """End the connection of a peer, soon."""
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
    """One call: it holds memory for its answer until the client has read that, or is gone."""

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
        """Count, as all calls do but those of health; raises `OverloadError` where there are as many as may be."""
        self._calls.enter()
        self._counts = True

    async def send(self, data: bytes, charge: Charge) -> None:
        """Send one of several messages, for which `charge` was taken: it is released when the client has read it."""
        self._begin(len(data))
        try:
            await self._context.write(data)
        finally:
            self._until = None
            charge.release()

    def finish(self, size: int = 0, charge: Charge | None = None) -> None:
        """What is sent from here on, so many bytes for which `charge` was taken, or an error, is the last of it."""
        self._charge = charge
        self._begin(size)

    def _begin(self, size: int) -> None:
        """So many bytes are sent, for which the client has some time; one timer is there for all messages."""
        self._until = self._loop.time() + self._calls.seconds(size)
        if self._timer is None:
            self._timer = self._loop.call_at(self._until, self._look)

    def _look(self) -> None:
        """Whether the client is late, at the time that an earlier message had, or this one."""
        self._timer = None
        if self._until is None:
            return
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._look)
        else:
            self._calls.disconnect(self._peer)

    def _end(self, _: Any) -> None:
        """The client has the answer, or is gone."""
        self._calls.count -= self._counts
        if self._timer is not None:
            self._timer.cancel()
        if self._charge is not None:
            self._charge.release()


def disconnect(peers: Collection[str]) -> None:
    """
    End the connections of this process to peers, as gRPC names them: `ipv4:127.0.0.1:50000`, `ipv6:%5B::1%5D:50000`.

    gRPC for Python ends no call whose client does not read, and tells nobody of its sockets.
    """
    wanted = {_address(peer) for peer in peers}
    for name in os.listdir(FILES):
        with suppress(OSError, ValueError):  # It is closed by now, or is no connection.
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
    """The host and the port of a peer; of one without a port what no connection has."""
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    return (_host(host.strip("[]")), int(port)) if port.isdecimal() else ("", 0)


def _host(name: str) -> str:
    """An address in the one form that it has for both families."""
    address = ip_address(name.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
