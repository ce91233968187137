"""Inferences over HTTP, without a server: what is answered, and what is refused before it costs anything."""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from asgi import App, Response, ask
from served_models import FakeModels, FakeNetwork, repository

from glow_mlir.serving.http_inference import HttpInference, named_model
from glow_mlir.serving.service import Limits, Service
from glow_mlir.serving.steps import Begun

LIMITS = Limits(body_bytes=10_000, memory_bytes=20_000, body_seconds=0.2, requests=4, request_seconds=5)


class Client:
    """Asks one service; `served` is its network of that name."""

    def __init__(self, models: FakeModels) -> None:
        self.models = models
        self.limits = LIMITS

    def app(self) -> tuple[App, Service]:
        """A new application, which belongs to the loop that asks it."""
        service = Service(self.models, limits=self.limits)
        inference = HttpInference(service)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            model = named_model(scope["path"])
            assert model is not None
            await inference.answer(model, dict(scope["headers"]), receive, send)

        return app, service

    def infer(self, name: str = "echo", *parts: bytes, **said: Any) -> Response:
        """The answer to one request; afterwards the service is as before."""
        app, service = self.app()
        found = asyncio.run(ask(app, f"/v2/models/{name}/infer", parts or (REQUEST,), **said))
        assert service.running == 0
        assert service.held_bytes == 0
        return found

    def served(self, name: str) -> FakeNetwork:
        return self.models.find(name)


@pytest.fixture
def client() -> Iterator[Client]:
    models = repository()
    yield Client(models)
    models.close()


def body_of(numbers: list[Any], datatype: str = "FP32", shape: list[int] | None = None) -> bytes:
    item = {"name": "x", "datatype": datatype, "shape": shape or [1, 3], "data": numbers}
    return json.dumps({"inputs": [item]}).encode()


REQUEST = body_of([1, 2, 3])


def test_numbers(client: Client) -> None:
    found = client.infer()
    assert found.status == 200
    assert found.headers["content-type"] == "application/json"
    assert found.headers["content-length"] == str(len(found.body))
    assert found.data["outputs"][0]["data"] == [1, 2, 3]


def test_bytes(client: Client) -> None:
    item = {"name": "x", "datatype": "FP32", "shape": [1, 3], "parameters": {"binary_data_size": 12}}
    head = json.dumps({"inputs": [item], "parameters": {"binary_data_output": True}}).encode()
    data = struct.pack("<3f", 4, 5, 6)
    found = client.infer("echo", head, data, headers={"Inference-Header-Content-Length": str(len(head))})
    length = int(found.headers["inference-header-content-length"])
    assert found.body[length:] == data
    assert json.loads(found.body[:length])["outputs"][0]["parameters"] == {"binary_data_size": 12}


@pytest.mark.parametrize("path", ["sums/versions/3", "sums"])
def test_versions(client: Client, path: str) -> None:
    rows = {"datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    body = json.dumps({"inputs": [{"name": "a", **rows}, {"name": "b", **rows}], "outputs": [{"name": "sum"}]})
    found = client.infer(path, body.encode())
    assert found.data["model_version"] == "3"
    assert [item["data"] for item in found.data["outputs"]] == [[2, 4, 6, 8]]


def test_paths() -> None:
    assert named_model("/v2/models/a/infer") == ("a", "")
    assert named_model("/v2/models/a/versions/7/infer") == ("a", "7")
    others = ("/v2/models/a/b/infer", "/v2/models/a/version/7/infer", "/v2/models/a", "/v1/models/a/infer", "")
    assert not any(map(named_model, others))


@pytest.mark.parametrize("path", ["nothing", "sums/versions/4"])
def test_unknown_models(client: Client, path: str) -> None:
    found = client.infer(path)
    assert found.status == 404
    assert "there is no model" in found.error


def test_a_model_that_is_not_ready(client: Client) -> None:
    client.served("echo").is_ready = False
    found = client.infer()
    assert found.status == 503
    assert found.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    ("number", "status", "words"),
    [(0, 500, "it does not work"), (1, 400, "it is no input"), (2, 500, "the server failed")],
)
def test_errors_of_a_network(client: Client, number: int, status: int, words: str) -> None:
    found = client.infer("failing", body_of([number], "INT64", [1]))
    assert found.status == status
    assert found.error == words


def test_what_a_request_says_reaches_the_network(client: Client) -> None:
    said = {"priority": 2, "timeout": 2_000_000, "sequence_id": "s"}
    client.infer("echo", json.dumps({**json.loads(REQUEST), "parameters": said}).encode())
    (request,) = client.served("echo").requests
    assert request["priority"] == 2
    assert request["timeout"] == 2
    assert request["sequence"].id == "s"


def test_a_request_takes_no_longer_than_it_may(client: Client) -> None:
    client.infer("echo", json.dumps({**json.loads(REQUEST), "parameters": {"timeout": 10**12}}).encode())
    client.infer()
    assert [request["timeout"] for request in client.served("echo").requests] == [5, 5]


def test_a_length_beyond_the_limit_is_refused_before_the_body(client: Client) -> None:
    found = client.infer("echo", b"", headers={"Content-Length": "1000000000000"}, is_whole=False, leaves_after=0)
    assert found.status == 413
    assert found.headers["connection"] == "close"


@pytest.mark.parametrize("length", ["-1", "12x", "9" * 4000, ""])
def test_a_length_that_is_none(client: Client, length: str) -> None:
    assert client.infer(headers={"Content-Length": length}).status == 400
    assert client.infer(headers={"Inference-Header-Content-Length": length}).status == 400


def test_a_body_that_grows_beyond_the_limit(client: Client) -> None:
    found = client.infer("echo", *[b"x" * 1000] * 20, leaves_after=0)
    assert found.status == 413


def test_more_json_than_may_be(client: Client) -> None:
    client.limits = replace(LIMITS, json_bytes=len(REQUEST) - 1)
    assert client.infer(leaves_after=0).status == 413
    assert client.infer(headers={"Inference-Header-Content-Length": "1000"}, leaves_after=0).status == 413


def test_a_body_that_does_not_come(client: Client) -> None:
    found = client.infer("echo", b"{", is_whole=False)
    assert found.status == 408
    assert found.headers["connection"] == "close"


def test_a_client_that_goes_while_it_sends(client: Client) -> None:
    assert client.infer("echo", b"{", is_whole=False, leaves_after=0).status == 0
    assert not client.served("echo").requests


def test_a_client_that_goes_while_it_waits(client: Client) -> None:
    found = client.infer("slow", body_of([1, 2], shape=[2]), leaves_after=0.05)
    assert found.status == 499
    assert client.served("slow").cancelled.wait(5)


def test_a_task_that_is_cancelled_cancels_the_request(client: Client) -> None:
    async def cancel() -> Response:
        app, _ = client.app()
        task = asyncio.create_task(ask(app, "/v2/models/slow/infer", [body_of([1, 2], shape=[2])]))
        await asyncio.sleep(0.1)
        task.cancel()
        return await task

    assert asyncio.run(cancel()).status == 503
    assert client.served("slow").cancelled.wait(5)


def test_too_many_requests_at_once(client: Client) -> None:
    async def together() -> list[Response]:
        app, _ = client.app()
        body = body_of([1, 2], shape=[2])
        return await asyncio.gather(*(ask(app, "/v2/models/slow/infer", [body]) for _ in range(6)))

    found = asyncio.run(together())
    assert sorted(item.status for item in found) == [200] * 4 + [503] * 2
    assert {item.headers.get("retry-after") for item in found if item.status == 503} == {"1"}


def test_too_many_bytes_at_once(client: Client) -> None:
    client.limits = replace(LIMITS, memory_bytes=100)
    assert client.infer("echo", REQUEST + b" " * 200).status == 503


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


@pytest.mark.parametrize("encoding", COMPRESSED)
def test_compressed_bodies(client: Client, encoding: str) -> None:
    compressed = COMPRESSED[encoding](REQUEST)
    headers = {"Content-Encoding": encoding}
    assert client.infer("echo", compressed, headers=headers).data["outputs"][0]["data"] == [1, 2, 3]
    for damaged in (compressed[:-3], b"no", compressed + b"x", b""):
        assert client.infer("echo", damaged, headers=headers).status == 400
    bomb = COMPRESSED[encoding](b" " * 5_000_000)
    assert len(bomb) < LIMITS.body_bytes
    assert client.infer("echo", bomb, headers=headers).status == 413


def test_an_unknown_encoding(client: Client) -> None:
    assert client.infer(headers={"Content-Encoding": "br"}).status == 415
    assert client.infer(headers={"Content-Encoding": "identity"}).status == 200


def test_a_wait_for_a_body_that_was_begun_is_told_of_its_end() -> None:
    told: list[str] = []

    async def waits(seconds: float) -> str:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise
        return "whole"

    async def both() -> None:
        begun = Begun(waits(0.01))
        assert not begun.is_done
        assert await begun == "whole"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await Begun(waits(60))

    asyncio.run(both())
    assert told == ["cancelled"]
