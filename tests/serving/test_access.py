"""Who may ask a server: heads that browsers send, control and shared memory for nobody unless that is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from asgi import Response, ask
from running_servers import needed
from served_models import FakeModels, repository

from glow_mlir.errors import OptionError
from glow_mlir.serving.access import HeadCheck, is_loopback, local_names
from glow_mlir.serving.errors import ForbiddenError, status_of
from glow_mlir.serving.http_app import HttpApp
from glow_mlir.serving.models import READY
from glow_mlir.serving.server import Addresses, Server
from glow_mlir.serving.service import TRACE, Service

BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}).encode()
JSON = {"Content-Type": "application/json"}
INFER, LOAD, UNLOAD = "/v2/models/echo/infer", "/v2/repository/models/half/load", "/v2/repository/models/half/unload"


@pytest.fixture
def models() -> Iterator[FakeModels]:
    found = repository()
    yield found
    found.close()


LOCAL = {"Host": "localhost:8000"}


def answer(
    models: FakeModels,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] = LOCAL,
    *,
    method: str = "POST",
    said: Mapping[str, Any] | None = None,
) -> Response:
    """What a server at this machine's address answers."""
    needed("starlette")
    service = Service(models, **(said or {}))
    service.check_reach("127.0.0.1")
    lengths = {"Content-Length": str(len(body))} if body else {}
    return asyncio.run(ask(HttpApp(service), path, [body], {**lengths, **headers}, method=method))


@pytest.mark.extra
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**LOCAL, **JSON}, 200),
        (LOCAL, 200),
        ({"Host": "127.0.0.1", **JSON}, 200),
        ({"Host": "[::1]:8000", **JSON}, 200),
        ({"Host": "LOCALHOST", **JSON}, 200),
        ({**LOCAL, **JSON, "Origin": "http://localhost:8000"}, 200),
        ({**LOCAL, "Content-Type": "application/json; charset=utf-8"}, 200),
        (JSON, 400),
        ({"Host": "evil.example", **JSON}, 403),
        ({"Host": "localhost.evil.example", **JSON}, 403),
        ({"Host": "", **JSON}, 403),
        ({**LOCAL, **JSON, "Origin": "https://evil.example"}, 403),
        ({**LOCAL, **JSON, "Origin": "http://localhost:3000"}, 403),
        ({**LOCAL, **JSON, "Origin": "null"}, 403),
        ({**LOCAL, "Content-Type": "text/plain"}, 415),
        ({**LOCAL, "Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({**LOCAL, "Content-Type": "multipart/form-data; boundary=application/json"}, 415),
        ({**LOCAL, "Origin": "http://localhost:8000"}, 415),
    ],
)
def test_heads_of_requests(models: FakeModels, headers: dict[str, str], status: int) -> None:
    assert answer(models, INFER, BODY, headers).status == status
    assert answer(models, UNLOAD, b"{}", headers, said={"control": True}).status == status
    is_loaded = "half" in [state.name for state in models.names() if state.state == READY]
    assert is_loaded == (status != 200)


@pytest.mark.extra
def test_other_names_are_for_others(models: FakeModels) -> None:
    check = HeadCheck(None)
    scope: dict[str, Any] = {"method": "POST", "http_version": "1.1"}
    headers = [(b"host", b"models.example"), (b"origin", b"https://pages.example")]
    check.check({**scope, "headers": headers}, dict(headers))
    assert answer(models, "/v2/health/live", method="GET").status == 200
    assert answer(models, "/", headers={"Host": "rebound.example"}, method="GET").status == 403


@pytest.mark.extra
def test_clients_control_nothing_unless_that_is_said(models: FakeModels) -> None:
    memory = "/v2/systemsharedmemory"
    paths = [LOAD, UNLOAD, f"{memory}/region/r/register", f"{memory}/unregister", f"{memory}/region/r/unregister"]
    for path in paths:
        found = answer(models, path, b"{}")
        assert (found.status, "--" in found.error) == (403, True)
    assert answer(models, f"{memory}/status", method="GET").status == 403
    extensions = answer(models, "/v2", method="GET").data["extensions"]
    assert not {"model_repository", "system_shared_memory"} & set(extensions)
    said = {"control": True, "shared_memory": True}
    assert answer(models, LOAD, b"{}", said=said).status == 200
    assert answer(models, f"{memory}/status", method="GET", said=said).data == []


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("", False),
    ],
)
def test_addresses_of_this_machine(host: str, is_local: bool) -> None:
    assert is_loopback(host) == is_local
    assert (local_names(host) is not None) == is_local


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"control": True}, "only with a token"),
        ({"shared_memory": True}, "cannot share memory"),
        ({"shared_memory": True, "token": "secret"}, "cannot share memory"),
        ({"control": True, "token": "secret"}, ""),
        ({}, ""),
    ],
)
def test_what_clients_of_other_machines_are_not_given(models: FakeModels, said: dict[str, Any], reason: str) -> None:
    service = Service(models, **said)
    if not reason:
        service.check_reach("0.0.0.0")
        assert service.names is None
        return
    with pytest.raises(OptionError, match=reason):
        Server(service, Addresses("0.0.0.0", 0, None))


def test_the_status_of_what_is_forbidden() -> None:
    assert status_of(ForbiddenError("no")) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize("is_listed", [False, True])
def test_settings_may_be_set_to_what_they_are(models: FakeModels, is_listed: bool) -> None:
    """In the form of HTTP and in that of gRPC, which has lists alone."""
    service = Service(models)
    for word, value in TRACE.items():
        plain = value[0] if isinstance(value, list) else value
        assert service.trace_settings("echo", {word: [plain] if is_listed else plain}) == TRACE
        for other in ("8", ["8"], ["8", plain], []):
            with pytest.raises(ForbiddenError, match=f"such as {word}"):
                service.trace_settings("echo", {word: other})
