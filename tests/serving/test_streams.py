"""Streams of gRPC: the order of their requests, their errors, and clients that leave or do not read."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from running_servers import Running, needed, running

from glow_mlir.serving import grpc_service
from glow_mlir.serving.grpc_messages import SERVICE, message_class
from glow_mlir.serving.grpc_service import GrpcInference

UNLIMITED = [("grpc.max_receive_message_length", -1)]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


class Call:
    """A call without a limit of time."""

    def time_remaining(self) -> None:
        return None


def test_requests_end_with_their_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the one that is taken, and waits for a place among those that are computed at once."""
    monkeypatch.setattr(grpc_service, "DEPTH", 1)
    asked: list[bytes] = []
    ended: list[bytes] = []

    async def computed(self: GrpcInference, data: bytes, remaining: float | None, step: Any) -> bytes:
        asked.append(data)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(data)
        return data

    async def requests() -> AsyncIterator[bytes]:
        for number in range(9):
            yield bytes([number])

    async def leave() -> None:
        given: Any = None  # Requests that are not computed ask for nothing.
        answers = GrpcInference(given, given)._answers(requests(), Call())  # pyright: ignore[reportPrivateUsage]
        first = asyncio.ensure_future(anext(answers))
        await asyncio.sleep(0.05)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.sleep(0.05)
        assert len(asked) == 3  # One is awaited, one is in the queue, and one waits in front of it.
        assert sorted(ended) == asked

    monkeypatch.setattr(GrpcInference, "_streamed", computed)
    asyncio.run(asyncio.wait_for(leave(), 10))


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


@pytest.mark.extra
def test_faults_of_the_server_are_logged(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    item = {"name": "x", "datatype": "INT64", "shape": [1], "contents": {"int64_contents": [2]}}
    (answer,) = answers_to(
        server, [message_class("ModelInferRequest")(model_name="failing", inputs=[item]).SerializeToString()]
    )
    assert answer.error_message == "the server failed"
    assert "secret" in caplog.text
