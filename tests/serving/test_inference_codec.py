"""Requests and responses over HTTP, by cases."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from served_models import FakeNetwork, echo, sums

from glow_mlir.errors import InputError, UnsupportedError
from glow_mlir.host.sequences import SequenceStep
from glow_mlir.serving import json_text
from glow_mlir.serving.inference import InferenceRequest
from glow_mlir.serving.inference_codec import read_request, write_response
from glow_mlir.serving.shared_memory import Regions
from glow_mlir.support.dtypes import named_dtype

DTYPES = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    "bfloat16": "BF16",
}


@pytest.fixture(autouse=True, params=["orjson", "json"])
def either_json(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test with `orjson`, if it is there, and without."""
    if request.param == "json":
        monkeypatch.setattr(json_text, "_orjson", lambda: None)


@pytest.fixture
def network() -> Iterator[FakeNetwork]:
    found = echo("echo", "float32", ("N", 3))
    yield found
    found.close()


def tensor(**fields: Any) -> dict[str, Any]:
    return {"name": "x", "datatype": "FP32", "shape": [1, 3], **fields}


def read(network: FakeNetwork, *inputs: object, **members: Any) -> InferenceRequest:
    return read_request(network, json.dumps({"inputs": inputs, **members}).encode(), None, Regions())


def read_binary(network: FakeNetwork, data: bytes, *inputs: object, length: int | None = None) -> InferenceRequest:
    head = json.dumps({"inputs": inputs}).encode()
    return read_request(network, head + data, len(head) if length is None else length, Regions())


BINARY = tensor(parameters={"binary_data_size": 12})
ROW = struct.pack("<3f", 1, 2, 3)


@pytest.mark.parametrize("data", [[1, 2.5, -3], [[1, 2.5, -3]]])
def test_numbers(network: FakeNetwork, data: list[Any]) -> None:
    (array,) = read(network, tensor(data=data)).inputs.values()
    assert array.dtype == np.float32
    assert array.tolist() == [[1, 2.5, -3]]


def test_bytes_are_views_into_the_body(network: FakeNetwork) -> None:
    head = json.dumps({"inputs": [BINARY]}).encode()
    body = bytearray(head + ROW)
    (array,) = read_request(network, body, len(head), Regions()).inputs.values()
    assert array.tolist() == [[1, 2, 3]]
    body[len(head) :] = struct.pack("<3f", 4, 5, 6)
    assert array.tolist() == [[4, 5, 6]]


def test_two_inputs_one_of_them_as_bytes() -> None:
    network = sums()
    one = {"name": "a", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    other = {"name": "b", "datatype": "FP32", "shape": [1, 4], "parameters": {"binary_data_size": 16}}
    found = read_binary(network, struct.pack("<4f", 5, 6, 7, 8), one, other)
    assert {name: array.tolist() for name, array in found.inputs.items()} == {"a": [[1, 2, 3, 4]], "b": [[5, 6, 7, 8]]}
    network.close()


@pytest.mark.parametrize(("dtype", "word"), DTYPES.items())
@pytest.mark.parametrize("is_binary", [False, True])
def test_each_type_goes_through(dtype: str, word: str, is_binary: bool) -> None:
    network = echo("echo", dtype)
    numbers: list[Any] = [True, False, True] if dtype == "bool" else [1, 0, 100]
    array = np.array(numbers, named_dtype(dtype))
    item: dict[str, Any] = {"name": "x", "datatype": word, "shape": [3]}
    members = {"parameters": {"binary_data_output": is_binary}, "id": "seven"}
    if is_binary:
        item["parameters"] = {"binary_data_size": array.nbytes}
        head = json.dumps({"inputs": [item], **members}).encode()
        request = read_request(network, head + array.tobytes(), len(head), Regions())
    else:
        request = read(network, {**item, "data": numbers}, **members)
    given = request.inputs["x"]
    assert given.dtype == array.dtype
    assert given.tobytes() == array.tobytes()
    body = write_response(network, request, {"y": given}, Regions())
    head = json.loads(body.parts[0])
    (output,) = head.pop("outputs")
    assert head == {"model_name": "echo", "model_version": "1", "id": "seven"}
    assert (output["name"], output["datatype"], output["shape"]) == ("y", word, [3])
    if is_binary:
        assert output["parameters"] == {"binary_data_size": array.nbytes}
        assert body.header_length == len(body.parts[0])
        assert body.parts[1] == array.tobytes()
    else:
        assert body.header_length == 0
        assert output["data"] == numbers
    network.close()


def test_a_truth_value_is_0_or_1() -> None:
    network = echo("echo", "bool")
    item = {"name": "x", "datatype": "BOOL", "shape": [3], "parameters": {"binary_data_size": 3}}
    assert read_binary(network, b"\0\1\7", item).inputs["x"].tobytes() == b"\0\1\1"
    network.close()


def test_what_a_request_says(network: FakeNetwork) -> None:
    said = {"sequence_id": 5, "sequence_start": True, "priority": 3, "timeout": 1500, "of_mine": "x"}
    request = read(network, tensor(data=[1, 2, 3]), id="a", parameters=said, outputs=[{"name": "y"}])
    assert request.id == "a"
    assert request.priority == 3
    assert request.timeout == pytest.approx(0.0015)
    assert request.sequence == SequenceStep(5, is_start=True)
    assert request.names == ["y"]


def test_outputs_are_chosen_one_by_one() -> None:
    network = sums()
    rows = {"datatype": "FP32", "shape": [1, 4], "data": [0, 0, 0, 0]}
    wanted = [{"name": "difference", "parameters": {"binary_data": False}}, {"name": "sum"}]
    request = read(
        network,
        {"name": "a", **rows},
        {"name": "b", **rows},
        outputs=wanted,
        parameters={"binary_data_output": True},
    )
    assert [(item.name, item.is_binary) for item in request.outputs] == [("difference", False), ("sum", True)]
    network.close()


def test_empty_arrays(network: FakeNetwork) -> None:
    assert read(network, tensor(shape=[0, 3], data=[])).inputs["x"].shape == (0, 3)
    empty = tensor(shape=[0, 3], parameters={"binary_data_size": 0})
    assert read_binary(network, b"", empty).inputs["x"].shape == (0, 3)


HUGE = 1 << 62

WRONG_INPUTS: dict[str, dict[str, Any]] = {
    "unknown": tensor(name="z", data=[1, 2, 3]),
    "without a name": tensor(name=["x"], data=[1, 2, 3]),
    "another type": tensor(datatype="FP64", data=[1, 2, 3]),
    "strings": tensor(datatype="BYTES", data=["a", "b", "c"]),
    "no type": tensor(datatype=None, data=[1, 2, 3]),
    "another shape": tensor(shape=[1, 4], data=[1, 2, 3, 4]),
    "another rank": tensor(shape=[3], data=[1, 2, 3]),
    "no shape": tensor(shape="13", data=[1, 2, 3]),
    "a negative size": tensor(shape=[-1, 3], data=[1, 2, 3]),
    "a huge size": tensor(shape=[HUGE, 3], data=[1, 2, 3]),
    "a size beyond all": tensor(shape=[1 << 200, 3], data=[1, 2, 3]),
    "a size that is no number": tensor(shape=[True, 3], data=[1, 2, 3]),
    "many axes": tensor(shape=[1] * 65, data=[1]),
    "too few numbers": tensor(data=[1, 2]),
    "too many numbers": tensor(data=[1, 2, 3, 4]),
    "no data": tensor(),
    "data that are no list": tensor(data="abc"),
    "strings as numbers": tensor(data=["1", "2", "3"]),
    "truth values as numbers": tensor(data=[True, False, True]),
    "nothing as a number": tensor(data=[None, 1, 2]),
    "a number beyond the type": tensor(data=[1e300, 1, 2]),
    "an integer beyond the type": tensor(data=[10**400, 1, 2]),
    "unequal rows": tensor(shape=[2, 3], data=[[1, 2, 3], [4, 5]]),
    "numbers and rows": tensor(shape=[2, 3], data=[[1, 2, 3], 4, 5, 6]),
    "nested too deep": tensor(data=[[[1], [2], [3]]]),
    "parameters that are none": tensor(data=[1, 2, 3], parameters=7),
    "bytes that are not there": tensor(parameters={"binary_data_size": 12}),
    "a size of bytes that is none": tensor(parameters={"binary_data_size": -12}),
    "a huge size of bytes": tensor(parameters={"binary_data_size": HUGE}),
    "data twice": tensor(data=[1, 2, 3], parameters={"binary_data_size": 12}),
    "memory that is unknown": tensor(parameters={"shared_memory_region": "r", "shared_memory_byte_size": 12}),
}


@pytest.mark.parametrize("name", WRONG_INPUTS)
def test_wrong_inputs(network: FakeNetwork, name: str) -> None:
    with pytest.raises(InputError):
        read(network, WRONG_INPUTS[name])


WRONG_MEMBERS: dict[str, dict[str, Any]] = {
    "an id that is too long": {"id": "a" * 70_000},
    "a sequence whose name is too long": {"parameters": {"sequence_id": "a" * 70_000}},
    "an unknown output": {"outputs": [{"name": "z"}]},
    "outputs that are none": {"outputs": "y"},
    "classes": {"outputs": [{"name": "y", "parameters": {"classification": 3}}]},
    "an id that is none": {"id": 7},
    "parameters that are none": {"parameters": []},
    "a priority that is none": {"parameters": {"priority": -1}},
    "a timeout that is none": {"parameters": {"timeout": "soon"}},
    "a sequence that is none": {"parameters": {"sequence_id": 1.5}},
    "a start that is none": {"parameters": {"sequence_id": 1, "sequence_start": 1}},
    "binary that is neither": {"parameters": {"binary_data_output": 1}},
}


def test_outputs_are_named_once(network: FakeNetwork) -> None:
    with pytest.raises(InputError, match="the request names output 'y' twice"):
        read(network, tensor(data=[1, 2, 3]), outputs=[{"name": "y"}, {"name": "y"}])


@pytest.mark.parametrize("name", WRONG_MEMBERS)
def test_wrong_members(network: FakeNetwork, name: str) -> None:
    with pytest.raises(InputError):
        read(network, tensor(data=[1, 2, 3]), **WRONG_MEMBERS[name])


def test_inputs_that_are_twice_or_missing(network: FakeNetwork) -> None:
    with pytest.raises(InputError, match="the request has two inputs"):
        read(network, tensor(data=[1, 2, 3]), tensor(data=[1, 2, 3]))
    with pytest.raises(InputError, match="no input 'x'"):
        read(network)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"7",
        b"{",
        b'{"inputs": 7}',
        b'{"inputs": [7]}',
        b"{}",
        b"[" * 100_000,
        b'{"inputs": ' + b"[" * 100_000,
        b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [NaN, 1, 2]}]}',
        b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1e999, 1, 2]}]}',
        b'{"inputs": [{"name": "\xff"}]}',
        b'{"inputs": [{"name": "\\ud800"}]}',
        b"\x00",
    ],
)
def test_text_that_is_no_request(network: FakeNetwork, text: bytes) -> None:
    with pytest.raises(InputError):
        read_request(network, text, None, Regions())


@pytest.mark.parametrize("data", [b"", ROW[:-1], ROW + b"\0", ROW * 2])
def test_bytes_that_do_not_add_up(network: FakeNetwork, data: bytes) -> None:
    with pytest.raises(InputError):
        read_binary(network, data, BINARY)


@pytest.mark.parametrize("length", [0, 1, 10, 1 << 40])
def test_a_length_of_the_head_that_is_none(network: FakeNetwork, length: int) -> None:
    with pytest.raises(InputError):
        read_binary(network, ROW, BINARY, length=length)


def test_bytes_behind_a_request_of_numbers(network: FakeNetwork) -> None:
    with pytest.raises(InputError, match="remain after the last input"):
        read_binary(network, ROW, tensor(data=[1, 2, 3]))


@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [("uint8", [256]), ("int8", [-129]), ("int64", [1 << 63]), ("int32", [1.0]), ("bfloat16", [1 << 200])],
)
def test_numbers_that_a_type_does_not_have(dtype: str, numbers: list[Any]) -> None:
    network = echo("echo", dtype)
    with pytest.raises(InputError):
        read(network, {"name": "x", "datatype": DTYPES[dtype], "shape": [1], "data": numbers})
    network.close()


def test_the_largest_integers_are_exact() -> None:
    network = echo("echo", "uint64")
    numbers = [(1 << 64) - 1, 1, 1 << 63]
    request = read(network, {"name": "x", "datatype": "UINT64", "shape": [3], "data": numbers})
    assert request.inputs["x"].tolist() == numbers
    network.close()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_json_has_neither_infinities_nor_nan(network: FakeNetwork, value: float) -> None:
    request = read(network, tensor(data=[1, 2, 3]))
    with pytest.raises(InputError, match="binary data"):
        write_response(network, request, {"y": np.array([[value, 1, 2]], np.float32)}, Regions())


def test_outputs_in_any_order_of_memory(network: FakeNetwork) -> None:
    request = read(network, tensor(data=[1, 2, 3]))
    array = np.arange(6, dtype=np.float32).reshape(2, 3).T
    (output,) = json.loads(write_response(network, request, {"y": array}, Regions()).parts[0])["outputs"]
    assert output["shape"] == [3, 2]
    assert output["data"] == [0, 3, 1, 4, 2, 5]


def test_a_type_without_a_word() -> None:
    network = echo("echo", "float8_e5m2")
    with pytest.raises(UnsupportedError, match="has no element type"):
        read(network, tensor(data=[1]))
    network.close()
