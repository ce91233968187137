"""What clients of gRPC may send that stock ones do not: numbers in fields, damaged messages, unknown methods."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from running_servers import Running, needed, running

from glow_mlir.serving.grpc_messages import MESSAGES, SERVICE, message_class

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


@pytest.mark.parametrize("name", ["CudaSharedMemoryRegister", "Nothing"])
def test_methods_that_there_are_not(channel: Any, name: str) -> None:
    assert refused(channel, b"", name)[0] == "UNIMPLEMENTED"


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


def test_a_stream_goes_on_behind_bytes_that_are_no_message(channel: Any) -> None:
    good = request(contents={"fp32_contents": [1, 2, 3]}).SerializeToString()
    stream = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")(iter([good, b"\xff" * 9, good]), timeout=20)
    found = [message_class("ModelStreamInferResponse").FromString(data) for data in stream]
    assert ["no message" in item.error_message for item in found] == [False, True, False]


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
