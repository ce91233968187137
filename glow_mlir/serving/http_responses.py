"""HTTP responses as ASGI messages."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from glow_mlir.serving.errors import BodyTooLargeError, DisconnectedError, SlowBodyError, Status, status_of, words_of
from glow_mlir.serving.http_bodies import FORMATS, Receive, Send
from glow_mlir.serving.json_text import write_json

Headers = list[tuple[bytes, bytes]]

Failed = Callable[[BaseException], tuple[int, bytes]]
"""An error → its status and its JSON text."""

LINGER_SECONDS = 0.5
"""
Seconds for which the rest of a body is discarded before the connection closes; otherwise the client may miss the
answer.
"""

PART_BYTES = 1 << 16
"""The size of the pieces of longer bodies; a piece is passed on when the client has read most of the previous ones."""

JSON_TYPE = (b"content-type", b"application/json")
BINARY_TYPE = (b"content-type", b"application/octet-stream")

logger = logging.getLogger("glow_mlir.serving")


async def respond(
    send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], parts: Sequence[bytes | memoryview], size: int
) -> None:
    """Send a response of `size` bytes with a length header. A large response waits for its client to read it."""
    length = (b"content-length", b"%d" % size)
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    if size <= PART_BYTES:
        await send({"type": "http.response.body", "body": b"".join(parts)})
        return
    for piece in _pieces(parts):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


def _pieces(parts: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Split a body into pieces of at most `PART_BYTES`, and not much less if parts are small."""
    waiting: list[bytes | memoryview] = []
    size = 0
    for part in parts:
        if waiting and size + len(part) > PART_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
        if len(part) <= PART_BYTES:
            waiting.append(part)
            size += len(part)
            continue
        for begin in range(0, len(part), PART_BYTES):
            yield bytes(part[begin : begin + PART_BYTES])
    if waiting:
        yield b"".join(waiting)


def compressed(parts: Iterable[bytes | memoryview], encoding: bytes) -> list[bytes | memoryview]:
    """Compress the parts of a body with an encoding of `FORMATS`, favouring speed."""
    deflater = zlib.compressobj(zlib.Z_BEST_SPEED, zlib.DEFLATED, FORMATS[encoding])
    return [*map(deflater.compress, parts), deflater.flush()]


async def respond_error(send: Send, receive: Receive, error: BaseException, failed: Failed | None = None) -> None:
    """
    Send an error, as `failed` writes it; the connection closes if the rest of the body is not wanted.
    """
    if isinstance(error, DisconnectedError):
        return
    status, body = (failed or error_response)(error)
    headers = error_headers(status)
    if not isinstance(error, (BodyTooLargeError, SlowBodyError)):
        await respond(send, status, headers, [body], len(body))
        return
    whole = [(b"content-length", b"%d" % len(body)), (b"connection", b"close"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": whole})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while (message := await receive())["type"] == "http.request" and message.get("more_body"):
                pass
    except TimeoutError:
        pass
    await send({"type": "http.response.body", "body": b""})


def logged(error: BaseException) -> Status:
    """The status of an error; server faults are logged."""
    status = status_of(error)
    if status.http == 500:
        logger.error("a request failed", exc_info=error)
    return status


def error_headers(status: int) -> Headers:
    """The headers of an error; who finds no place is told when to come again."""
    return [JSON_TYPE, (b"retry-after", b"1")] if status in (429, 503) else [JSON_TYPE]


def error_response(error: BaseException) -> tuple[int, bytes]:
    """The status and the body of an error; server faults are logged."""
    return logged(error).http, write_json({"error": words_of(error)})
