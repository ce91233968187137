"""The clients of the protocol itself, `open-inference-openapi` and `open-inference-grpc`, made from its text."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from running_servers import Running, needed, running

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore")]

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.full((2, 4), 10, np.float32)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.fixture
def package() -> Any:
    """The package of the client of HTTP."""
    needed("open_inference.openapi.client")
    return needed("open_inference.openapi")


@pytest.fixture
def client(server: Running, package: Any) -> Iterator[Any]:
    """The client of HTTP."""
    with needed("httpx").Client() as connections:
        yield package.client.OpenInferenceClient(base_url=f"http://127.0.0.1:{server.http}", httpx_client=connections)


def request(package: Any, name: str = "a") -> Any:
    """Inputs of `sums`, of which the first has a name."""
    given = [
        package.RequestInput(name=name, shape=list(array.shape), datatype="FP32", data=array.ravel().tolist())
        for name, array in ((name, A), ("b", B))
    ]
    return package.InferenceRequest(id="seven", inputs=given)


def test_http_has_what_its_client_expects(client: Any, package: Any) -> None:
    client.check_server_liveness()
    client.check_server_readiness()
    client.check_model_readiness("sums")
    client.check_model_version_readiness("sums", "3")
    assert client.read_server_metadata().name == "glow"
    for metadata in (client.read_model_metadata("sums"), client.read_model_version_metadata("sums", "3")):
        assert (metadata.name, metadata.versions) == ("sums", ["3"])
        assert next((item.name, item.datatype, item.shape) for item in metadata.inputs) == ("a", "FP32", [-1, 4])
    for found in (
        client.model_infer("sums", request=request(package)),
        client.model_version_infer("sums", "3", request=request(package)),
    ):
        assert (found.model_name, found.model_version, found.id) == ("sums", "3", "seven")
        data = {item.name: np.reshape(item.data.__root__, item.shape) for item in found.outputs}
        np.testing.assert_array_equal(data["sum"], A + B)
        np.testing.assert_array_equal(data["difference"], A - B)
    with pytest.raises(package.BadRequestError, match="there is no input 'z'"):
        client.model_infer("sums", request=request(package, "z"))


def test_http_has_what_its_asynchronous_client_expects(server: Running, package: Any) -> None:
    async def ask() -> Any:
        address = f"http://127.0.0.1:{server.http}"
        async with needed("httpx").AsyncClient() as connections:
            client = package.client.AsyncOpenInferenceClient(base_url=address, httpx_client=connections)
            await client.check_server_readiness()
            return await client.model_infer("sums", request=request(package))

    found = asyncio.run(ask())
    assert [item.name for item in found.outputs] == ["sum", "difference"]


def test_grpc_has_what_its_stub_expects(server: Running) -> None:
    if find_spec("open_inference.grpc") is None:
        pytest.skip("its package is not installed")
    # In a process of its own: its messages have the names of those of other clients.
    command = [sys.executable, str(ROOT / "tests" / "support" / "open_inference_stub.py"), str(server.grpc)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
