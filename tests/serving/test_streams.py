"""Streams of gRPC: the order of their requests, their errors, and clients that leave or do not read."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from running_servers import Running, needed, running
from served_models import FakeModels

from glow_mlir.serving import grpc_streams
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.errors import SlowBodyError
from glow_mlir.serving.grpc_messages import SERVICE, message_class
from glow_mlir.serving.grpc_streams import Answer, Step, Stream
from glow_mlir.serving.service import Service

UNLIMITED = [("grpc.max_receive_message_length", -1)]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


class Call:
    """A call without a limit of time."""

    def time_remaining(self) -> None:
        return None


async def numbered(count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield bytes([number])


def test_requests_end_with_their_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the one that is taken, and waits for a place among those that are computed at once."""
    monkeypatch.setattr(grpc_streams, "DEPTH", 1)
    asked: list[bytes] = []
    ended: list[bytes] = []

    async def answered(data: bytes, remaining: float | None, step: Step) -> Answer:
        asked.append(data)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(data)
        return Answer(data, Charge())

    async def leave() -> None:
        answers = Stream(answered, Call(), 60).answers(numbered(9))
        first = asyncio.ensure_future(anext(answers))
        await asyncio.sleep(0.05)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.sleep(0.05)
        assert len(asked) == 3  # One is awaited, one is in the queue, and one waits in front of it.
        assert sorted(ended) == asked

    asyncio.run(asyncio.wait_for(leave(), 10))


def test_answers_that_nobody_asks_for_give_their_memory_back() -> None:
    service = Service(FakeModels([]))

    async def answered(data: bytes, remaining: float | None, step: Step) -> Answer:
        charge = Charge(service)
        charge.add(100)
        return Answer(data, charge)

    async def leave() -> None:
        answers = Stream(answered, Call(), 60).answers(numbered(100))
        first = await anext(answers)
        await asyncio.sleep(0.05)
        assert service.held_bytes == 100 * (grpc_streams.DEPTH + 2)  # One is asked for, and one waits for its place.
        await answers.aclose()
        await asyncio.sleep(0.05)
        assert service.held_bytes == 100
        first.charge.release()

    asyncio.run(asyncio.wait_for(leave(), 10))


def test_a_stream_ends_when_nothing_goes_on_in_it() -> None:
    """Not while a request is computed, or its answer is sent."""

    async def answered(data: bytes, remaining: float | None, step: Step) -> Answer:
        await asyncio.sleep(0.4)
        return Answer(data, Charge())

    async def messages() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(0.3)
        yield b"b"
        await asyncio.sleep(60)
        yield b"c"

    async def read() -> None:
        answers = Stream(answered, Call(), 0.2).answers(messages())
        begin = time.monotonic()
        for expected in (b"a", b"b"):
            assert (await anext(answers)).data == expected
            await asyncio.sleep(0.3)
        with pytest.raises(SlowBodyError, match=r"the stream had no request for 0\.2 seconds"):
            await anext(answers)
        assert 1.0 < time.monotonic() - begin < 10

    asyncio.run(asyncio.wait_for(read(), 20))


def step(rows: int, id: str, *, says: str = "", is_wrong: bool = False, **said: Any) -> bytes:
    """A request of a sequence, which takes the longer to read the more rows it has."""
    parameters: dict[str, Any] = {"sequence_id": {"int64_param": 7}}
    if says:
        parameters[says] = {"bool_param": True}
    texts = {"bytes_contents": [b"ab"] * (2 * rows - is_wrong)}
    item = {"name": "x", "datatype": "BYTES", "shape": [rows, 2], "contents": texts}
    return message_class("ModelInferRequest")(
        model_name="words", id=id, inputs=[item], parameters=parameters, **said
    ).SerializeToString()


def answers_to(server: Running, messages: list[bytes]) -> list[Any]:
    """What a stream answers."""
    with needed("grpc").insecure_channel(f"127.0.0.1:{server.grpc}", options=UNLIMITED) as channel:
        stream = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")(iter(messages), timeout=60)
        return [message_class("ModelStreamInferResponse").FromString(data) for data in stream]


@pytest.mark.extra
@pytest.mark.parametrize("form", ["plain", "compressed", "wrong"])
def test_networks_get_requests_in_the_order_of_a_stream(server: Running, form: str) -> None:
    """A long request takes many turns of the loop to read; those behind it are read in one."""
    first = step(60_000, "a", says="sequence_start", is_wrong=form == "wrong")
    messages = [gzip.compress(first, 1) if form == "compressed" else first]
    messages += [step(1, "b"), step(1, "c"), step(1, "d", says="sequence_end")]
    network = server.models.find("words")
    network.requests.clear()
    answers = answers_to(server, messages)
    assert [item.infer_response.id for item in answers] == list("abcd")
    assert [bool(item.error_message) for item in answers] == [form == "wrong", False, False, False]
    steps = [request["sequence"] for request in network.requests]
    expected = [(False, False), (False, False), (False, True)]
    assert [(item.is_start, item.is_end) for item in steps] == ([] if form == "wrong" else [(True, False)]) + expected


def test_a_request_that_fails_lets_nobody_overtake() -> None:
    """The first one takes long to read, the second one fails at once: the third one waits for the first."""

    class Request:
        def __init__(self, data: bytes) -> None:
            self.data = data

        def submit(self, _: Any) -> None:
            order.append(self.data)

    async def answering(data: bytes, _: float | None, own: Step) -> Answer:
        if data == b"2":
            return Answer(b"error", Charge())
        if data == b"1":
            await asyncio.sleep(0.05)
        request: Any = Request(data)
        await own.submitted(request, request)
        return Answer(data, Charge())

    async def messages() -> AsyncIterator[bytes]:
        for data in (b"1", b"2", b"3"):
            yield data

    async def answers() -> list[bytes]:
        return [answer.data async for answer in Stream(answering, Call(), 5).answers(messages())]

    order: list[bytes] = []
    assert asyncio.run(answers()) == [b"1", b"error", b"3"]
    assert order == [b"1", b"3"]


@pytest.mark.extra
def test_faults_of_the_server_are_logged(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    item = {"name": "x", "datatype": "INT64", "shape": [1], "contents": {"int64_contents": [2]}}
    (answer,) = answers_to(
        server, [message_class("ModelInferRequest")(model_name="failing", inputs=[item]).SerializeToString()]
    )
    assert answer.error_message == "the server failed"
    assert "secret" in caplog.text
