"""The server of HTTP on a port: all that is no inference, and connections that do what they should not."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from running_servers import Running, running

from glow_mlir.errors import OptionError
from glow_mlir.serving.connections import ConnectionLimits
from glow_mlir.serving.service import Limits

pytestmark = pytest.mark.extra

BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]})


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    limits = Limits(body_bytes=1 << 20, body_seconds=0.5)
    connections = ConnectionLimits(connections=64, header_bytes=4096, header_seconds=0.5)
    with running(limits=limits, connections=connections, metrics=lambda: "glow_requests 7\n") as found:
        yield found


def asked(server: Running, method: str, path: str, body: str | None = None) -> tuple[int, Any]:
    """The status and the data of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=20)
    connection.request(method, path, body)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    is_json = response.headers["content-type"] == "application/json"
    return response.status, json.loads(text) if is_json else text


def test_the_server_itself(server: Running) -> None:
    assert asked(server, "GET", "/v2/health/live") == (200, {"live": True})
    assert asked(server, "GET", "/v2/health/ready") == (200, {"ready": True})
    status, data = asked(server, "GET", "/v2")
    assert (status, data["name"]) == (200, "glow")
    assert "binary_tensor_data" in data["extensions"]
    server.service.is_open = False
    assert asked(server, "GET", "/v2/health/ready")[0] == 503
    server.service.is_open = True


def test_metrics(server: Running) -> None:
    assert asked(server, "GET", "/metrics") == (200, b"glow_requests 7\n")


def test_models(server: Running) -> None:
    status, data = asked(server, "GET", "/v2/models/sums")
    assert status == 200
    assert data["versions"] == ["3"]
    assert data["inputs"][0] == {"name": "a", "datatype": "FP32", "shape": [-1, 4]}
    assert asked(server, "GET", "/v2/models/sums/versions/3")[1] == data
    assert asked(server, "GET", "/v2/models/sums/versions/3/ready")[0] == 200
    status, data = asked(server, "GET", "/v2/models/sums/config")
    assert data["max_batch_size"] == 8
    assert data["output"][1] == {"name": "difference", "data_type": "TYPE_FP32", "dims": [4]}
    assert asked(server, "GET", "/v2/models/sums/stats")[1]["model_stats"][0]["name"] == "sums"
    assert len(asked(server, "GET", "/v2/models/stats")[1]["model_stats"]) == 6


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v2/models/nothing", 404),
        ("GET", "/v2/models/nothing/ready", 404),
        ("GET", "/v2/models/sums/versions/4/config", 404),
        ("GET", "/v2/models/../../etc/passwd", 404),
        ("GET", "/v2/models/%2e%2e%2fx", 404),
        ("GET", "/v3", 404),
        ("GET", "/v1", 404),
        ("DELETE", "/v2/models/sums", 405),
        ("GET", "/v2/models/sums/infer", 404),
        ("POST", "/v2/repository/models/nothing/load", 404),
        ("POST", "/v2/repository/models/nothing/unload", 404),
        ("GET", "/v2/systemsharedmemory/region/nothing/status", 400),
        ("POST", "/v2/systemsharedmemory/region/nothing/register", 400),
        ("GET", "/v2/cudasharedmemory/region/nothing/status", 400),
        ("POST", "/v2/cudasharedmemory/region/nothing/register", 501),
        ("POST", "/v2/models/nothing/infer", 404),
    ],
)
def test_what_there_is_not(server: Running, method: str, path: str, status: int) -> None:
    found, data = asked(server, method, path)
    assert found == status
    assert data["error"]


def test_load_and_unload(server: Running) -> None:
    assert asked(server, "POST", "/v2/repository/models/half/unload", "{}") == (200, {})
    assert asked(server, "GET", "/v2/models/half/ready")[0] == 404
    states = {item["name"]: item["state"] for item in asked(server, "POST", "/v2/repository/index")[1]}
    assert (states["half"], states["sums"]) == ("UNAVAILABLE", "READY")
    ready = asked(server, "POST", "/v2/repository/index", '{"ready": true}')[1]
    assert "half" not in [item["name"] for item in ready]
    body = json.dumps({"parameters": {"config": '{"max_batch_size": 4}'}})
    assert asked(server, "POST", "/v2/repository/models/half/load", body) == (200, {})
    assert server.models.configs[-1] == {"max_batch_size": 4}
    assert asked(server, "GET", "/v2/models/half/ready")[0] == 200


@pytest.mark.parametrize(
    "body", ["[]", "{", '{"parameters": 7}', '{"parameters": {"config": "7"}}', '{"parameters": {"file:1/m": "AA=="}}']
)
def test_loads_that_are_refused(server: Running, body: str) -> None:
    assert asked(server, "POST", "/v2/repository/models/half/load", body)[0] == 400


def test_one_connection_has_many_requests(server: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=20)
    for _ in range(20):
        connection.request("POST", "/v2/models/echo/infer", BODY)
        assert json.loads(connection.getresponse().read())["outputs"][0]["data"] == [1, 2, 3]
    connection.close()


def raw(server: Running, data: bytes, *, until_closed: bool = True) -> bytes:
    """What the server answers to bytes; it has to end the connection, if that is wanted."""
    with socket.create_connection(("127.0.0.1", server.http), timeout=20) as connection:
        connection.sendall(data)
        found = b""
        while until_closed or b"\r\n\r\n" not in found:
            part = connection.recv(65536)
            if not part:
                break
            found += part
    return found


POST = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (POST + b"Content-Length: 1000000000000\r\n\r\n", b"413"),
        (POST + b"Content-Length: 1000000000000000000000000\r\n\r\n", b"400"),
        (POST + b"Content-Length: 500\r\n\r\n{", b"408"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b" " * 65536 + b"\r\n", b"408"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 17, b"413"),
        (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b"400"),
        (b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 10_000, b"431"),
        (b"\0\1\2\3\r\n\r\n", b"400"),
        (b"POST /\xff HTTP/1.1\r\n\r\n", b"400"),
    ],
)
def test_requests_that_end_their_connection(server: Running, data: bytes, status: bytes) -> None:
    assert raw(server, data).startswith(b"HTTP/1.1 " + status)
    assert asked(server, "GET", "/v2/health/live")[0] == 200


@pytest.mark.parametrize("data", [b"", b"POST /v2", POST])
def test_heads_that_do_not_come(server: Running, data: bytes) -> None:
    assert raw(server, data) == b""


@pytest.mark.parametrize("path", [b"/v2/models/nothing/infer", b"/v3"])
def test_bodies_that_are_refused_and_do_not_end(server: Running, path: bytes) -> None:
    head = b"POST " + path + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
    assert raw(server, head).startswith(b"HTTP/1.1 404")


def test_a_client_that_goes(server: Running) -> None:
    body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}).encode()
    network = server.models.find("slow")
    network.cancelled.clear()
    with socket.create_connection(("127.0.0.1", server.http), timeout=20) as connection:
        head = b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
        connection.sendall(head + body)
        time.sleep(0.1)
    assert network.cancelled.wait(10)


def test_more_connections_than_may_be(server: Running) -> None:
    connections: list[socket.socket] = []
    try:
        for _ in range(80):
            connections.append(socket.create_connection(("127.0.0.1", server.http), timeout=20))
    finally:
        for connection in connections:
            connection.close()
    for _ in range(100):
        try:
            assert asked(server, "GET", "/v2/health/live")[0] == 200
            break
        except OSError:
            time.sleep(0.05)
    else:
        pytest.fail("the server takes no connection")


def test_a_port_that_is_taken(server: Running) -> None:
    from glow_mlir.serving.http_server import HttpServer

    with pytest.raises(OptionError, match="cannot listen on"):
        HttpServer(server.service, "127.0.0.1", server.http)


def test_requests_that_run_are_answered_when_it_ends() -> None:
    body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]})
    with running(grace=10) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=20)
        connection.request("POST", "/v2/models/slow/infer", body)
        time.sleep(0.2)
    assert connection.getresponse().status == 200
    connection.close()


def test_requests_that_take_too_long_get_an_error_when_it_ends() -> None:
    body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]})
    with running(grace=0.1) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=20)
        connection.request("POST", "/v2/models/slow/infer", body)
        time.sleep(0.2)
    assert connection.getresponse().status == 503
    connection.close()


def test_the_page_shows_what_the_models_do() -> None:
    with running() as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=30)
        connection.request("GET", "/")
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.headers["content-type"].startswith("text/html")
        assert 'fetch("statistics")' in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        connection.request("GET", "/statistics")
        found = json.loads(connection.getresponse().read())
        assert {"name", "version", "waiting", "succeeded"} <= found["models"][0].keys()
        assert found["generators"] == []
        connection.close()


def test_networks_get_requests_in_the_order_of_a_connection(server: Running) -> None:
    """Also those that come before the ones in front of them are answered, and are shorter."""
    network = server.models.find("words")
    network.requests.clear()
    sent = b""
    for rows in (2000, 1, 1):
        item = {"name": "x", "datatype": "BYTES", "shape": [rows, 2], "data": ["ab"] * (2 * rows)}
        parameters = {"sequence_id": 7, "priority": rows}
        body = json.dumps({"inputs": [item], "parameters": parameters}).encode()
        sent += b"POST /v2/models/words/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    sent += b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.http), timeout=20) as client:
        client.sendall(sent)
        found = b""
        while data := client.recv(1 << 16):
            found += data
    assert found.count(b"HTTP/1.1 200") == 4
    assert [request["priority"] for request in network.requests] == [2000, 1, 1]
