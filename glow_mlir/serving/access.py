"""Who may ask a server: addresses of this machine alone, the heads of requests that browsers send, and their types."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from glow_mlir.errors import InputError
from glow_mlir.serving.errors import ForbiddenError, MediaTypeError

Headers = Iterable[tuple[bytes, bytes]]

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names by which clients of this machine call a server that listens at it alone."""

BODY_TYPES = frozenset({b"application/json", b"application/octet-stream"})
"""The types that a body may say. Pages of any origin send others without asking first."""


def is_loopback(host: str) -> bool:
    """Whether an address, or all those of a name, are of this machine alone."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    try:
        found = {item[4][0] for item in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(ipaddress.ip_address(str(address).partition("%")[0]).is_loopback for address in found)


def local_names(host: str) -> frozenset[str] | None:
    """The names that requests may call a server by which listens at that address; `None` for any name."""
    return LOOPBACK_NAMES | {host.lower()} if is_loopback(host) else None


class HeadCheck:
    """Checks the heads of requests over HTTP. `names` are those that may stand in `Host`; `None` stands for any."""

    def __init__(self, names: frozenset[str] | None) -> None:
        self._names = names

    def check(self, scope: Mapping[str, Any]) -> None:
        """
        Let a request in.

        Raises `InputError` where it names no host, or several, `ForbiddenError` where it comes from a page of another
        origin, or calls this server by a name of others, and `MediaTypeError` for a body of another type.
        """
        hosts: list[bytes] = []
        origin = kind = None
        has_body = False
        for name, value in scope["headers"]:
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origin = value
            elif name == b"content-type":
                kind = value
            elif name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0")):
                has_body = True
        if len(hosts) > 1 or (not hosts and scope.get("http_version") != "1.0"):
            raise InputError(f"the request has {len(hosts)} headers Host, not one")
        if self._names is not None:
            self._check_origin(hosts[0] if hosts else None, origin)
        if has_body and scope["method"] == "POST":
            _check_type(kind, origin)

    def _check_origin(self, host: bytes | None, origin: bytes | None) -> None:
        """Refuse what a page of another origin, or one that calls this machine by its own name, sends."""
        if host is not None and _name_of(host) not in (self._names or ()):
            reason = "the request calls this server by a name that is not of this machine"
            raise ForbiddenError(reason, hint="the header Host")
        if origin is not None and (host is None or origin.lower().partition(b"://")[2] != host.lower()):
            raise ForbiddenError("the request comes from a page of another origin", hint="the header Origin")


def _name_of(host: bytes) -> str:
    """The name in a header `Host`, without its port."""
    text = host.decode("latin-1").lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def _check_type(kind: bytes | None, origin: bytes | None) -> None:
    """Raise `MediaTypeError` for a type that no body may have; programs may leave it out, and pages may not."""
    if kind is None and origin is None:
        return
    if kind is None or kind.partition(b";")[0].strip().lower() not in BODY_TYPES:
        hint = "application/json, or application/octet-stream where tensors follow as bytes"
        raise MediaTypeError("the header Content-Type says no JSON", hint=hint)
