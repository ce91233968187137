"""Handlers of requests for Starlette: what they return is sent as JSON, and what they raise as an error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from glow_mlir.serving.http_responses import error_headers
from glow_mlir.serving.json_text import write_json
from glow_mlir.serving.packages import package

Handler = Callable[[Any], Awaitable[Any]]
"""Takes Starlette's request; returns data, or a response, which is an ASGI application."""

Failed = Callable[[BaseException], tuple[int, bytes]]
"""An error → its status and its JSON text."""


def json_response(text: bytes, status: int = 200) -> Any:
    """A response of JSON text."""
    headers = {name.decode(): value.decode() for name, value in error_headers(status)}
    return package("starlette.responses").Response(text, status, headers=headers)


def answering(handler: Handler, failed: Failed) -> Handler:
    """Wrap a handler: data is sent as JSON, and errors as `failed` writes them."""

    async def answer(request: Any) -> Any:
        try:
            found = await handler(request)
        except Exception as error:
            status, text = failed(error)
            return json_response(text, status)
        return found if callable(found) else json_response(write_json(found))

    return answer
