"""Clients of others, as they are: they find what they expect over HTTP and gRPC."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from running_servers import Running, needed, running

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore")]

KINDS = ("http", "grpc")

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.full((2, 4), 10, np.float32)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


def package(kind: str, *, is_async: bool = False) -> Any:
    return needed(f"tritonclient.{kind}.aio" if is_async else f"tritonclient.{kind}")


def address(server: Running, kind: str) -> str:
    return f"127.0.0.1:{server.http if kind == 'http' else server.grpc}"


def answers() -> tuple[queue.Queue[tuple[Any, Any]], Callable[[Any, Any], None]]:
    """What clients called back with, results and errors, and what they are to call."""
    found = queue.Queue[tuple[Any, Any]]()

    def put(result: Any, error: Any) -> None:
        found.put((result, error))

    return found, put


def refusal() -> Any:
    """What clients raise for an error that a server tells."""
    return needed("tritonclient.utils").InferenceServerException


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def client(server: Running, kind: str) -> Iterator[Any]:
    with package(kind).InferenceServerClient(address(server, kind)) as found:
        yield found


def inputs(kind: str, **binary: bool) -> list[Any]:
    """The inputs of `sums`."""
    found: list[Any] = []
    for name, array in (("a", A), ("b", B)):
        item = package(kind).InferInput(name, list(array.shape), "FP32")
        item.set_data_from_numpy(array, **binary)
        found.append(item)
    return found


def test_health_and_metadata(client: Any, kind: str) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("sums")
    assert client.is_model_ready("sums", "3")
    said = {} if kind == "http" else {"as_json": True}
    assert client.get_server_metadata(**said)["name"] == "glow"
    metadata = client.get_model_metadata("sums", **said)
    assert [item["name"] for item in metadata["outputs"]] == ["sum", "difference"]
    assert [int(size) for size in metadata["inputs"][0]["shape"]] == [-1, 4]
    config = client.get_model_config("sums", **said)
    assert config.get("config", config)["max_batch_size"] == 8


def test_inference(client: Any, kind: str) -> None:
    found = client.infer("sums", inputs(kind), request_id="seven", priority=1, timeout=10**6)
    assert np.array_equal(found.as_numpy("sum"), A + B)
    assert np.array_equal(found.as_numpy("difference"), A - B)
    response = found.get_response()
    assert (response["id"] if kind == "http" else response.id) == "seven"


def test_one_output(client: Any, kind: str) -> None:
    wanted = [package(kind).InferRequestedOutput("difference")]
    found = client.infer("sums", inputs(kind), outputs=wanted)
    assert np.array_equal(found.as_numpy("difference"), A - B)
    assert found.as_numpy("sum") is None


def test_numbers_in_json(server: Running) -> None:
    http = package("http")
    with http.InferenceServerClient(address(server, "http")) as client:
        wanted = [http.InferRequestedOutput("sum", binary_data=False)]
        found = client.infer("sums", inputs("http", binary_data=False), outputs=wanted)
    assert np.array_equal(found.as_numpy("sum"), A + B)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compression(server: Running, algorithm: str) -> None:
    with package("http").InferenceServerClient(address(server, "http")) as client:
        said = {"request_compression_algorithm": algorithm, "response_compression_algorithm": algorithm}
        assert np.array_equal(client.infer("sums", inputs("http"), **said).as_numpy("sum"), A + B)
    with package("grpc").InferenceServerClient(address(server, "grpc")) as client:
        found = client.infer("sums", inputs("grpc"), compression_algorithm=algorithm)
        assert np.array_equal(found.as_numpy("sum"), A + B)


def test_asynchronous_clients(server: Running, kind: str) -> None:
    async def many() -> list[Any]:
        async with package(kind, is_async=True).InferenceServerClient(address(server, kind)) as client:
            assert await client.is_server_live()
            return await asyncio.gather(*(client.infer("sums", inputs(kind)) for _ in range(50)))

    assert all(np.array_equal(found.as_numpy("sum"), A + B) for found in asyncio.run(many()))


def test_calls_in_the_background(server: Running) -> None:
    grpc, found, put = package("grpc"), *answers()
    with grpc.InferenceServerClient(address(server, "grpc")) as client:
        for _ in range(5):
            client.async_infer("sums", inputs("grpc"), put)
        for _ in range(5):
            result, error = found.get(timeout=20)
            assert error is None
            assert np.array_equal(result.as_numpy("sum"), A + B)


def test_a_stream(server: Running) -> None:
    grpc, found, put = package("grpc"), *answers()
    with grpc.InferenceServerClient(address(server, "grpc")) as client:
        client.start_stream(put)
        for number in range(100):
            client.async_stream_infer("sums" if number % 10 else "nothing", inputs("grpc"), request_id=str(number))
        for number in range(100):
            result, error = found.get(timeout=20)
            if number % 10:
                assert result.get_response().id == str(number)
            else:
                assert "there is no model" in str(error)
        client.stop_stream()


def test_the_repository(client: Any, kind: str) -> None:
    client.unload_model("half")
    assert not client.is_model_ready("sums", "9") if kind == "http" else True
    index = client.get_model_repository_index(**({} if kind == "http" else {"as_json": True}))
    models = index if kind == "http" else index["models"]
    assert {item["name"]: item["state"] for item in models}["half"] == "UNAVAILABLE"
    client.load_model("half", config='{"a": 1}')
    assert client.is_model_ready("half")


def test_statistics(client: Any, kind: str) -> None:
    client.infer("sums", inputs(kind))
    found = client.get_inference_statistics("sums", **({} if kind == "http" else {"as_json": True}))
    (data,) = found["model_stats"]
    assert int(data["inference_count"]) >= 1
    assert int(data["inference_stats"]["success"]["ns"]) >= 500_000_000


@pytest.mark.parametrize(
    ("model", "datatype", "shape", "status"),
    [
        ("nothing", "FP32", [1, 3], ("404", "NOT_FOUND")),
        ("echo", "FP64", [1, 3], ("400", "INVALID_ARGUMENT")),
        ("echo", "FP32", [1, 4], ("400", "INVALID_ARGUMENT")),
        ("sums", "FP32", [1, 3], ("400", "INVALID_ARGUMENT")),
    ],
)
def test_errors(client: Any, kind: str, model: str, datatype: str, shape: list[int], status: tuple[str, str]) -> None:
    item = package(kind).InferInput("x", shape, datatype)
    item.set_data_from_numpy(np.zeros(shape, np.float64 if datatype == "FP64" else np.float32))
    with pytest.raises(refusal()) as caught:
        client.infer(model, [item])
    wanted = status[0] if kind == "http" else f"StatusCode.{status[1]}"
    assert caught.value.status() == wanted


def test_a_deadline(server: Running) -> None:
    grpc, network = package("grpc"), server.models.find("slow")
    network.cancelled.clear()
    item = grpc.InferInput("x", [2], "FP32")
    item.set_data_from_numpy(np.zeros(2, np.float32))
    with grpc.InferenceServerClient(address(server, "grpc")) as client:
        with pytest.raises(refusal(), match="Deadline"):
            client.infer("slow", [item], client_timeout=0.1)
        assert network.cancelled.wait(10)
    assert network.requests[-1]["timeout"] < 0.2


def test_half_floats(client: Any, kind: str) -> None:
    array = np.array([1, 2.5, -3], np.float16)
    item = package(kind).InferInput("x", [3], "FP16")
    item.set_data_from_numpy(array)
    assert np.array_equal(client.infer("half", [item]).as_numpy("y"), array)


def test_shared_memory(client: Any, kind: str) -> None:
    memory = needed("tritonclient.utils.shared_memory")
    key = f"/test-glow-{kind}"
    handle = memory.create_shared_memory_region("region", key, 4 * A.nbytes)
    try:
        memory.set_shared_memory_region(handle, [A, B])
        client.unregister_system_shared_memory()
        client.register_system_shared_memory("region", key, 4 * A.nbytes)
        items, wanted = inputs(kind), package(kind).InferRequestedOutput("sum")
        for place, item in enumerate(items):
            item.set_shared_memory("region", A.nbytes, place * A.nbytes)
        wanted.set_shared_memory("region", A.nbytes, 2 * A.nbytes)
        other = package(kind).InferRequestedOutput("difference")
        found = client.infer("sums", items, outputs=[wanted, other])
        assert np.array_equal(found.as_numpy("difference"), A - B)
        assert np.array_equal(memory.get_contents_as_numpy(handle, np.float32, A.shape, 2 * A.nbytes), A + B)
        status = client.get_system_shared_memory_status(**({} if kind == "http" else {"as_json": True}))
        assert "region" in str(status)
        client.unregister_system_shared_memory("region")
    finally:
        memory.destroy_shared_memory_region(handle)


def test_memory_of_gpus_is_none(client: Any, kind: str) -> None:
    said = {} if kind == "http" else {"as_json": True}
    assert client.get_cuda_shared_memory_status(**said) in ([], {})
    with pytest.raises(refusal(), match=r"CPU memory only \(hint: register system memory") as caught:
        client.register_cuda_shared_memory("region", b"QUJD", 0, 64)
    assert caught.value.status() in ("501", "StatusCode.UNIMPLEMENTED")
    client.unregister_cuda_shared_memory("region")
    client.unregister_cuda_shared_memory()
    with pytest.raises(refusal(), match="no shared memory 'region' is registered"):
        client.get_cuda_shared_memory_status("region")


def test_settings_of_traces_and_the_log(client: Any, kind: str) -> None:
    said = {} if kind == "http" else {"as_json": True}
    for settings in (client.get_trace_settings(**said), client.get_trace_settings("sums", **said)):
        assert "OFF" in str(settings)
    client.update_trace_settings(settings={"trace_level": ["OFF"], "trace_rate": None})
    assert "log_verbose_level" in str(client.get_log_settings(**said))
    client.update_log_settings({"log_verbose_level": 0, "log_error": True})
    for change in (
        lambda: client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"]}),
        lambda: client.update_trace_settings("sums", settings={"trace_rate": "1"}),
        lambda: client.update_log_settings({"log_verbose_level": 1}),
    ):
        with pytest.raises(refusal(), match="clients may not change settings"):
            change()
    with pytest.raises(refusal(), match="has no setting"):
        client.update_log_settings({"log_color": True})
    with pytest.raises(refusal(), match="there is no model"):
        client.get_trace_settings("nothing")
