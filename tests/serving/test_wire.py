"""Messages of gRPC as we read and write them, beside protobuf's own parser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_models import FakeNetwork, echo

from glow_mlir.errors import InputError
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.contents import NUMBERS, Contents, written
from glow_mlir.serving.errors import ResponseTooLargeError
from glow_mlir.serving.grpc_codec import in_stream, message_steps, read_message
from glow_mlir.serving.grpc_messages import message_class
from glow_mlir.serving.inference import InferenceRequest
from glow_mlir.serving.packed_numbers import packed_varints, unpacked_varints, varint_pieces
from glow_mlir.serving.shared_memory import Regions
from glow_mlir.serving.steps import PIECE, Result, Steps, finished
from glow_mlir.serving.wire import MAX_FIELDS, WireReader, sized, varint
from glow_mlir.support.dtypes import STRING

pytestmark = pytest.mark.extra

pytest.importorskip("google.protobuf")

DTYPES = {
    "bool": "BOOL",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "float32": "FP32",
    "float64": "FP64",
}
NETWORKS = {dtype: echo("echo", dtype) for dtype in DTYPES}
WORDS = echo("words", STRING)


def asked(network: FakeNetwork, data: bytes) -> InferenceRequest:
    """What a message asks a network for."""
    parts = finished(WireReader(data).read())
    return finished(read_message(network, data, parts, Regions(), Charge()))


def counted(steps: Steps[Result]) -> tuple[Result, int]:
    """The result of work, and after how many steps it is there."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


def refusal(data: bytes, *, is_whole: bool = True) -> str:
    """Why a message is refused; empty where it is not, and anything else fails the test."""
    try:
        if is_whole:
            asked(NETWORKS["int32"], data)
        else:
            finished(WireReader(data).read())
    except InputError as error:
        return str(error)
    return ""


def message_of(datatype: str, field: str, values: Any, **said: Any) -> Any:
    item = {"name": "x", "datatype": datatype, "shape": [len(values)], "contents": {field: values}}
    return message_class("ModelInferRequest")(model_name="echo", inputs=[item], **said)


def field_of(datatype: str) -> str:
    """The name of the field that has elements of a type."""
    return message_class("InferTensorContents").DESCRIPTOR.fields_by_number[NUMBERS[datatype].number].name


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_numbers_as_protobuf_writes_them(dtype: str, data: st.DataObject) -> None:
    kind, size = np.dtype(dtype), data.draw(st.integers(1, 40))
    if kind.kind in "iu":
        bounds = np.iinfo(kind)
        values: list[Any] = data.draw(st.lists(st.integers(int(bounds.min), int(bounds.max)), max_size=size))
    elif kind.kind == "b":
        values = data.draw(st.lists(st.booleans(), max_size=size))
    else:
        width = 8 * kind.itemsize
        values = data.draw(
            st.lists(st.floats(allow_nan=False, allow_infinity=False, width=width), max_size=size)  # pyright: ignore[reportArgumentType]
        )
    message = message_of(DTYPES[dtype], field_of(DTYPES[dtype]), values, id="seven")
    request = asked(NETWORKS[dtype], message.SerializeToString())
    array = request.inputs["x"]
    assert array.dtype == kind
    assert array.tolist() == values
    answer = message_class("ModelInferResponse").FromString(
        finished(message_steps(NETWORKS[dtype], request, {"y": array}, Regions(), Charge()))
    )
    (output,) = answer.outputs
    assert (answer.id, output.datatype, list(output.shape)) == ("seven", DTYPES[dtype], [len(values)])
    got = answer.raw_output_contents[0] if answer.raw_output_contents else None
    if values:
        assert got is None
        assert list(getattr(output.contents, field_of(DTYPES[dtype]))) == values


@given(st.lists(st.text(max_size=5), max_size=9))
def test_strings_as_protobuf_writes_them(texts: list[str]) -> None:
    message = message_of("BYTES", "bytes_contents", [text.encode() for text in texts])
    request = asked(WORDS, message.SerializeToString())
    assert request.inputs["x"].tolist() == texts
    data = finished(message_steps(WORDS, request, {"y": request.inputs["x"]}, Regions(), Charge()))
    (output,) = message_class("ModelInferResponse").FromString(data).outputs
    assert [text.decode() for text in output.contents.bytes_contents] == texts


def test_all_that_a_request_says() -> None:
    message = message_of("FP32", "fp32_contents", [1.5, 2.5], id="é", model_version="7")
    for name, word, value in (
        ("priority", "int64_param", 3),
        ("sequence_id", "string_param", "s"),
        ("sequence_start", "bool_param", True),
        ("timeout", "uint64_param", 9),
        ("other", "double_param", -0.5),
    ):
        setattr(message.parameters[name], word, value)
    message.parameters["nothing"].SetInParent()
    output = message.outputs.add(name="y")
    output.parameters["binary_data"].bool_param = False
    message.inputs[0].parameters["minus"].int64_param = -(1 << 40)
    parts = finished(WireReader(message.SerializeToString()).read())
    assert (parts.model_name, parts.model_version, parts.id) == ("echo", "7", "é")
    assert parts.parameters == {
        "priority": 3,
        "sequence_id": "s",
        "sequence_start": True,
        "timeout": 9,
        "other": -0.5,
        "nothing": None,
    }
    assert [(item.name, item.parameters) for item in parts.outputs] == [("y", {"binary_data": False})]
    assert parts.inputs[0].parameters == {"minus": -(1 << 40)}
    assert parts.inputs[0].shape == [2]


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=50))
def test_numbers_of_any_length(numbers: list[int]) -> None:
    data = b"".join(map(varint, numbers))
    assert unpacked_varints(np.frombuffer(data, np.uint8)).tolist() == numbers
    assert packed_varints(np.array(numbers, np.uint64)).tobytes() == data


@pytest.mark.parametrize("width", [1, 3, 10])
def test_many_numbers_come_in_pieces(width: int) -> None:
    numbers = np.full(PIECE + 77, (1 << 7 * (width - 1)) | 1, np.uint64)
    packed = packed_varints(numbers)
    pieces = list(varint_pieces(packed))
    assert len(pieces) > 1
    assert np.array_equal(np.concatenate(pieces), numbers)
    for wrong in (packed[:-1] if width > 1 else np.array([0x80], np.uint8), np.full(3 * PIECE, 0xFF, np.uint8)):
        with pytest.raises(InputError, match="a number is not terminated"):
            list(varint_pieces(wrong))


def test_numbers_that_have_a_field_each() -> None:
    item = sized(1, 1) + b"x" + sized(2, 5) + b"INT32" + b"\x18\x03"
    contents = b"".join(b"\x10" + varint(value) for value in (1, -2, 300))
    item += sized(5, len(contents)) + contents
    data = sized(1, 4) + b"echo" + sized(5, len(item)) + item
    theirs = message_class("ModelInferRequest").FromString(data)
    assert list(theirs.inputs[0].contents.int_contents) == [1, -2, 300]
    assert asked(NETWORKS["int32"], data).inputs["x"].tolist() == [1, -2, 300]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_infinities_and_nan_go_through(dtype: str) -> None:
    """As they do in bytes."""
    numbers = [float("inf"), 1.5, float("nan"), -float("inf")]
    request = asked(NETWORKS[dtype], message_of(DTYPES[dtype], field_of(DTYPES[dtype]), numbers).SerializeToString())
    assert np.array_equal(request.inputs["x"], np.array(numbers, dtype), equal_nan=True)
    data = finished(message_steps(NETWORKS[dtype], request, {"y": request.inputs["x"]}, Regions(), Charge()))
    contents = message_class("ModelInferResponse").FromString(data).outputs[0].contents
    assert np.array_equal(getattr(contents, field_of(DTYPES[dtype])), numbers, equal_nan=True)


WRONG = {
    "too few": message_of("INT8", "int_contents", [1, 2]),
    "too many": message_of("INT8", "int_contents", [1, 2, 3, 4]),
    "too large": message_of("INT8", "int_contents", [1, 2, 300]),
    "another field": message_of("INT8", "uint_contents", [1, 2, 3]),
    "no UTF-8": message_of("BYTES", "bytes_contents", [b"\xff", b"", b""]),
}


@pytest.mark.parametrize("case", WRONG)
def test_elements_that_do_not_fit(case: str) -> None:
    message = WRONG[case]
    message.inputs[0].shape[:] = [3]
    network = {"INT8": NETWORKS["int8"], "BYTES": WORDS}[message.inputs[0].datatype]
    with pytest.raises(InputError):
        asked(network, message.SerializeToString())


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    assert refusal(data, is_whole=False).isprintable()


@given(st.data())
def test_damaged_messages(data: st.DataObject) -> None:
    damaged = bytearray(message_of("INT32", "int_contents", [1, -2, 300], id="seven").SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        place, cut = data.draw(st.integers(0, len(damaged))), data.draw(st.integers(0, 2))
        damaged[place : place + cut] = data.draw(st.binary(max_size=2))
    assert refusal(bytes(damaged)).isprintable()


def test_more_fields_than_a_request_may_have() -> None:
    with pytest.raises(InputError, match="fields"):
        finished(WireReader(b"\x0a\0" * (MAX_FIELDS + 1)).read())
    many = sized(5, 2 * MAX_FIELDS + 2) + b"\x0a\0" * (MAX_FIELDS + 1)
    with pytest.raises(InputError, match="fields"):
        finished(WireReader(many).read())


@pytest.mark.parametrize("field", [b"\x10\1", b"\x12\0", b"\x12\1\1", b"\x18\1", b"\x1a\0"])
def test_more_fields_than_numbers_may_have(field: bytes) -> None:
    """With one number, none, some, and of another type."""
    contents = Contents(field * 20_000, [(0, len(field) * 20_000)])
    with pytest.raises(InputError, match="pack the numbers of a tensor into one field"):
        list(contents.numbers(NUMBERS["INT8"], 20_000))


def test_fields_without_numbers_are_read_in_steps() -> None:
    item = sized(1, 1) + b"x" + sized(2, 5) + b"INT32" + b"\x18\1"
    contents = b"\x12\0" * 16_000 + b"\x12\1\7"
    item += sized(5, len(contents)) + contents
    data = sized(1, 4) + b"echo" + sized(5, len(item)) + item
    parts = finished(WireReader(data).read())
    steps = read_message(NETWORKS["int32"], data, parts, Regions(), Charge())
    request, count = counted(steps)
    assert request.inputs["x"].tolist() == [7]
    assert count >= 15


def test_long_responses_in_pieces() -> None:
    array = np.arange(-200_000, 200_000)
    parts = finished(written("INT64", array, 1 << 30, Charge()))
    assert len(parts) > 3
    found = message_class("InferTensorContents").FromString(b"".join(parts))
    assert np.array_equal(np.array(found.int64_contents), array)
    long = np.arange(1 << 20, dtype=np.float32)
    request = InferenceRequest({}, [], id="a" * 200)
    request.outputs = [type("Wanted", (), {"name": "y", "is_binary": True, "region_slice": None})()]  # pyright: ignore[reportAttributeAccessIssue]
    data = finished(message_steps(NETWORKS["float32"], request, {"y": long[::2]}, Regions(), Charge()))
    streamed = message_class("ModelStreamInferResponse").FromString(finished(in_stream(data, Charge())))
    assert streamed.infer_response.raw_output_contents[0] == long[::2].tobytes()
    assert streamed.infer_response.id == "a" * 200


@pytest.mark.parametrize("is_binary", [False, True])
def test_responses_longer_than_a_message(is_binary: bool) -> None:
    request = asked(NETWORKS["int8"], message_of("INT8", "int_contents", [-1] * 100).SerializeToString())
    request.outputs[0].is_binary = is_binary
    outputs = {"y": request.inputs["x"]}
    assert finished(message_steps(NETWORKS["int8"], request, outputs, Regions(), Charge(), 2000))
    with pytest.raises(ResponseTooLargeError, match="the response has more than"):
        finished(message_steps(NETWORKS["int8"], request, outputs, Regions(), Charge(), 99))
