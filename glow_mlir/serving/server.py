"""A server of models over HTTP and gRPC, from its start until it is drained."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from glow_mlir.errors import OptionError
from glow_mlir.serving.grpc_service import GrpcServer
from glow_mlir.serving.http_server import HttpServer
from glow_mlir.serving.packages import package
from glow_mlir.serving.service import Service
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Addresses:
    """The addresses of a server: port 0 selects a free one, `None` disables the protocol."""

    host: str = "127.0.0.1"
    http: int | None = 8000
    grpc: int | None = 8001


@dataclass(frozen=True)
class Encryption:
    """The TLS files for encrypted connections."""

    certificate: Path | None = None
    """The TLS certificate and its chain as PEM; `None` without TLS."""
    key: Path | None = None
    """Its private key."""

    def check(self) -> None:
        """Raise `OptionError` for missing files, and for one without the other."""
        if (self.certificate is None) != (self.key is None):
            raise OptionError("TLS needs a certificate and its key", hint="--tls-certificate and --tls-key")
        for path in (self.certificate, self.key):
            if path is not None and not path.is_file():
                raise OptionError("there is no such file", file=str(path))


class Server:
    """A service at its addresses."""

    def __init__(self, service: Service, addresses: Addresses, encryption: Encryption | None = None) -> None:
        """
        Raises `OptionError` if an address is not available, TLS files cannot be read, or remote clients would get local
        permissions.
        """
        service.check_reach(addresses.host)
        self._service = service
        self._encryption = encryption or Encryption()
        self._encryption.check()
        self.ports: dict[str, int] = {}
        """`http` and `grpc` → the port, for each open one."""
        self._http = None if addresses.http is None else self._http_server(addresses.host, addresses.http)
        self._grpc = None if addresses.grpc is None else self._grpc_server(addresses.host, addresses.grpc)

    def _http_server(self, host: str, port: int) -> HttpServer:
        options: dict[str, Any] = {}
        if self._encryption.certificate is not None:
            options = {"ssl_certfile": str(self._encryption.certificate), "ssl_keyfile": str(self._encryption.key)}
        return HttpServer(self._service, host, port, options=options)

    def _grpc_server(self, host: str, port: int) -> GrpcServer:
        credentials = None
        if self._encryption.certificate is not None and self._encryption.key is not None:
            pair = self._encryption.key.read_bytes(), self._encryption.certificate.read_bytes()
            credentials = package("grpc").ssl_server_credentials((pair,))
        named = f"[{host}]" if ":" in host else host
        return GrpcServer(self._service, f"{named}:{port}", credentials)

    async def start(self) -> None:
        """Start accepting requests."""
        if self._http is not None:
            self.ports["http"] = await self._http.start()
        if self._grpc is not None:
            self.ports["grpc"] = await self._grpc.start()

    def close(self) -> None:
        """Free the server if it was not started."""
        if self._http is not None:
            self._http.close()

    async def drain(self, grace: float) -> None:
        """Report not ready, accept no new requests, and cancel those not done after `grace` seconds."""
        self._service.is_open = False
        stops = [server.stop(grace) for server in (self._http, self._grpc) if server is not None]
        await asyncio.gather(*stops)


async def serve(server: Server, grace: float, started: Callable[[Server], None]) -> None:
    """
    Serve until SIGTERM or SIGINT, then drain; a second signal ends the wait. `started` is called once ports are open.
    """
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, asked.set)
    gc.collect()
    gc.freeze()  # Collecting the compiler's objects takes 0.2 s, which blocks requests.
    await server.start()
    started(server)
    await asked.wait()
    asked.clear()
    draining = asyncio.ensure_future(server.drain(grace))
    again = asyncio.ensure_future(asked.wait())
    await asyncio.wait((draining, again), return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    if not draining.done():
        draining.cancel()
    with suppress(asyncio.CancelledError):
        await draining
    gc.unfreeze()
    for number in signals:
        loop.remove_signal_handler(number)
