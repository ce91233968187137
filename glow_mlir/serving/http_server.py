"""The HTTP server: uvicorn, with additional limits on connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from glow_mlir.errors import OptionError
from glow_mlir.serving.connections import ConnectionLimits, guarded_protocol
from glow_mlir.serving.http_app import HttpApp
from glow_mlir.serving.packages import package
from glow_mlir.serving.service import Service

BACKLOG = 1024


class HttpServer:
    """An HTTP server in the event loop that starts it; raises `OptionError` if uvicorn is not installed."""

    def __init__(
        self,
        service: Service,
        host: str,
        port: int,
        *,
        limits: ConnectionLimits | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """`port` 0 selects a free one; `options` are passed to uvicorn's configuration, for example for TLS."""
        given = limits or ConnectionLimits()
        self._listener = _listening(host, port)
        self._config = package("uvicorn").Config(
            HttpApp(service),
            http=guarded_protocol(given),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=given.idle_seconds,
            **(options or {}),
        )
        self._server = _watching()(self._config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Start accepting requests; return the port."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.001)
        if self._task.done():
            await self._task
        return self._listener.getsockname()[1]

    def close(self) -> None:
        """Stop listening; a started server closes its own socket."""
        self._listener.close()

    async def stop(self, grace: float) -> None:
        """Stop accepting requests, and cancel those not done after `grace` seconds."""
        if self._task is None:
            return
        self._config.timeout_graceful_shutdown = grace
        self._server.should_exit = True
        await self._task


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket; raises `OptionError` if the address is not available."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Name the protocol; otherwise asyncio delays the body of a response until the client acknowledges its head.
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        raise OptionError(f"cannot listen on {host}:{port}: {error}") from None
    return listener


def _watching() -> Callable[..., Any]:
    """Uvicorn's server class, extended to close idle connections, and to ignore signals."""
    base: Any = package("uvicorn").Server

    class Watching(base):
        """The server."""

        def capture_signals(self) -> nullcontext[None]:
            return nullcontext()

        async def on_tick(self, counter: int) -> bool:
            if counter % 10 == 0:
                now = asyncio.get_running_loop().time()
                for connection in list(self.server_state.connections):
                    connection.end_if_late(now)
            return await base.on_tick(self, counter)

    return Watching
