"""Bodies of HTTP requests, read and decompressed within limits of size and time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import lru_cache
from typing import Any

from glow_mlir.errors import InputError
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.errors import BodyTooLargeError, DisconnectedError, EncodingError, SlowBodyError
from glow_mlir.serving.inference_codec import HEADER_LENGTH
from glow_mlir.serving.inflation import DEFLATE, GZIP, inflated
from glow_mlir.serving.service import Service
from glow_mlir.serving.steps import Begun, taken
from glow_mlir.serving.tensors import NetworkTensors

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

FORMATS = {b"gzip": GZIP, b"x-gzip": GZIP, b"deflate": DEFLATE}
"""Encoding of a body → zlib's window bits."""

WEIGHT = re.compile(rb"q=([01](?:\.\d{0,3})?)")
"""A quality value of `Accept-Encoding`."""


@lru_cache(64)
def accepted_encoding(header: bytes) -> bytes:
    """
    The preferred encoding of a header `Accept-Encoding`: `gzip` or `deflate`.

    Empty if it has neither, or prefers the identity.
    """
    weights: dict[bytes, float] = {}
    for item in header.lower().split(b","):
        name, _, weight = item.partition(b";")
        weights[name.strip()] = _weight(weight.strip())
    others = weights.get(b"*", 0.0)
    best = max((b"gzip", b"deflate"), key=lambda name: weights.get(name, others))
    weight = weights.get(best, others)
    return best if weight > 0 and weight >= weights.get(b"identity", 0.0) else b""


def _weight(quality: bytes) -> float:
    """The weight in `q=0.5`; 1 if missing, and 0 if it is not a number from 0 to 1."""
    if not quality:
        return 1.0
    match = WEIGHT.fullmatch(quality)
    return float(match[1]) if match else 0.0


class HttpBody:
    """The body of a request, and the headers about it; raises `InputError` for contradictory headers."""

    def __init__(self, service: Service, head: Mapping[bytes, bytes], tensors: NetworkTensors | None = None) -> None:
        """`tensors` are those of the requested network; `None` for requests other than inference."""
        self.service = service
        self.header_length: int | None = None
        """The number of bytes that are JSON, if the headers give it."""
        self.charge = Charge(service)
        """The memory charged to the request."""
        self.accepts = b""
        """The client's preferred encoding of the response: `gzip` or `deflate`; empty for none."""
        self._format = 0
        self._tensors = tensors
        self._most = service.limits.body_bytes
        if (length := head.get(HEADER_LENGTH)) is not None:
            self.header_length = _number(HEADER_LENGTH, length)
        if accepted := head.get(b"accept-encoding"):
            self.accepts = accepted_encoding(accepted)
        if encoding := head.get(b"content-encoding"):
            self._format = _format_of(encoding)
        self._limit()
        if (length := head.get(b"content-length")) is not None:
            self._check(_number(b"content-length", length))

    def _limit(self) -> None:
        """Limit the body to the network's largest request; raises `BodyTooLargeError`."""
        limits, tensors = self.service.limits, self._tensors
        text = limits.control_bytes if tensors is None else limits.json_bytes
        if tensors is not None and tensors.most_text is not None:
            text = min(text, tensors.most_text)
        if self.header_length is None:
            self._most = min(self._most, text)
        elif self.header_length > text:
            raise BodyTooLargeError(f"the request has {self.header_length} bytes of JSON, more than {text}")
        elif tensors is not None and tensors.most_bytes is not None:
            self._most = min(self._most, self.header_length + tensors.most_bytes)

    async def read(self, receive: Receive) -> bytes | bytearray:
        """
        Read the whole body.

        Raises `BodyTooLargeError`, `SlowBodyError`, `DisconnectedError`, `OverloadError`, and `InputError` for a body
        that cannot be decompressed.
        """
        begun = Begun(self._read(receive))
        try:
            if begun.is_done:  # Usually; a timer costs more than reading.
                body = begun.result
            else:
                async with asyncio.timeout(self.service.limits.body_seconds):
                    body = await begun
        except TimeoutError:
            seconds = f"{self.service.limits.body_seconds:g}"
            raise SlowBodyError(f"the body of the request did not arrive within {seconds} seconds") from None
        if not self._format:
            return body
        compressed = len(body)
        body = await taken(inflated(body, self._format, self._most, self.charge, "the body of the request"))
        self.charge.give_back(compressed)
        return body

    def release(self) -> None:
        """Release the body's memory."""
        self.charge.release()

    async def _read(self, receive: Receive) -> bytes | bytearray:
        """The body without decoding."""
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
            raise DisconnectedError("the client disconnected")
        size = len(message.get("body", b""))
        self._check(self.charge.size + size)
        self.charge.add(size)
        return message

    def _check(self, size: int) -> None:
        """Raise `BodyTooLargeError` for more than the maximum number of bytes."""
        if size > self._most:
            raise BodyTooLargeError(f"the body of the request has more than {self._most} bytes")


def _format_of(encoding: bytes) -> int:
    """The window bits of `zlib` for an encoding, 0 for none; raises `EncodingError`."""
    word = encoding.lower()
    if word == b"identity":
        return 0
    if word not in FORMATS:
        known = ", ".join(sorted(word.decode() for word in FORMATS))
        raise EncodingError("unknown encoding of the body", hint=f"expected {known}")
    return FORMATS[word]


def _number(name: bytes, value: bytes) -> int:
    """The number in a header; raises `InputError` where there is none."""
    if not value.isdigit() or len(value) > 20:
        raise InputError(f"the header {name.decode('latin-1')} is no number")
    return int(value)
