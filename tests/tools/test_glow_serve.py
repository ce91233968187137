"""`glow-serve`: a server as a process, as its users start, ask and end it."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from checkout import ROOT
from models import GraphBuilder, linear
from onnx import TensorProto
from running_servers import needed

from glow_mlir.tools.glow_serve import grpc_port_of, main, parse_arguments

pytestmark = pytest.mark.extra

DIGITS = ROOT / "examples" / "digits.onnx"
IMAGE = {"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0.5] * 64}


class Served:
    """A server that runs, and what it wrote."""

    def __init__(self, process: subprocess.Popen[str], ports: dict[str, int]) -> None:
        self.process = process
        self.ports = ports
        self.said = ""
        """What it wrote to stderr, when it has ended."""

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """The status and the data of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["http"], timeout=60)
        text = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, text, headers)
        response = connection.getresponse()
        found = response.read()
        connection.close()
        is_json = response.headers["content-type"] == "application/json"
        return response.status, json.loads(found) if is_json and found else found

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal, and wait."""
        self.process.send_signal(number)
        _, self.said = self.process.communicate(timeout=60)
        return self.process.returncode


def command(*arguments: str | Path) -> list[str]:
    """The command line of a server with those arguments."""
    for module in ("uvicorn", "httptools", "starlette", "grpc", "google.protobuf"):
        needed(module)
    return [sys.executable, "-m", "glow_mlir.tools.glow_serve", *map(str, arguments)]


@contextmanager
def served(*arguments: str | Path, **environment: str) -> Generator[Served]:
    """A server with those arguments, at free ports."""
    process = subprocess.Popen(
        command(*arguments, "--port", "0", "--grpc-port", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        ports: dict[str, int] = {}
        while len(ports) < 2 and (line := process.stdout.readline() if process.stdout else ""):
            protocol, _, number = line.strip().partition(": port ")
            ports[protocol] = int(number)
        found = Served(process, ports)
        assert len(ports) == 2, process.communicate()[1]
        yield found
    finally:
        process.kill()
        process.communicate()


def slow_model(path: Path) -> None:
    """A model that takes a while."""
    g = GraphBuilder(0)
    result = "x"
    for _ in range(60):
        result = g.node("Relu", linear(g, result, 512, 512))
    onnx.save(g.model({"x": (TensorProto.FLOAT, (2048, 512))}, {result: (2048, 512)}), path)


def test_a_model_is_served_and_the_server_ends() -> None:
    with served(DIGITS, "--batch", "4", "--bind", "N=1..4") as server:
        assert server.ask("/v2/health/ready") == (200, {"ready": True})
        status, found = server.ask("/v2/models/digits/infer", {"inputs": [IMAGE], "id": "7"})
        assert (status, found["id"], found["outputs"][0]["shape"]) == (200, "7", [1, 10])
        assert sum(found["outputs"][0]["data"]) == pytest.approx(1.0)
        status, text = server.ask("/metrics")
        assert b'glow_requests_total{model="digits",version="1",outcome="succeeded"} 1' in text
        assert server.ask("/v2/models/none")[0] == 404
        assert server.end() == 0
        addresses = [f"http://127.0.0.1:{server.ports['http']}", f"grpc://127.0.0.1:{server.ports['grpc']}"]
        lines = [*addresses, "model digits version 1: ready"]
        assert server.said.splitlines() == [f"glow-serve: {line}" for line in lines]


def test_why_a_model_is_not_ready_is_told_at_the_start(tmp_path: Path) -> None:
    for name, data in (("broken", b"junk"), ("whole", DIGITS.read_bytes())):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1" / "model.onnx").write_bytes(data)
    with served(tmp_path) as server:
        assert server.end() == 0
        broken, whole = server.said.splitlines()[-2:]
        assert broken.startswith("glow-serve: model broken version 1: not ready: model.onnx: is not an ONNX model")
        assert whole == "glow-serve: model whole version 1: ready"


def test_what_is_for_this_machine_alone_is_for_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--model-control", "--shared-memory"):
        assert main([str(DIGITS), "--host", "0.0.0.0", "--port", "0", "--no-grpc", option]) == 1
        assert "clients of other machines" in capsys.readouterr().err


def test_stock_clients_ask_it() -> None:
    clients = needed("tritonclient.grpc")
    with served(DIGITS, "--model-control") as server:
        client = clients.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}")
        given = clients.InferInput("image", [2, 1, 8, 8], "FP32")
        given.set_data_from_numpy(np.zeros((2, 1, 8, 8), np.float32))
        assert client.infer("digits", [given]).as_numpy("probabilities").shape == (2, 10)
        assert client.get_model_metadata("digits").name == "digits"
        client.unload_model("digits")
        assert not client.is_model_ready("digits")
        client.load_model("digits")
        assert client.is_model_ready("digits")
        client.close()
        assert server.end(signal.SIGINT) == 0


def free_port() -> int:
    """A port that nobody has now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


FULL = 1 << 16
"""Bytes of a log at the limit of the size of files."""


@contextmanager
def full_log(kind: str, path: Path) -> Generator[int]:
    """The descriptor of a log that takes nothing more, by a full disk or a limit that its writer has."""
    if kind == "limit":
        path.write_bytes(bytes(FULL))
    log = os.open(path if kind == "limit" else "/dev/full", os.O_WRONLY | os.O_APPEND)
    try:
        yield log
    finally:
        os.close(log)


def until_ready(server: Served) -> None:
    """Wait for a server that does not tell its port."""
    end = time.monotonic() + 60
    while True:
        try:
            assert server.ask("/v2/health/live")[0] == 200
            return
        except OSError:
            assert server.process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)


def ask_rudely(server: Served, statuses: list[int]) -> None:
    """Requests of which some are none, which are logged."""
    for number in range(50):
        if number % 5 == 0:
            with socket.create_connection(("127.0.0.1", server.ports["http"])) as rude:
                rude.sendall(b"no request at all\r\n\r\n")
                assert b" 400 " in rude.recv(100)
        statuses.append(server.ask("/v2/models/digits/infer", {"inputs": [IMAGE]})[0])


@pytest.mark.parametrize("kind", ["disk", "limit"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_full_disk_for_logs_ends_nothing(kind: str, tmp_path: Path) -> None:
    port, models = free_port(), tmp_path / "models"
    (models / "broken" / "1").mkdir(parents=True)
    (models / "broken" / "1" / "model.onnx").write_bytes(b"junk")  # Of which a warning tells.
    arguments = command(DIGITS, models, "--port", str(port), "--no-grpc")
    if kind == "limit":
        arguments = ["bash", "-c", f'ulimit -f {FULL >> 10}; exec "$@"', "bash", *arguments]
    with full_log(kind, tmp_path / "log") as log:
        process = subprocess.Popen(arguments, stdout=log, stderr=log)
    server, statuses = Served(process, {"http": port}), list[int]()  # pyright: ignore[reportArgumentType]
    try:
        until_ready(server)
        with ThreadPoolExecutor(8) as threads:
            for future in [threads.submit(ask_rudely, server, statuses) for _ in range(8)]:
                future.result(120)
        assert statuses == [200] * 400
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def test_requests_that_are_there_are_answered_when_it_ends(tmp_path: Path) -> None:
    slow_model(tmp_path / "slow.onnx")
    with served(tmp_path / "slow.onnx", "--calls", "1") as server:
        tensor = {"name": "x", "datatype": "FP32", "shape": [2048, 512], "data": [0.25] * (2048 * 512)}
        found: list[tuple[int, Any]] = []

        def ask() -> None:
            body = {"inputs": [tensor], "outputs": [{"name": "relu_179", "parameters": {"binary_data": True}}]}
            found.append(server.ask("/v2/models/slow/infer", body))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 60
        while b'outcome="succeeded"} 0' in server.ask("/metrics")[1] and time.monotonic() < end:
            time.sleep(0.001)
        assert server.end() == 0
        for thread in threads:
            thread.join(60)
        assert [status for status, _ in found] == [200] * 3


def test_who_lacks_the_token_is_refused(tmp_path: Path) -> None:
    grpc, clients = needed("grpc"), needed("tritonclient.grpc")
    (tmp_path / "token").write_text("secret\n")
    for arguments, environment in (
        (("--token-file", tmp_path / "token"), {}),
        ((), {"GLOW_SERVE_TOKEN": "secret"}),
    ):
        with served(DIGITS, *arguments, **environment) as server:
            assert server.ask("/v2/health/live")[0] == 200
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
                for path in ("/v2", "/metrics", "/v2/models/digits"):
                    assert server.ask(path, **headers)[0] == 401
                assert server.ask("/v2/models/digits/infer", {"inputs": [IMAGE]}, **headers)[0] == 401
            status, _ = server.ask("/v2/models/digits/infer", {"inputs": [IMAGE]}, Authorization="Bearer secret")
            assert status == 200
            client = clients.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}")
            assert client.is_server_live()
            with pytest.raises(Exception, match="has no valid token"):
                client.get_server_metadata()
            assert client.get_server_metadata(headers={"authorization": "Bearer secret"}).name == "glow"
            client.close()
            assert grpc.StatusCode.UNAUTHENTICATED


COMMAND = "openssl req -x509 -newkey rsa:2048 -nodes -days 1"


def test_tls(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("this machine has no openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [
            *COMMAND.split(),
            "-keyout",
            str(key),
            "-out",
            str(certificate),
            *subject,
        ],
        check=True,
        capture_output=True,
    )
    with served(DIGITS, "--tls-certificate", certificate, "--tls-key", key) as server:
        context = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", server.ports["http"], context=context, timeout=60)
        connection.request("GET", "/v2/models/digits")
        assert connection.getresponse().status == 200
        connection.close()
        with pytest.raises((http.client.HTTPException, OSError)):
            server.ask("/v2")
        assert server.end() == 0


WRONG = {
    "no such model": (["none.onnx"], "none.onnx: error: there is no such file or folder"),
    "junk": (["junk.onnx"], "junk.onnx: error: is not an ONNX model"),
    "port": (["digits.onnx", "--port", "70000"], "expected a port from 0"),
    "message": (["digits.onnx", "--max-message", "3G"], "expected bytes from 1 to 2G"),
    "adapter": (["digits.onnx", "--adapter", "poet=lora"], "--adapter needs one decoder of text"),
    "adapter without a name": (["digits.onnx", "--adapter", "lora"], "expected NAME=PATH"),
    "delay": (["digits.onnx", "--delay", "1"], "delay has no effect with batch=1"),
    "token": (["digits.onnx", "--token-file", "empty"], "empty: error: has no token"),
    "certificate": (["digits.onnx", "--tls-certificate", "empty"], "TLS needs a certificate and its key"),
    "key": (["digits.onnx", "--tls-certificate", "none", "--tls-key", "none"], "none: error: there is no such file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_in_a_line(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("uvicorn", "httptools", "starlette", "grpc"):
        needed(module)
    monkeypatch.chdir(tmp_path)
    shutil.copy(DIGITS, "digits.onnx")
    Path("junk.onnx").write_bytes(b"\x08junk" * 9)
    Path("empty").write_text("")
    arguments, reason = WRONG[case]
    extra = [] if "--port" in arguments else ["--port", "0"]
    assert main([*arguments, *extra, "--grpc-port", "0"]) == 1
    said = capsys.readouterr()
    assert reason in said.err
    assert said.err.count("\n") == 1
    assert not said.out


def test_a_port_that_another_has(capsys: pytest.CaptureFixture[str]) -> None:
    needed("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main([str(DIGITS), "--port", str(taken.getsockname()[1])]) == 1
    assert "cannot listen on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "has_models", "expected"),
    [
        ([], True, 8001),
        ([], False, None),
        (["--model-control"], False, 8001),
        (["--grpc-port", "9001"], False, 9001),
        (["--grpc-port", "9001", "--no-grpc"], True, None),
    ],
)
def test_grpc_is_not_there_for_decoders_of_text_alone(
    options: list[str], has_models: bool, expected: int | None
) -> None:
    assert grpc_port_of(parse_arguments(["model", *options]), has_models=has_models) == expected
