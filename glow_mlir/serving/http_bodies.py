"""Bodies of requests over HTTP: read within limits of size and time, and inflated within them."""

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


def _weight(quality: bytes) -> float:
    """The weight in `q=0.5`, 1 where there is none, and 0 where it is no number from 0 to 1."""
    if not quality:
        return 1.0
    match = WEIGHT.fullmatch(quality)
    return float(match[1]) if match else 0.0


class HttpBody:
    """The body of a request, and what its headers say of it; raises `InputError` for such as contradict themselves."""

    def __init__(self, service: Service, head: Mapping[bytes, bytes], tensors: NetworkTensors | None = None) -> None:
        """`tensors` are those of the requested network; `None` for requests that are no inference."""
        self.service = service
        self.header_length: int | None = None
        """How many bytes of it are JSON, if that is told."""
        self.charge = Charge(service)
        """The memory that the request takes."""
        self.accepts = b""
        """How the client would have the body of the response: `gzip` or `deflate`; empty for as it is."""
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
        """Take no more bytes than the network can; raises `BodyTooLargeError`."""
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
        All of it.

        Raises `BodyTooLargeError`, `SlowBodyError`, `DisconnectedError`, `OverloadError`, and `InputError` for what
        does not inflate.
        """
        begun = Begun(self._read(receive))
        try:
            if begun.is_done:  # As of most requests; a clock costs more than to read them.
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
        """It is needed no more."""
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
        """Raise `BodyTooLargeError` for more bytes than a body may have."""
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
