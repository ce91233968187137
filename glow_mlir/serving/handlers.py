"""Handlers of requests for Starlette: results are sent as JSON, and exceptions as errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from glow_mlir.errors import InputError
from glow_mlir.serving.http_bodies import HttpBody
from glow_mlir.serving.http_responses import Failed, error_headers
from glow_mlir.serving.json_text import is_object, read_json, write_json
from glow_mlir.serving.packages import package
from glow_mlir.serving.service import Service

Handler = Callable[[Any], Awaitable[Any]]
"""Takes Starlette's request; returns data, or a response, which is an ASGI application."""


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


async def data_of(service: Service, request: Any, *, is_optional: bool = False) -> Mapping[str, Any]:
    """The JSON object of a request, empty if it is optional and there is none; raises `InputError` for other JSON."""
    body = HttpBody(service, dict(request.scope["headers"]))
    try:
        text = await body.read(request.receive)
        data: Any = {} if is_optional and not text else read_json(text)
    finally:
        body.release()
    if not is_object(data):
        raise InputError("the request must be a JSON object")
    return data
