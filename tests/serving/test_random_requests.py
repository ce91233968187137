"""Requests over HTTP that hypothesis draws, and damages: what is wrong with them is told, and nothing else happens."""

from __future__ import annotations

import json
import string
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_models import FakeNetwork, echo, sums

from glow_mlir.errors import InputError
from glow_mlir.serving import json_text
from glow_mlir.serving.inference_codec import read_request, write_response
from glow_mlir.serving.shared_memory import Regions
from glow_mlir.support.dtypes import named_dtype

WORDS = {"uint8": "UINT8", "int32": "INT32", "int64": "INT64", "float16": "FP16", "float32": "FP32", "bfloat16": "BF16"}
NETWORKS = {dtype: echo("echo", dtype, ("N", "M")) for dtype in WORDS}
SUMS = sums()


@pytest.fixture(autouse=True, params=["orjson", "json"], scope="module")
def either_json(request: pytest.FixtureRequest) -> Any:
    """Each test with `orjson`, if it is there, and without."""
    patch = pytest.MonkeyPatch()
    if request.param == "json":
        patch.setattr(json_text, "_orjson", lambda: None)
    yield
    patch.undo()


@st.composite
def arrays(draw: st.DrawFn) -> tuple[FakeNetwork, str, np.ndarray]:
    """A network, the word for its type, and an input."""
    dtype = draw(st.sampled_from(sorted(WORDS)))
    shape = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    count = shape[0] * shape[1]
    numbers = draw(st.lists(st.integers(0, 100), min_size=count, max_size=count))
    return NETWORKS[dtype], WORDS[dtype], np.array(numbers, named_dtype(dtype)).reshape(shape)


def request_of(word: str, array: np.ndarray, is_binary: bool, is_nested: bool) -> tuple[bytes, int | None]:
    """A request, and how many bytes of it are JSON."""
    item: dict[str, Any] = {"name": "x", "datatype": word, "shape": list(array.shape)}
    if is_binary:
        item["parameters"] = {"binary_data_size": array.nbytes}
    else:
        numbers = array.astype(np.float64).astype(np.int64)
        item["data"] = numbers.tolist() if is_nested else numbers.reshape(-1).tolist()
    members = {"inputs": [item], "parameters": {"binary_data_output": is_binary}}
    head = json.dumps(members).encode()
    return (head + array.tobytes(), len(head)) if is_binary else (head, None)


@given(arrays(), st.booleans(), st.booleans())
def test_what_goes_in_comes_out(drawn: tuple[FakeNetwork, str, np.ndarray], is_binary: bool, is_nested: bool) -> None:
    network, word, array = drawn
    body, length = request_of(word, array, is_binary, is_nested and array.size > 0)
    request = read_request(network, body, length, Regions())
    assert request.inputs["x"].shape == array.shape
    assert request.inputs["x"].tobytes() == array.tobytes()
    response = write_response(network, request, {"y": request.inputs["x"]}, Regions())
    (output,) = json.loads(response.parts[0])["outputs"]
    assert output["shape"] == list(array.shape)
    if is_binary:
        assert b"".join(response.parts)[response.header_length :] == array.tobytes()
    else:
        assert output["data"] == array.astype(np.float64).reshape(-1).tolist()


def read_or_refuse(network: FakeNetwork, body: bytes, length: int | None) -> set[str] | None:
    """The inputs of a request, or that it was refused; anything else fails the test."""
    try:
        return set(read_request(network, body, length, Regions()).inputs)
    except InputError as error:
        return None if str(error).isprintable() else {str(error)}


@given(arrays(), st.booleans(), st.data())
def test_damaged_bytes(drawn: tuple[FakeNetwork, str, np.ndarray], is_binary: bool, data: st.DataObject) -> None:
    network, word, array = drawn
    body, length = request_of(word, array, is_binary, is_nested=True)
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(damaged)))
        cut = data.draw(st.integers(0, 3))
        damaged[place : place + cut] = data.draw(st.one_of(st.binary(max_size=3), st.sampled_from(PIECES)))
    if data.draw(st.booleans()):
        length = data.draw(st.one_of(st.none(), st.integers(0, len(damaged) + 3), st.just(1 << 62)))
    assert read_or_refuse(network, bytes(damaged), length) in (None, {"x"})


PIECES = [b"-", b"1e999", b"NaN", b"[[", b"]]", b'"', b"{}", b"null", b"4611686018427387904", b"\\u0000", b"\xff"]

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["a", "b", "sum", "FP32", "BYTES", ""]),
    st.text(string.printable, max_size=3),
)
KEYS = st.sampled_from(
    [
        "name",
        "datatype",
        "shape",
        "data",
        "parameters",
        "binary_data_size",
        "binary_data",
        "shared_memory_region",
        "shared_memory_byte_size",
        "shared_memory_offset",
        "priority",
        "timeout",
        "sequence_id",
        "id",
        "inputs",
        "outputs",
    ]
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)), max_leaves=8
)


@given(st.data())
def test_odd_members(data: st.DataObject) -> None:
    items: list[dict[str, Any]] = [
        {"name": name, "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]} for name in ("a", "b")
    ]
    whole: dict[str, Any] = {"inputs": items, "outputs": [{"name": "sum"}], "parameters": {}}
    for _ in range(data.draw(st.integers(1, 3))):
        part = data.draw(st.sampled_from([whole, *items, whole["parameters"] if "parameters" in whole else whole]))
        if isinstance(part, dict):
            part[data.draw(KEYS)] = data.draw(VALUES)
    assert read_or_refuse(SUMS, json.dumps(whole).encode(), None) in (None, {"a", "b"})
