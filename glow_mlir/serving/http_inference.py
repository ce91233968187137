"""Inferences over HTTP: the one path of a server on which each microsecond counts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from glow_mlir.serving.errors import NotReadyError, OverloadError
from glow_mlir.serving.http_bodies import HttpBody, Receive, Send
from glow_mlir.serving.http_responses import (
    BINARY_TYPE,
    JSON_TYPE,
    PART_BYTES,
    Headers,
    compressed,
    respond,
    respond_error,
)
from glow_mlir.serving.inference import Completions, Outputs
from glow_mlir.serving.inference_codec import HEADER_LENGTH, Body, read_request, write_response
from glow_mlir.serving.service import Service

PATIENCE = 0.02
"""After so many seconds the server looks whether the client still waits: to look takes longer than a small network."""

LEAST_COMPRESSED = 256
"""Bytes of a response from which on it is compressed for clients that would have it so."""

BEGIN, END = "/v2/models/", "/infer"


def named_model(path: str) -> tuple[str, str] | None:
    """The model and its version of the path of an inference; `None` for any other path."""
    if not path.endswith(END) or not path.startswith(BEGIN):
        return None
    parts = path[len(BEGIN) : -len(END)].split("/")
    if len(parts) == 1:
        return parts[0], ""
    if len(parts) == 3 and parts[1] == "versions":
        return parts[0], parts[2]
    return None


async def _encoded(parts: list[bytes], accepts: bytes) -> tuple[bytes, bytes]:
    """The parts of a body as one, and how it is encoded: as the client would have it, where that makes it shorter."""
    size = sum(map(len, parts))
    if not accepts or size < LEAST_COMPRESSED:
        return b"".join(parts), b""
    if size <= PART_BYTES:
        data = compressed(parts, accepts)
    else:
        data = await asyncio.get_running_loop().run_in_executor(None, compressed, parts, accepts)
    return (data, accepts) if len(data) < size else (b"".join(parts), b"")


class HttpInference:
    """Answers requests for inferences, as messages of ASGI."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._completions: Completions | None = None

    async def answer(self, model: tuple[str, str], scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request for a model in a version."""
        service, body, accepts = self._service, None, b""
        try:
            service.enter()
            try:
                body = HttpBody(service, scope["headers"])
                accepts = body.accepts
                found = await self._answer(model, body, receive)
            finally:
                service.leave()
                if body is not None:
                    body.release()
        except asyncio.CancelledError:  # The server ends what takes too long when it goes down.
            await respond_error(send, receive, NotReadyError("the server goes down"))
            return
        except Exception as error:
            await respond_error(send, receive, error)
            return
        headers: Headers = [JSON_TYPE]
        if found.header_length:
            headers = [BINARY_TYPE, (HEADER_LENGTH, b"%d" % found.header_length)]
        data, encoding = await _encoded(found.parts, accepts)
        if encoding:
            headers.append((b"content-encoding", encoding))
        await self._send(send, receive, headers, data)

    async def _send(self, send: Send, receive: Receive, headers: Headers, data: bytes) -> None:
        """Send a response, which takes memory until its client has read it."""
        try:
            self._service.hold(len(data))
        except OverloadError as error:
            await respond_error(send, receive, error)
            return
        try:
            await respond(send, 200, headers, data)
        except asyncio.CancelledError:  # The server goes down: the connection ends.
            pass
        finally:
            self._service.release(len(data))

    async def _answer(self, model: tuple[str, str], body: HttpBody, receive: Receive) -> Body:
        """The response to a request; raises what is wrong with it."""
        service = self._service
        network = service.find(*model)
        request = read_request(network, await body.read(receive), body.header_length, service.regions)
        request.timeout = service.timeout(request.timeout)
        outputs = await self._outputs(request.submit(network), receive)
        return write_response(network, request, outputs, service.regions)

    async def _outputs(self, future: Future[Outputs], receive: Receive) -> Outputs:
        """The result of a future, which is cancelled where the client goes."""
        if future.done():
            return future.result()
        loop = asyncio.get_running_loop()
        if self._completions is None:
            self._completions = Completions(loop)
        watch = _Watch(loop, receive, future)
        try:
            return await self._completions.result(future)
        finally:
            watch.end()


class _Watch:
    """Cancels a future when the client of its request is gone."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Receive, future: Future[Outputs]) -> None:
        self._loop = loop
        self._receive = receive
        self._future = future
        self._task: asyncio.Task[None] | None = None
        self._timer = loop.call_later(PATIENCE, self._begin)

    def end(self) -> None:
        """There is nothing left to cancel."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._look())

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._future.cancel()
