"""Clients that would have responses compressed, and such as do not read them."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from running_servers import Running, running, until

from glow_mlir.serving.connections import ConnectionLimits
from glow_mlir.serving.http_bodies import accepted_encoding
from glow_mlir.serving.service import Limits

BYTES = 24 << 20
"""Of a response that is not read: more than lies with the system."""


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    limits = Limits(memory_bytes=4 * BYTES)
    with running(limits=limits, connections=ConnectionLimits(read_seconds=1.5)) as found:
        yield found


def request_of(rows: int, *, is_binary: bool = True) -> tuple[bytes, dict[str, str]]:
    """A request for as many numbers as it has, and its headers."""
    said: dict[str, Any] = {"binary_data_size": 12 * rows} if is_binary else {}
    item: dict[str, Any] = {"name": "x", "datatype": "FP32", "shape": [rows, 3], "parameters": said}
    data = np.zeros((rows, 3), np.float32)
    if not is_binary:
        item["data"] = data.reshape(-1).tolist()
    head = json.dumps({"inputs": [item], "parameters": {"binary_data_output": is_binary}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))} if is_binary else {}
    return head + (data.tobytes() if is_binary else b""), headers


def response(server: Running, rows: int, accepts: str, *, is_binary: bool = True) -> tuple[Any, bytes]:
    """The headers and the body of a response to a client that accepts encodings."""
    body, headers = request_of(rows, is_binary=is_binary)
    connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=20)
    connection.request("POST", "/v2/models/echo/infer", body, {**headers, "Accept-Encoding": accepts})
    found = connection.getresponse()
    assert found.status == 200, found.read()
    data = found.read()
    connection.close()
    return found.headers, data


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        (b"gzip", b"gzip"),
        (b"deflate", b"deflate"),
        (b"gzip, deflate, br", b"gzip"),
        (b"br", b""),
        (b"", b""),
        (b"identity", b""),
        (b"*", b"gzip"),
        (b"*;q=0", b""),
        (b"GZIP;q=0, Deflate", b"deflate"),
        (b"gzip;q=0.2,deflate;q=0.9", b"deflate"),
        (b"gzip;q=0.2, identity;q=0.9", b""),
        (b"gzip;q=high", b""),
        (b";;,,q=", b""),
    ],
)
def test_what_a_client_would_have(header: bytes, encoding: bytes) -> None:
    assert accepted_encoding(header) == encoding


INFLATING: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "deflate": zlib.decompress}


@pytest.mark.extra
@pytest.mark.parametrize("encoding", INFLATING)
@pytest.mark.parametrize("is_binary", [False, True])
@pytest.mark.parametrize("rows", [100, 20_000])
def test_responses_are_compressed(server: Running, encoding: str, is_binary: bool, rows: int) -> None:
    headers, data = response(server, rows, encoding, is_binary=is_binary)
    assert headers["content-encoding"] == encoding
    assert len(data) < 6 * rows
    plain, expected = response(server, rows, "identity", is_binary=is_binary)
    assert plain["content-encoding"] is None
    assert INFLATING[encoding](data) == expected
    for name in ("content-type", "inference-header-content-length"):
        assert headers[name] == plain[name]


@pytest.mark.extra
def test_what_is_short_is_sent_as_it_is(server: Running) -> None:
    headers, _ = response(server, 1, "gzip")
    assert headers["content-encoding"] is None


def deaf_client(server: Running) -> socket.socket:
    """A client that asks for a long response, and reads none of it."""
    body, headers = request_of(BYTES // 12)
    found = socket.create_connection(("127.0.0.1", server.http), timeout=20)
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**headers, "Content-Length": len(body)}.items())
    found.sendall(f"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n{lines}\r\n".encode() + body)
    return found


@pytest.mark.extra
def test_who_does_not_read_takes_bounded_memory_for_a_while(server: Running) -> None:
    service = server.service
    clients: list[socket.socket] = []
    try:
        for number in range(4):
            clients.append(deaf_client(server))
            assert until(lambda count=number + 1: service.held_bytes > (count - 0.5) * BYTES or count > 3)
            # Others are served meanwhile.
            begin = time.perf_counter()
            assert len(response(server, 10, "identity")[1]) > 120
            assert time.perf_counter() - begin < 1.0
        assert service.held_bytes <= service.limits.memory_bytes
        assert until(lambda: service.held_bytes == 0)
    finally:
        for client in clients:
            client.close()
    assert len(response(server, BYTES // 12, "identity")[1]) > BYTES


@pytest.mark.extra
def test_who_reads_slowly_has_all_of_it(server: Running) -> None:
    with deaf_client(server) as client:
        read, begin = 0, time.monotonic()
        while time.monotonic() - begin < 3.0:  # Twice as long as a client may read nothing.
            read += len(client.recv(1 << 16))
            time.sleep(0.1)
        while read < BYTES and (data := client.recv(1 << 20)):
            read += len(data)
    assert read >= BYTES  # Else the server ended the connection.
    assert until(lambda: server.service.held_bytes == 0)
