"""Inference over HTTP, the only performance-critical path of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future

from glow_mlir.serving.charges import Charge
from glow_mlir.serving.errors import NotReadyError
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
from glow_mlir.serving.inference_codec import HEADER_LENGTH, Body, Parts, request_steps, response_steps, text_of
from glow_mlir.serving.json_decoders import SHORT
from glow_mlir.serving.json_text import read_json
from glow_mlir.serving.models import Network
from glow_mlir.serving.service import Service
from glow_mlir.serving.steps import taken
from glow_mlir.serving.tensors import tensors_of

PATIENCE = 0.02
"""Seconds before the first check whether the client is still connected; checking takes longer than a small network."""

MIN_COMPRESSED = 256
"""The minimum size of a response to be compressed, in bytes."""

BEGIN, END = "/v2/models/", "/infer"


def named_model(path: str) -> tuple[str, str] | None:
    """The model and version in the path of an inference request; `None` for any other path."""
    if not path.endswith(END) or not path.startswith(BEGIN):
        return None
    parts = path[len(BEGIN) : -len(END)].split("/")
    if len(parts) == 1:
        return parts[0], ""
    if len(parts) == 3 and parts[1] == "versions":
        return parts[0], parts[2]
    return None


async def _encoded(parts: Parts, size: int, accepts: bytes) -> tuple[Parts, int, bytes]:
    """The parts of a body, their size and encoding: compressed as the client prefers, if that is smaller."""
    if size <= PART_BYTES:
        found = compressed(parts, accepts)
    else:
        found = await asyncio.get_running_loop().run_in_executor(None, compressed, parts, accepts)
    shorter = sum(map(len, found))
    return (found, shorter, accepts) if shorter < size else (parts, size, b"")


class HttpInference:
    """Answer inference requests, as ASGI messages."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._completions: Completions | None = None

    async def answer(self, model: tuple[str, str], head: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        """Answer a request for a version of a model, with the headers `head`."""
        service, accepts = self._service, b""
        response = Charge(service)
        try:
            service.enter()
            body = None
            try:
                network = service.find(*model)
                body = HttpBody(service, head, tensors_of(network))
                accepts = body.accepts
                found = await self._answer(network, body, receive, response)
            finally:
                service.leave()
                if body is not None:
                    body.release()
            headers: Headers = [JSON_TYPE]
            if found.header_length:
                headers = [BINARY_TYPE, (HEADER_LENGTH, b"%d" % found.header_length)]
            parts = found.parts
            size = sum(map(len, parts))
            if accepts and size >= MIN_COMPRESSED:
                parts, size, encoding = await _encoded(parts, size, accepts)
                if encoding:
                    headers.append((b"content-encoding", encoding))
        except asyncio.CancelledError:  # The server cancels slow requests at shutdown.
            response.release()
            await respond_error(send, receive, NotReadyError("the server is shutting down"))
            return
        except Exception as error:
            response.release()
            await respond_error(send, receive, error)
            return
        response.give_back(response.size - size)  # Only the encoded body remains until it is read.
        try:
            await respond(send, 200, headers, parts, size)
        except asyncio.CancelledError:  # At shutdown, the connection is closed.
            pass
        finally:
            response.release()

    async def _answer(self, network: Network, body: HttpBody, receive: Receive, response: Charge) -> Body:
        """The response to a request; raises its error."""
        service = self._service
        whole = await body.read(receive)
        text = text_of(whole, body.header_length)
        most = service.limits.memory_bytes
        if len(text) <= SHORT:
            data = read_json(text)
        else:
            data = await service.decoders.decoded(text, network.inputs, most, body.charge)
        steps = request_steps(network, data, whole, len(text), service.regions, body.charge)
        request = await taken(steps)
        del data, whole, text
        request.timeout = service.timeout(request.timeout)
        outputs = await self._outputs(request.submit(network), receive)
        return await taken(response_steps(network, request, outputs, service.regions, response))

    async def _outputs(self, future: Future[Outputs], receive: Receive) -> Outputs:
        """The result of a future, which is cancelled when the client disconnects."""
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
    """Cancel a future when the client of its request disconnects."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Receive, future: Future[Outputs]) -> None:
        self._loop = loop
        self._receive = receive
        self._future = future
        self._task: asyncio.Task[None] | None = None
        self._timer = loop.call_later(PATIENCE, self._begin)

    def end(self) -> None:
        """Stop watching."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._look())

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._future.cancel()
