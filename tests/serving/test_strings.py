"""Strings over the wire: in JSON, behind their lengths over HTTP and in shared memory, and in both ways of gRPC."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running_servers import Running, needed, running
from served_models import echo

from glow_mlir.errors import InputError
from glow_mlir.runtime.signature import Argument
from glow_mlir.serving import json_text
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.contents import Contents, written
from glow_mlir.serving.grpc_messages import SERVICE, message_class
from glow_mlir.serving.inference_codec import read_request, write_response
from glow_mlir.serving.shared_memory import Regions
from glow_mlir.serving.steps import finished
from glow_mlir.serving.strings import encoded, packed, string_array, unpacked
from glow_mlir.serving.tensors import reader_of
from glow_mlir.support.dtypes import STRING

WORDS = [["Straße", ""], ["a\0b", "日本"], ["x" * 300, '"\\']]
NETWORK = echo("words", STRING, ("N", 2))


@pytest.fixture(autouse=True, params=["orjson", "json"], scope="module")
def either_json(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test with `orjson`, if it is there, and without."""
    patch = pytest.MonkeyPatch()
    if request.param == "json":
        patch.setattr(json_text, "_orjson", lambda: None)
    yield
    patch.undo()


def item(**said: Any) -> dict[str, Any]:
    return {"name": "x", "datatype": "BYTES", "shape": [3, 2], **said}


def array(words: list[list[str]]) -> np.ndarray:
    return string_array([word for row in words for word in row]).reshape(len(words), 2)


def request_of(words: list[list[str]], is_binary: bool) -> tuple[bytes, int | None]:
    """A request, and how many bytes of it are JSON."""
    said = {"parameters": {"binary_data_output": is_binary}}
    if not is_binary:
        return json.dumps({"inputs": [item(shape=[len(words), 2], data=words)], **said}).encode(), None
    data = packed(encoded(array(words)))
    given = item(shape=[len(words), 2], parameters={"binary_data_size": len(data)})
    head = json.dumps({"inputs": [given], **said}).encode()
    return head + data, len(head)


@pytest.mark.parametrize("is_binary", [False, True])
@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=2), max_size=4))
def test_what_goes_in_comes_out(is_binary: bool, words: list[list[str]]) -> None:
    request = read_request(NETWORK, *request_of(words, is_binary), Regions())
    given = request.inputs["x"]
    assert given.dtype == object
    assert given.tolist() == words
    body = write_response(NETWORK, request, {"y": given}, Regions())
    (output,) = json.loads(body.parts[0])["outputs"]
    assert (output["datatype"], output["shape"]) == ("BYTES", [len(words), 2])
    if is_binary:
        assert output["parameters"] == {"binary_data_size": len(body.parts[1])}
        found = finished(unpacked(memoryview(body.parts[1]), 2 * len(words), Charge()))
        assert found == [word for row in words for word in row]
    else:
        assert output["data"] == [word for row in words for word in row]


@pytest.mark.parametrize("kind", [object, "U", "S"])
def test_any_array_of_strings_is_an_output(kind: Any) -> None:
    request = read_request(NETWORK, *request_of(WORDS, is_binary=False), Regions())
    given = np.array([["a", "bc"]]).astype(kind).T
    (output,) = json.loads(write_response(NETWORK, request, {"y": given}, Regions()).parts[0])["outputs"]
    assert (output["datatype"], output["shape"], output["data"]) == ("BYTES", [2, 1], ["a", "bc"])


def test_bytes_that_are_no_text_are_no_json() -> None:
    request = read_request(NETWORK, *request_of(WORDS, is_binary=False), Regions())
    given = string_array([b"\xff"]).reshape(1, 1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="binary data"):
        write_response(NETWORK, request, {"y": given}, Regions())
    request.outputs[0].is_binary = True
    assert write_response(NETWORK, request, {"y": given}, Regions()).parts[1] == b"\1\0\0\0\xff"


WRONG = {
    "numbers": item(data=[1, 2, 3, 4, 5, 6]),
    "nothing": item(data=[None] * 6),
    "too few": item(data=["a"] * 5),
    "nested otherwise": item(data=[["a", "b", "c"], ["a", "b", "c"]]),
    "half of a character": item(data=["\ud800"] * 6),
    "numbers of another type": item(datatype="FP32", data=[1, 2, 3, 4, 5, 6]),
    "no type": item(datatype=None, data=["a"] * 6),
    "another shape": item(shape=[6], data=["a"] * 6),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_string(case: str) -> None:
    with pytest.raises(InputError):
        read_request(NETWORK, json.dumps({"inputs": [WRONG[case]]}).encode(), None, Regions())


ONE = struct.pack("<i", 1)


@pytest.mark.parametrize(
    "data", [b"", ONE, ONE + b"ab", (ONE + b"a") * 3, ONE + b"\xff" + ONE + b"a", b"\xff" * 8, struct.pack("<2i", 9, 0)]
)
def test_bytes_that_are_no_strings(data: bytes) -> None:
    head = json.dumps({"inputs": [item(shape=[1, 2], parameters={"binary_data_size": len(data)})]}).encode()
    with pytest.raises(InputError):
        read_request(NETWORK, head + data, len(head), Regions())


@given(st.binary(max_size=40), st.integers(0, 3))
def test_damaged_bytes_are_told(data: bytes, count: int) -> None:
    head = json.dumps({"inputs": [item(shape=[count, 2], parameters={"binary_data_size": len(data)})]}).encode()
    try:
        found = read_request(NETWORK, head + data, len(head), Regions()).inputs["x"]
    except InputError:
        return
    assert packed(encoded(found)) == data


@pytest.mark.parametrize("shape", [[1 << 40, 1 << 40], [1 << 46, 2]])
def test_a_shape_takes_no_memory_of_its_own(shape: list[int]) -> None:
    network = echo("words", STRING, ("N", "M"))
    head = json.dumps({"inputs": [item(shape=shape, parameters={"binary_data_size": 4})]}).encode()
    with pytest.raises(InputError, match="bytes, too few for"):
        read_request(network, head + ONE, len(head), Regions())


@pytest.fixture(scope="module")
def server(either_json: None) -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.mark.extra
@pytest.mark.filterwarnings("ignore")
class TestClients:
    """Clients of others."""

    @pytest.mark.parametrize("kind", ["http", "grpc"])
    @pytest.mark.parametrize("is_binary", [False, True])
    def test_tritonclient(self, server: Running, kind: str, is_binary: bool) -> None:
        package = needed(f"tritonclient.{kind}")
        given = package.InferInput("x", [3, 2], "BYTES")
        wanted = package.InferRequestedOutput("y", **({"binary_data": is_binary} if kind == "http" else {}))
        given.set_data_from_numpy(array(WORDS), **({"binary_data": is_binary} if kind == "http" else {}))
        port = server.http if kind == "http" else server.grpc
        with package.InferenceServerClient(f"127.0.0.1:{port}") as client:
            found = client.infer("words", [given], outputs=[wanted]).as_numpy("y")
            said = {} if kind == "http" else {"as_json": True}
            assert client.get_model_metadata("words", **said)["inputs"][0]["datatype"] == "BYTES"
            config = client.get_model_config("words", **said)
            assert config.get("config", config)["input"][0]["data_type"] == "TYPE_STRING"
        texts = [[text.decode() if isinstance(text, bytes) else text for text in row] for row in found]
        assert texts == WORDS

    def test_lists_of_bytes_over_grpc(self, server: Running) -> None:
        grpc = needed("grpc")
        request, response = (message_class(f"ModelInfer{word}") for word in ("Request", "Response"))
        words = [word.encode() for row in WORDS for word in row]
        tensor = {"name": "x", "datatype": "BYTES", "shape": [3, 2], "contents": {"bytes_contents": words}}
        with grpc.insecure_channel(f"127.0.0.1:{server.grpc}") as channel:
            ask = channel.unary_unary(f"/{SERVICE}/ModelInfer", request.SerializeToString, response.FromString)
            found = ask(request(model_name="words", inputs=[tensor]))
            assert list(found.outputs[0].contents.bytes_contents) == words
            tensor["contents"] = {"bytes_contents": [b"\xff"] * 6}
            with pytest.raises(grpc.RpcError, match="not valid UTF-8"):
                ask(request(model_name="words", inputs=[tensor]))

    @pytest.mark.parametrize("kind", ["http", "grpc"])
    def test_shared_memory(self, server: Running, kind: str) -> None:
        package = needed(f"tritonclient.{kind}")
        data = packed(encoded(array(WORDS)))
        memory = SharedMemory(create=True, size=2 * len(data) + 64)
        port = server.http if kind == "http" else server.grpc
        try:
            view = memoryview(cast("Any", memory.buf))
            view[: len(data)] = data
            with package.InferenceServerClient(f"127.0.0.1:{port}") as client:
                client.register_system_shared_memory("words", f"/{memory.name}", memory.size)
                given, wanted = package.InferInput("x", [3, 2], "BYTES"), package.InferRequestedOutput("y")
                given.set_shared_memory("words", len(data))
                wanted.set_shared_memory("words", len(data) + 60, len(data))
                client.infer("words", [given], outputs=[wanted])
                client.unregister_system_shared_memory("words")
            assert bytes(view[len(data) : 2 * len(data)]) == data
            view.release()
        finally:
            memory.close()
            memory.unlink()


@pytest.mark.parametrize("size", [1, 100, 5000])
@pytest.mark.parametrize("char", ["a", "é", "日", "😀"])
def test_strings_are_charged_by_their_widest_character(char: str, size: int) -> None:
    """Which makes all of them as wide, in bytes and in lists alike."""
    words = [char + "a" * size] * 20
    reader, charge = reader_of(Argument("x", STRING, ("N",))), Charge()
    data = packed(encoded(string_array(words)))
    given = finished(reader.of_bytes([20], data, 0, len(data), charge))
    contents = b"".join(finished(written("BYTES", words, 1 << 30, Charge())))
    other = Charge()
    listed = finished(reader.of_contents([20], Contents(contents, [(0, len(contents))]), other))
    taken = sum(map(sys.getsizeof, words))
    for strings, found in ((given, charge), (listed, other)):
        assert strings.tolist() == words
        assert taken <= found.size <= 2 * taken + 4000
