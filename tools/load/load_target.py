"""The server and model that a load generator measures."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import numpy as np

from glow_mlir.errors import GlowError, OptionError
from glow_mlir.serving.packages import package
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.load.inference_bodies import (
    INFER,
    METADATA,
    ModelInput,
    described,
    described_message,
    grpc_inference,
    grpc_metadata,
    http_get,
    http_inference,
    model_path,
)
from glow_mlir.tools.load.inference_senders import GrpcSender, HttpSender
from glow_mlir.tools.load.load_driver import Failure, Sender

PORTS = {"http": 80, "https": 443, "grpc": 8001, "grpcs": 8001}
"""Scheme of an address → its default port."""

ADDRESS_HINT = "such as http://127.0.0.1:8000 or grpc://127.0.0.1:8001"

HINTS = {
    "connection": "is a server there, and is this its port for the protocol?",
    "UNAVAILABLE": "is a server there, and is this its port for the protocol?",
    "timeout": "--timeout takes more seconds",
    "401": "--token-file has what the server asks for",
    "UNAUTHENTICATED": "--token-file has what the server asks for",
    "404": "is the name of the model right, and is it loaded?",
    "NOT_FOUND": "is the name of the model right, and is it loaded?",
    "400": "--shape, --bind and --input say what the model gets",
    "422": "a server without binary tensors takes --tensors json",
    "INVALID_ARGUMENT": "--shape, --bind and --input say what the model gets",
    "503": "fewer --clients",
    "RESOURCE_EXHAUSTED": "fewer --clients",
}
"""Status of a failure → a hint."""


class Connection(Sender, Protocol):
    """A sender with access to its last answer, which can be closed."""

    @property
    def body(self) -> bytes:
        """The body of the last answer."""
        ...

    async def close(self) -> None:
        """Release the connection."""
        ...


@dataclass(frozen=True)
class Address:
    """The address of a server, with its scheme: `http`, `https`, `grpc` or `grpcs`."""

    scheme: str
    host: str
    port: int

    @property
    def is_http(self) -> bool:
        """Whether the protocol is HTTP, and not gRPC."""
        return self.scheme.startswith("http")

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self.scheme.endswith("s")

    @property
    def authority(self) -> str:
        """Host and port as one text."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


def address_of(text: str) -> Address:
    """Parse an address in URL form; raises `OptionError`."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise OptionError(f"'{text}' is no address: {error}", hint=ADDRESS_HINT) from None
    if parts.scheme not in PORTS or not parts.hostname or parts.path.strip("/") or parts.query or parts.username:
        raise OptionError(f"'{text}' is no address of a server", hint=ADDRESS_HINT)
    return Address(parts.scheme, parts.hostname, PORTS[parts.scheme] if port is None else port)


@dataclass(frozen=True)
class Access:
    """Access to a server: a token, and the authorities that sign its TLS certificate."""

    token: str = ""
    authorities: Path | None = None
    """A file of certificates; `None` for the system's trusted ones."""

    def check(self) -> None:
        """Raise `OptionError` for a missing file."""
        if self.authorities is not None and not self.authorities.is_file():
            raise OptionError("there is no such file", file=str(self.authorities))


class Target:
    """A model, or a version of one, at an address."""

    def __init__(self, address: Address, model: str, version: str = "", access: Access | None = None) -> None:
        """Raises `OptionError` for files that cannot be read."""
        self.address = address
        self.model = model
        self.version = version
        self._access = access or Access()
        self._access.check()

    def connection(self, request: bytes, method: str = INFER) -> Connection:
        """
        A separate connection in the running event loop, which sends `request` each time.

        `method` is the gRPC method; an HTTP request contains its own path.
        """
        if self.address.is_http:
            return HttpSender(self.address.host, self.address.port, request, self._encryption())
        metadata = [("authorization", f"Bearer {self._access.token}")] if self._access.token else None
        # Channels to one address would otherwise share a connection.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        return GrpcSender(self._channel(options), method, request, metadata)

    def request(self, tensors: Mapping[str, np.ndarray], *, is_binary: bool) -> bytes:
        """The bytes of an inference request; raises `InputError` for tensors that it cannot carry."""
        if not self.address.is_http:
            return grpc_inference(self.model, self.version, tensors, is_binary=is_binary)
        path = model_path(self.model, self.version)
        return http_inference(self.address.authority, path, self._headers(), tensors, is_binary=is_binary)

    async def inputs(self, patience: float) -> tuple[ModelInput, ...]:
        """The inputs of the model; raises `GlowError` if the server does not answer within `patience` seconds."""
        if self.address.is_http:
            path = model_path(self.model, self.version)
            connection = self.connection(http_get(self.address.authority, path, self._headers()))
        else:
            connection = self.connection(grpc_metadata(self.model, self.version), METADATA)
        try:
            failure = await answered(connection, patience)
            if failure is not None:
                raise self.error(failure)
            return described(connection.body) if self.address.is_http else described_message(connection.body)
        finally:
            await connection.close()

    def error(self, failure: Failure) -> GlowError:
        """A failure as an error to raise."""
        reason = f"no answer to a request, {failure.status}: {failure.reason}"
        return GlowError(reason, file=str(self.address), hint=HINTS.get(failure.status, ""))

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._access.token}"} if self._access.token else {}

    def _encryption(self) -> ssl.SSLContext | None:
        """The TLS context that verifies the server's certificate."""
        if not self.address.is_encrypted:
            return None
        try:
            return ssl.create_default_context(cafile=self._access.authorities)
        except ssl.SSLError as error:
            raise OptionError(f"no certificates in it: {error}", file=str(self._access.authorities)) from None

    def _channel(self, options: list[tuple[str, int]]) -> object:
        """A channel of gRPC."""
        channels = package("grpc.aio")
        if not self.address.is_encrypted:
            return channels.insecure_channel(self.address.authority, options)
        authorities = self._access.authorities
        roots = None if authorities is None else authorities.read_bytes()
        return channels.secure_channel(self.address.authority, package("grpc").ssl_channel_credentials(roots), options)


async def answered(sender: Sender, patience: float) -> Failure | None:
    """Send one request with a timeout; return the failure, or `None`."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Failure | None] = loop.create_future()
    timer = loop.call_later(patience, sender.abort)
    sender.send(found.set_result)
    try:
        return await found
    finally:
        timer.cancel()
