"""While one request is read, computed and answered, however large it is, others are: health before all."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from asgi import ask
from running_servers import needed
from served_models import FakeModels, echo

from glow_mlir.serving.charges import Charge
from glow_mlir.serving.contents import written
from glow_mlir.serving.errors import OverloadError, SlowBodyError
from glow_mlir.serving.grpc_messages import message_class
from glow_mlir.serving.service import Limits, Service
from glow_mlir.serving.steps import finished
from glow_mlir.serving.strings import packed
from glow_mlir.serving.wire import sized
from glow_mlir.support.dtypes import STRING

pytestmark = pytest.mark.extra

MANY = 1 << 20

STUCK = 0.4
"""Seconds that a loop is never stuck, by far; reading one of these requests at one go takes as long and longer."""


def models() -> FakeModels:
    return FakeModels([echo("numbers", "int64"), echo("codes", "int8"), echo("words", STRING), echo("truths", "bool")])


@dataclass
class Case:
    """A request: what is sent, over which protocol, and the status of its answer."""

    model: str
    body: bytes
    status: str
    head: int = 0
    is_grpc: bool = False
    encoding: str = ""


def head_of(datatype: str, count: int, **said: Any) -> bytes:
    return json.dumps({"inputs": [{"name": "x", "datatype": datatype, "shape": [count], **said}]}).encode()


def binary(model: str, datatype: str, count: int, data: bytes) -> Case:
    """A request whose elements follow as bytes, and whose answer is JSON."""
    head = head_of(datatype, count, parameters={"binary_data_size": len(data)})
    return Case(model, head + data, "200", len(head))


def message(model: str, datatype: str, count: int, contents: bytes, raw: bytes | None = None) -> bytes:
    item = message_class("InferTensor")(name="x", datatype=datatype, shape=[count]).SerializeToString()
    item += sized(5, len(contents)) + contents if raw is None else b""
    found = message_class("ModelInferRequest")(model_name=model).SerializeToString() + sized(5, len(item)) + item
    return found if raw is None else found + sized(7, len(raw)) + raw


def json_numbers(**said: Any) -> Case:
    return Case("numbers", head_of("INT64", MANY, data=list(range(10**6, 10**6 + MANY))), "200", **said)


def brackets() -> Case:
    """A short body that is long, and a valid list of nothing."""
    text = head_of("INT64", 4, data=[0])[:-4] + b"[]," * (4 * MANY) + b"[]]}]}"
    return Case("numbers", gzip.compress(text, 1), "400", encoding="gzip")


def packed_codes(*, is_compressed: bool) -> Case:
    contents = sized(2, 16 * MANY) + b"\1" * (16 * MANY)
    data = message("codes", "INT8", 16 * MANY, contents)
    return Case("codes", gzip.compress(data, 1) if is_compressed else data, "OK", is_grpc=True)


def long_codes() -> Case:
    """Numbers of ten bytes each."""
    contents = b"".join(finished(written("INT8", np.full(2 * MANY, -7, np.int8), 1 << 30, Charge())))
    return Case("codes", message("codes", "INT8", 2 * MANY, contents), "OK", is_grpc=True)


def texts_over_grpc() -> Case:
    contents = (sized(8, 1) + b"a") * MANY
    return Case("words", message("words", "BYTES", MANY, contents), "OK", is_grpc=True)


def texts_as_bytes() -> Case:
    raw = packed([b"a"]) * MANY
    return Case("words", message("words", "BYTES", MANY, b"", raw), "OK", is_grpc=True)


CASES: dict[str, Callable[[], Case]] = {
    "JSON": json_numbers,
    "brackets": brackets,
    "bytes of numbers, answered as JSON": lambda: binary("numbers", "INT64", 2 * MANY, bytes(16 * MANY)),
    "bytes of truths": lambda: binary("truths", "BOOL", 2 * MANY, b"\2" * 2 * MANY),
    "strings behind their lengths": lambda: binary("words", "BYTES", MANY, packed([b"a"]) * MANY),
    "numbers of a byte": lambda: packed_codes(is_compressed=False),
    "compressed numbers": lambda: packed_codes(is_compressed=True),
    "numbers of ten bytes": long_codes,
    "lists of strings": texts_over_grpc,
    "strings over gRPC": texts_as_bytes,
    "fields": lambda: Case("codes", b"\x0a\0" * 8 * MANY, "INVALID_ARGUMENT", is_grpc=True),
}


class _Context:
    """A call of gRPC, as far as it is asked for."""

    status = "OK"

    def __init__(self) -> None:
        self._ends: list[Callable[[Any], None]] = []

    def time_remaining(self) -> None:
        return None

    def peer(self) -> str:
        return "unix:"

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._ends.append(callback)

    def end(self) -> None:
        """The client has its answer."""
        for callback in self._ends:
            callback(self)

    def set_code(self, code: Any) -> None:
        self.status = code.name

    def set_details(self, words: str) -> None:
        assert words


def answer(case: Case, service: Service) -> Awaitable[str]:
    """The status that answers a request."""
    return over_grpc(case, service) if case.is_grpc else over_http(case, service)


async def over_grpc(case: Case, service: Service) -> str:
    from glow_mlir.serving.grpc_arrivals import Arrivals
    from glow_mlir.serving.grpc_calls import Calls
    from glow_mlir.serving.grpc_service import GrpcInference

    context, limits = _Context(), service.limits
    response = await GrpcInference(service, Calls(limits), Arrivals(limits)).infer(_messages(case.body), context)
    assert len(response) <= service.held_bytes <= 2 * len(response)
    context.end()
    return context.status


async def _messages(data: bytes) -> AsyncIterator[bytes]:
    """The messages of a call, which has one."""
    yield data


async def over_http(case: Case, service: Service) -> str:
    from glow_mlir.serving.http_app import HttpApp

    headers = {"Host": "a", "Content-Length": str(len(case.body))}
    if case.head:
        headers["Inference-Header-Content-Length"] = str(case.head)
    if case.encoding:
        headers["Content-Encoding"] = case.encoding
    found = await ask(HttpApp(service), f"/v2/models/{case.model}/infer", [case.body], headers)
    return str(found.status)


async def asked_beside(case: Case, service: Service) -> tuple[str, int, float]:
    """The status of a request, how often health was answered before it was, and how long the loop was stuck."""
    from glow_mlir.serving.http_app import HttpApp

    app, turns, stuck = HttpApp(service), 0, 0.0
    task = asyncio.ensure_future(answer(case, service))
    while not task.done():
        begin = time.perf_counter()
        await asyncio.sleep(0)
        found = await ask(app, "/v2/health/live", headers={"Host": "a"}, method="GET")
        stuck = max(stuck, time.perf_counter() - begin)
        assert found.status == 200
        turns += not task.done()
    return await task, turns, stuck


@pytest.mark.parametrize("name", CASES)
def test_health_is_answered_before_a_request_ends(name: str) -> None:
    for module in ("starlette", "google.protobuf", "grpc"):
        needed(module)
    case, repository = CASES[name](), models()
    try:
        service = Service(repository, limits=Limits())
        status, turns, stuck = asyncio.run(asked_beside(case, service))
        assert (status, turns > 0, stuck < STUCK) == (case.status, True, True), (status, turns, stuck)
        assert (service.running, service.held_bytes) == (0, 0)
    finally:
        repository.close()


def test_a_message_whose_turn_does_not_come_is_told_so() -> None:
    """Its own message is there: the error is about those in front of it."""
    from glow_mlir.serving.grpc_arrivals import Arrivals

    async def first() -> AsyncIterator[bytes]:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.2)  # It keeps its turn for longer than the second one waits.
        yield b""

    async def received(arrivals: Arrivals, messages: AsyncIterator[bytes]) -> None:
        async with arrivals.message(messages):
            pass

    async def both() -> None:
        arrivals = Arrivals(Limits(memory_bytes=2 << 20, message_bytes=1 << 20, body_seconds=0.05))
        found = await asyncio.gather(
            received(arrivals, first()), received(arrivals, _messages(b"x")), return_exceptions=True
        )
        assert [type(error) for error in found] == [SlowBodyError, OverloadError]

    asyncio.run(both())


def test_a_call_keeps_no_message_behind_its_time() -> None:
    """What gave the message has it until it is closed, and lives as long as the call, whose client may never read."""
    from glow_mlir.serving.grpc_arrivals import Arrivals

    closed: list[bytes] = []

    async def messages(data: bytes) -> AsyncGenerator[bytes]:
        try:
            yield data
            yield data
        finally:
            closed.append(data)

    async def received() -> None:
        given = messages(b"x")
        async with Arrivals(Limits()).message(given) as data:
            assert closed == [data] == [b"x"]
        await given.aclose()  # It lives until here.

    asyncio.run(received())
