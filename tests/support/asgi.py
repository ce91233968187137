"""Requests to an application of ASGI without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

App = Callable[[Mapping[str, Any], Any, Any], Awaitable[None]]


@dataclass
class Response:
    """What an application answered; a status of 0 where it did not."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def data(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return self.data["error"]


async def ask(
    app: App,
    path: str,
    parts: Sequence[bytes] = (b"",),
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    is_whole: bool = True,
    leaves_after: float | None = None,
) -> Response:
    """
    The answer to a request whose body comes in parts.

    Where `is_whole` is not set, more is said to come than does; the client goes after `leaves_after` seconds.
    """
    found, waiting = Response(), list(parts)
    said = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    scope = {"type": "http", "method": method, "path": path, "headers": said, "query_string": b"", "root_path": ""}

    async def receive() -> dict[str, Any]:
        if waiting:
            part = waiting.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(waiting) or not is_whole}
        await asyncio.sleep(60 if leaves_after is None else leaves_after)
        return {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            found.status = message["status"]
            found.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            found.body += message.get("body", b"")

    await app(scope, receive, send)
    return found
