"""Access control of a server: local addresses, request headers that browsers send, and content types."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from glow_mlir.errors import InputError
from glow_mlir.serving.errors import ForbiddenError, MediaTypeError

Head = Mapping[bytes, bytes]
"""The headers of a request by name; for repeated headers, which only `Host` may be, the last."""

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names by which clients on this machine call a server that listens only on it."""

BODY_TYPES = frozenset({b"application/json", b"application/octet-stream"})
"""The accepted content types of a body. Pages of other origins can send other types without a preflight request."""


def is_loopback(host: str) -> bool:
    """Whether an address, or every address of a name, belongs to this machine."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    try:
        found = {item[4][0] for item in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(ipaddress.ip_address(str(address).partition("%")[0]).is_loopback for address in found)


def local_names(host: str) -> frozenset[str] | None:
    """The names that requests may use for a server listening on that address; `None` for any."""
    return LOOPBACK_NAMES | {host.lower()} if is_loopback(host) else None


class HeadCheck:
    """Check the heads of HTTP requests. `names` are the accepted values of `Host`; `None` for any."""

    def __init__(self, names: frozenset[str] | None) -> None:
        self._names = names

    def check(self, scope: Mapping[str, Any], head: Head) -> None:
        """
        Accept a request with the headers `head`, or raise an error.

        Raises `InputError` for a missing or repeated host, `ForbiddenError` for a request from a page of another origin
        or to another name, and `MediaTypeError` for a body of another type.
        """
        host, origin = head.get(b"host"), head.get(b"origin")
        if host is None or len(head) != len(scope["headers"]):
            _check_hosts(scope)
        if self._names is not None:
            self._check_origin(host, origin)
        kind = head.get(b"content-type")
        if kind in BODY_TYPES or scope["method"] != "POST":
            return
        if head.get(b"content-length", b"").strip(b"0") or b"transfer-encoding" in head:
            _check_type(kind, origin)

    def _check_origin(self, host: bytes | None, origin: bytes | None) -> None:
        """Refuse requests of pages of another origin, and of pages that use another name for this machine."""
        if host is not None and _name_of(host) not in (self._names or ()):
            reason = "the header Host names another machine"
            raise ForbiddenError(reason, hint="the header Host")
        if origin is not None and (host is None or origin.lower().partition(b"://")[2] != host.lower()):
            raise ForbiddenError("the request comes from another origin", hint="the header Origin")


def _check_hosts(scope: Mapping[str, Any]) -> None:
    """Raise `InputError` unless there is exactly one `Host` header, or none if the protocol does not require it."""
    count = sum(name == b"host" for name, _ in scope["headers"])
    if count > 1 or (not count and scope.get("http_version") != "1.0"):
        raise InputError(f"the request has {count} headers Host, not one")


@lru_cache(64)
def _name_of(host: bytes) -> str:
    """The name in a header `Host`, without its port."""
    text = host.decode("latin-1").lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def _check_type(kind: bytes | None, origin: bytes | None) -> None:
    """Raise `MediaTypeError` for a type that no body may have; only programs, not pages, may omit it."""
    if kind is None and origin is None:
        return
    if kind is None or kind.partition(b";")[0].strip().lower() not in BODY_TYPES:
        hint = "application/octet-stream if tensors follow as bytes"
        raise MediaTypeError("expected Content-Type application/json", hint=hint)
