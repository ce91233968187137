"""Bodies of requests over HTTP: read within limits of size and time, and inflated within them."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import lru_cache
from typing import Any

from glow_mlir.errors import InputError
from glow_mlir.serving.errors import BodyTooLargeError, DisconnectedError, EncodingError, SlowBodyError
from glow_mlir.serving.inference_codec import HEADER_LENGTH
from glow_mlir.serving.service import Service

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

FORMATS = {b"gzip": zlib.MAX_WBITS + 16, b"x-gzip": zlib.MAX_WBITS + 16, b"deflate": zlib.MAX_WBITS}
"""The encodings of bodies → what `zlib` calls them."""

WEIGHT = re.compile(rb"q=([01](?:\.\d{0,3})?)")
"""How much a client would have something."""


@lru_cache(64)
def accepted_encoding(header: bytes) -> bytes:
    """
    Of the encodings that a header `Accept-Encoding` weighs the one that responses have: `gzip` or `deflate`.

    Empty where it has neither, or wants the body as it is more than either.
    """
    weights: dict[bytes, float] = {}
    for item in header.lower().split(b","):
        name, _, weight = item.partition(b";")
        weights[name.strip()] = _weight(weight.strip())
    others = weights.get(b"*", 0.0)
    best = max((b"gzip", b"deflate"), key=lambda name: weights.get(name, others))
    weight = weights.get(best, others)
    return best if weight > 0 and weight >= weights.get(b"identity", 0.0) else b""


def _weight(said: bytes) -> float:
    """The weight in `q=0.5`, 1 where there is none, and 0 where it is no number from 0 to 1."""
    if not said:
        return 1.0
    match = WEIGHT.fullmatch(said)
    return float(match[1]) if match else 0.0


class HttpBody:
    """The body of a request, and what its headers say of it; raises `InputError` for such as contradict themselves."""

    def __init__(self, service: Service, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.service = service
        self.header_length: int | None = None
        """How many bytes of it are JSON, if that is told."""
        self.held = 0
        """How many bytes it takes, until `release`."""
        self.accepts = b""
        """How the client would have the body of the response: `gzip` or `deflate`; empty for as it is."""
        self._format = 0
        for name, value in headers:
            if name == b"content-length":
                self._check(_number(name, value))
            elif name == HEADER_LENGTH:
                self.header_length = _number(name, value)
            elif name == b"accept-encoding":
                self.accepts = accepted_encoding(value)
            elif name == b"content-encoding" and value.lower() != b"identity":
                self._format = FORMATS.get(value.lower(), 0)
                if not self._format:
                    known = ", ".join(sorted(word.decode() for word in FORMATS))
                    raise EncodingError("the encoding of the body is unknown", hint=f"it may be {known}")

    async def read(self, receive: Receive) -> bytes | bytearray:
        """
        All of it.

        Raises `BodyTooLargeError`, `SlowBodyError`, `DisconnectedError`, `OverloadError`, and `InputError` for what
        does not inflate.
        """
        try:
            async with asyncio.timeout(self.service.limits.body_seconds):
                body = await self._read(receive)
        except TimeoutError:
            seconds = f"{self.service.limits.body_seconds:g}"
            raise SlowBodyError(f"the body of the request did not come in {seconds} seconds") from None
        if self._format:
            body = await asyncio.get_running_loop().run_in_executor(None, self._inflated, body)
            self._hold(len(body))
        if (len(body) if self.header_length is None else self.header_length) > self.service.limits.json_bytes:
            raise BodyTooLargeError(f"the request has more than {self.service.limits.json_bytes} bytes of JSON")
        return body

    def release(self) -> None:
        """It is needed no more."""
        self.service.release(self.held)
        self.held = 0

    async def _read(self, receive: Receive) -> bytes | bytearray:
        """What comes, as it is."""
        first = await self._part(receive)
        if not first.get("more_body"):
            return first.get("body", b"")
        body = bytearray(first.get("body", b""))
        while True:
            part = await self._part(receive)
            body += part.get("body", b"")
            if not part.get("more_body"):
                return body

    async def _part(self, receive: Receive) -> Message:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise DisconnectedError("the client is gone")
        self._hold(len(message.get("body", b"")))
        return message

    def _hold(self, size: int) -> None:
        self._check(self.held + size)
        self.service.hold(size)
        self.held += size

    def _check(self, size: int) -> None:
        """Raise `BodyTooLargeError` for more bytes than a body may have."""
        most = self.service.limits.body_bytes
        if size > most:
            raise BodyTooLargeError(f"the body of the request has more than {most} bytes")

    def _inflated(self, body: bytes | bytearray) -> bytes:
        """What was compressed; raises `BodyTooLargeError` where it grows to more than may be."""
        inflater, most = zlib.decompressobj(self._format), self.service.limits.body_bytes
        try:
            data = inflater.decompress(body, most)
        except zlib.error as error:
            raise InputError(f"the body of the request does not inflate: {error}") from None
        if inflater.unconsumed_tail:
            raise BodyTooLargeError(f"the body of the request grows to more than {most} bytes")
        if not inflater.eof or inflater.unused_data:
            raise InputError("the body of the request does not inflate: it is no whole stream")
        return data


def _number(name: bytes, value: bytes) -> int:
    """The number in a header; raises `InputError` where there is none."""
    if not value.isdigit() or len(value) > 20:
        raise InputError(f"the header {name.decode('latin-1')} is no number")
    return int(value)
