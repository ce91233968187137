"""What clients of gRPC may send that stock ones do not: numbers in fields, damaged messages, unknown methods."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from checkout import ROOT
from request_mutants import peak
from request_server import LIMITS
from running_servers import Running, needed, running
from served_models import FakeModels

from glow_mlir.errors import OptionError
from glow_mlir.serving.grpc_messages import MESSAGES, SERVICE, message_class
from glow_mlir.serving.grpc_service import GrpcServer
from glow_mlir.serving.packages import package
from glow_mlir.serving.service import TRACE, Limits, Service

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def channel(server: Running) -> Iterator[Any]:
    with needed("grpc").insecure_channel(f"127.0.0.1:{server.grpc}") as found:
        yield found


def call(channel: Any, name: str, message: Any) -> Any:
    """The bytes that a method answers to a message, or bytes."""
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return channel.unary_unary(f"/{SERVICE}/{name}")(data, timeout=20)


def request(name: str = "echo", shape: tuple[int, ...] = (1, 3), datatype: str = "FP32", **fields: Any) -> Any:
    item = {"name": "x", "datatype": datatype, "shape": shape}
    return message_class("ModelInferRequest")(model_name=name, inputs=[{**item, **fields}])


def response(channel: Any, message: Any) -> Any:
    return message_class("ModelInferResponse").FromString(call(channel, "ModelInfer", message))


def refused(channel: Any, message: Any, name: str = "ModelInfer") -> tuple[str, str]:
    """The code and the words of the error that a method answers."""
    with pytest.raises(needed("grpc").RpcError) as caught:
        call(channel, name, message)
    error: Any = caught.value
    return error.code().name, error.details()


def test_numbers_are_answered_by_numbers(channel: Any) -> None:
    found = response(channel, request(contents={"fp32_contents": [1, 2, 3]}))
    assert list(found.outputs[0].contents.fp32_contents) == [1, 2, 3]
    assert not found.raw_output_contents


def test_bytes_are_answered_by_bytes(channel: Any) -> None:
    message = request()
    message.raw_input_contents.append(b"\0" * 12)
    found = response(channel, message)
    assert list(found.raw_output_contents) == [b"\0" * 12]
    assert list(found.outputs[0].shape) == [1, 3]


def test_wrong_requests(channel: Any) -> None:
    def with_bytes(*parts: bytes, **said: Any) -> Any:
        message = request(**said)
        message.raw_input_contents.extend(parts)
        return message

    numbers = {"fp32_contents": [1, 2, 3]}
    twice = request(contents=numbers)
    twice.inputs.append(twice.inputs[0])
    wanted = request(contents=numbers)
    wanted.outputs.add(name="z")
    odd = request(contents=numbers)
    odd.parameters["priority"].string_param = "high"
    memory = request()
    memory.inputs[0].parameters["shared_memory_region"].string_param = "none"
    wrong = [
        request(),
        request(contents={"fp64_contents": [1, 2, 3]}),
        request(contents={"fp32_contents": [1, 2]}),
        request(shape=(1, 4), contents=numbers),
        request(shape=(-1, 3), contents=numbers),
        request(shape=(1 << 62, 3), contents=numbers),
        request(datatype="BYTES", contents={"bytes_contents": [b"a"]}),
        with_bytes(b"\0" * 11),
        with_bytes(b"\0" * 12, b""),
        with_bytes(b"\0" * 12, shape=(1 << 62, 3)),
        request("half", (3,), "FP16", contents=numbers),
        twice,
        wanted,
        odd,
        memory,
        message_class("ModelInferRequest")(model_name="echo"),
    ]
    assert {refused(channel, message)[0] for message in wrong} == {"INVALID_ARGUMENT"}
    assert refused(channel, request("nothing"))[0] == "NOT_FOUND"
    assert refused(channel, message_class("ModelReadyRequest")(name="nothing"), "ModelReady")[0] == "NOT_FOUND"


def test_outputs_are_named_once(channel: Any) -> None:
    message = request(contents={"fp32_contents": [1, 2, 3]})
    for _ in range(2):
        message.outputs.add(name="y")
    assert refused(channel, message) == ("INVALID_ARGUMENT", "the request names output 'y' twice")


def test_errors_of_a_network(channel: Any) -> None:
    answers = [
        refused(channel, request("failing", (1,), "INT64", contents={"int64_contents": [number]}))
        for number in range(3)
    ]
    assert answers == [
        ("INTERNAL", "it does not work"),
        ("INVALID_ARGUMENT", "it is no input"),
        ("INTERNAL", "the server failed"),
    ]


@pytest.mark.parametrize("char", ["a", "%", "é", "😀", "\n"])
def test_long_names_keep_their_status(channel: Any, char: str) -> None:
    """Details of more than 8 KiB would be refused by the client, with another status."""
    name = char * (65_000 // len(char.encode()))
    code, details = refused(channel, request(name, contents={"fp32_contents": [1, 2, 3]}))
    assert (code, details[:20]) == ("NOT_FOUND", f"there is no model '{repr(char)[1:-1]}"[:20])


def test_names_that_are_too_long(channel: Any) -> None:
    """Also those of which no error would tell."""
    long = "a" * 70_000
    identified, sequence = request(), request()
    identified.id = sequence.parameters["sequence_id"].string_param = long
    for message in (request(long), request(datatype=long), request(parameters={long: {}}), identified, sequence):
        code, details = refused(channel, message)
        assert (code, "has 70000 bytes" in details) == ("INVALID_ARGUMENT", True)


@pytest.mark.parametrize("name", ["CudaSharedMemoryRegister", "Nothing"])
def test_methods_that_there_are_not(channel: Any, name: str) -> None:
    assert refused(channel, b"", name)[0] == "UNIMPLEMENTED"


def test_settings_may_be_set_to_what_they_are(channel: Any) -> None:
    settings = {word: {"value": [value] if isinstance(value, str) else value} for word, value in TRACE.items()}
    message = message_class("TraceSettingRequest")(settings=settings)
    found = message_class("TraceSettingResponse").FromString(call(channel, "TraceSetting", message))
    assert {word: {"value": list(item.value)} for word, item in found.settings.items()} == settings
    message.settings["trace_rate"].value[:] = ["7"]
    assert refused(channel, message, "TraceSetting")[0] == "PERMISSION_DENIED"


def test_bytes_that_are_no_message(server: Running, channel: Any) -> None:
    for data in (b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x2a\x03abc"):
        assert refused(channel, data)[0] == "INVALID_ARGUMENT"
    assert message_class("ServerLiveResponse").FromString(call(channel, "ServerLive", b"")).live


def test_a_stream_that_is_cancelled(server: Running, channel: Any) -> None:
    network = server.models.find("slow")
    network.cancelled.clear()
    message = request("slow", (2,), contents={"fp32_contents": [1, 2]}).SerializeToString()
    is_over = threading.Event()

    def messages() -> Iterator[bytes]:
        yield from [message] * 100
        is_over.wait(20)

    stream = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")(messages())
    assert message_class("ModelStreamInferResponse").FromString(next(stream)).infer_response.outputs
    stream.cancel()
    is_over.set()
    assert network.cancelled.wait(10)
    assert call(channel, "ServerLive", b"")


@pytest.mark.parametrize("name", ["ModelInfer", "ServerMetadata", "RepositoryIndex"])
def test_calls_without_a_message(channel: Any, name: str) -> None:
    future = channel.stream_unary(f"/{SERVICE}/{name}").future(iter([]), timeout=20)
    error = future.exception()
    assert (error.code().name, error.details()) == ("INVALID_ARGUMENT", "the call has no message")


def test_a_stream_without_a_message(channel: Any) -> None:
    assert not list(channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")(iter([]), timeout=20))


def test_a_stream_goes_on_behind_bytes_that_are_no_message(channel: Any) -> None:
    good = request(contents={"fp32_contents": [1, 2, 3]}).SerializeToString()
    stream = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")(iter([good, b"\xff" * 9, good]), timeout=20)
    found = [message_class("ModelStreamInferResponse").FromString(data) for data in stream]
    assert ["not a valid message" in item.error_message for item in found] == [False, True, False]


@pytest.fixture
def narrow() -> Iterator[Running]:
    """A server with memory for two messages at once, one of calls and one of streams."""
    with running(limits=Limits(memory_bytes=2 << 20, message_bytes=1 << 20, body_seconds=0.5)) as found:
        yield found


def test_messages_come_in_turns(narrow: Running) -> None:
    good = request(contents={"fp32_contents": [1, 2, 3]}).SerializeToString()
    is_over = threading.Event()

    def nothing() -> Iterator[bytes]:
        is_over.wait(20)
        yield good

    with needed("grpc").insecure_channel(f"127.0.0.1:{narrow.grpc}") as channel:
        method = channel.stream_unary(f"/{SERVICE}/ModelInfer")
        slow = [method.future(nothing(), timeout=20) for _ in range(3)]
        time.sleep(0.1)
        assert message_class("ServerLiveResponse").FromString(call(channel, "ServerLive", b"")).live
        codes = [future.exception(20).code().name for future in slow]
        assert "DEADLINE_EXCEEDED" in codes  # The turn of one came, its message did not.
        assert set(codes) <= {"DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"}
        is_over.set()
        futures = [method.future(iter([good]), timeout=20) for _ in range(50)]
        assert all(future.result() for future in futures)
        assert method.future(iter([]), timeout=20).exception().code().name == "INVALID_ARGUMENT"


def test_messages_may_be_as_large_as_any() -> None:
    with running(limits=Limits(message_bytes=2 << 30)) as server:
        with needed("grpc").insecure_channel(f"127.0.0.1:{server.grpc}") as channel:
            assert response(channel, request(contents={"fp32_contents": [1, 2, 3]})).outputs


@pytest.mark.parametrize("port", [99999, 65536, -1])
def test_ports_that_there_are_not(port: int) -> None:
    with pytest.raises(OptionError, match=f"cannot listen on 127.0.0.1:{port}"):
        asyncio.run(GrpcServer(Service(FakeModels([])), f"127.0.0.1:{port}").start())


def test_messages_leave_no_memory_behind() -> None:
    message = request("nothing")
    message.raw_input_contents.append(bytes(12 << 20))
    data = message.SerializeToString()
    command = [sys.executable, str(ROOT / "tests" / "support" / "request_server.py")]
    options = [("grpc.use_local_subchannel_pool", 1)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().split()[1]
            before = peak(server.pid)
            channels = [needed("grpc").insecure_channel(f"127.0.0.1:{port}", options=options) for _ in range(40)]
            calls = [found.unary_unary(f"/{SERVICE}/ModelInfer").future(data, timeout=60) for found in channels]
            assert {call.exception().code().name for call in calls} == {"NOT_FOUND"}
            taken = peak(server.pid) - before
            for found in channels:
                found.close()
        finally:
            server.kill()
    assert taken < 2 * LIMITS.memory_bytes  # 40 messages have 480 MiB.


def test_streams_are_as_many_as_memory_has_room_for(narrow: Running) -> None:
    good = request(contents={"fp32_contents": [1, 2, 3]}).SerializeToString()
    is_over = threading.Event()

    def messages() -> Iterator[bytes]:
        yield good
        is_over.wait(20)

    with needed("grpc").insecure_channel(f"127.0.0.1:{narrow.grpc}") as channel:
        method = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
        first = method(messages(), timeout=20)
        assert next(first)
        with pytest.raises(needed("grpc").RpcError, match="the server already has 1 streams"):
            next(method(iter([good]), timeout=20))
        is_over.set()
        assert not list(first)
        assert len(list(method(iter([good] * 3), timeout=20))) == 3


def test_no_message_is_read_without_the_token() -> None:
    def nothing() -> Iterator[bytes]:
        is_over.wait(20)
        yield b""

    is_over = threading.Event()
    with running(token="secret") as server, needed("grpc").insecure_channel(f"127.0.0.1:{server.grpc}") as channel:
        for name in ("ModelInfer", "ServerMetadata"):
            future = channel.stream_unary(f"/{SERVICE}/{name}").future(nothing(), timeout=20)
            assert future.exception(10).code().name == "UNAUTHENTICATED"
        is_over.set()


def test_the_messages_are_those_of_the_protocol() -> None:
    theirs = needed("tritonclient.grpc.service_pb2").DESCRIPTOR.message_types_by_name
    renamed = {
        "InferTensor": theirs["ModelInferRequest"].nested_types_by_name["InferInputTensor"],
        "InferRequestedOutput": theirs["ModelInferRequest"].nested_types_by_name["InferRequestedOutputTensor"],
        "TensorMetadata": theirs["ModelMetadataResponse"].nested_types_by_name["TensorMetadata"],
        "ModelIndex": theirs["RepositoryIndexResponse"].nested_types_by_name["ModelIndex"],
        "RegionStatus": theirs["SystemSharedMemoryStatusResponse"].nested_types_by_name["RegionStatus"],
        "CudaRegionStatus": theirs["CudaSharedMemoryStatusResponse"].nested_types_by_name["RegionStatus"],
    }
    configured = needed("tritonclient.grpc.model_config_pb2").DESCRIPTOR.message_types_by_name
    for value, request in (("TraceValue", "TraceSettingRequest"), ("LogValue", "LogSettingsRequest")):
        renamed[value] = theirs[request].nested_types_by_name["SettingValue"]
    for name in MESSAGES:
        known = renamed.get(name) or theirs.get(name) or configured[name]
        for field in message_class(name).DESCRIPTOR.fields:
            other = known.fields_by_name[field.name]
            assert (field.number, field.type, field.is_repeated) == (other.number, other.type, other.is_repeated), name


def test_a_missing_package_is_told_before_models_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc.aio", None)
    package.cache_clear()
    try:
        with pytest.raises(OptionError, match="serving needs grpc"):
            GrpcServer(Service(FakeModels([])), "127.0.0.1:0")
    finally:
        package.cache_clear()
