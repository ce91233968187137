"""
Mutants of requests for inferences, over HTTP and gRPC, with numbers, bytes and strings, compressed and not.

Each gets an answer that is no fault of the server's, within limits of memory; health is asked meanwhile, and answered.
"""

from __future__ import annotations

import atexit
import gzip
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from fuzzing import Fuzzer
from request_server import LIMITS, NETWORKS

from glow_mlir.serving.charges import Charge
from glow_mlir.serving.contents import FIELD_TYPES, written
from glow_mlir.serving.datatypes import STRINGS, datatype_of
from glow_mlir.serving.grpc_messages import SERVICE, message_class
from glow_mlir.serving.steps import finished
from glow_mlir.serving.strings import packed
from glow_mlir.serving.wire import sized, varint
from glow_mlir.support.dtypes import STRING, named_dtype

SERVER = Path(__file__).with_name("request_server.py")

STUCK = 1.0
"""Seconds within which health is answered at worst, on a machine that does much else."""

FAULTS = {"INTERNAL", "UNKNOWN", "DATA_LOSS", "UNAVAILABLE", "500", "502", "504"}
"""What no request may be answered with."""

LENGTHS = (0, 1, 2, 3, 5, 8, 100, 2_000, 60_000, 700_000)
"""How many elements requests have, the fewest most often."""


@dataclass(frozen=True)
class Mutant:
    """A request: for which network, the body, the headers of HTTP, and the kind of it."""

    network: str
    kind: str
    body: bytes
    headers: dict[str, str]

    @property
    def is_grpc(self) -> bool:
        """Whether it goes over gRPC."""
        return self.kind.startswith("gRPC")


@dataclass
class Served:
    """The server that all mutants are sent to, and what was found of it."""

    process: subprocess.Popen[str]
    http: int
    grpc: int
    own: int
    """The bytes that it takes before the first of them."""
    folder: TemporaryDirectory[str]

    def take_down(self, seconds: list[float]) -> None:
        """Note how long health took."""
        with (Path(self.folder.name) / "seconds").open("a", encoding="ascii") as file:
            file.write("".join(f"{item:.6f}\n" for item in seconds))

    def report(self) -> str:
        """How health fared, and the most memory that there was."""
        seconds = np.loadtxt(Path(self.folder.name) / "seconds", ndmin=1)
        worst, last = np.quantile(seconds, 0.999) * 1e3, seconds.max() * 1e3
        most = (peak(self.process.pid) - self.own) >> 20
        health = f"health: asked {len(seconds)} times, 99.9 % within {worst:.1f} ms, all within {last:.1f} ms"
        return f"{health}; memory: {most} MiB, of {LIMITS.memory_bytes >> 20} MiB for requests"

    def end(self) -> None:
        """End it, and say what was found."""
        if (Path(self.folder.name) / "seconds").exists() and self.process.poll() is None:
            print(self.report(), flush=True)
        self.process.kill()
        self.process.wait()


def peak(pid: int) -> int:
    """The most bytes that a process had, with those that its children have."""
    found = _status(pid, "VmHWM")
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # It has ended.
            found += sum(_status(int(child), "VmRSS") for child in (thread / "children").read_text().split())
    return found


def _status(pid: int, word: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # It has ended.
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(word)), 0)


@cache
def served() -> Served:
    """The server, which ends with this process."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, close_fds=True
    )
    assert process.stdout is not None
    http_port, grpc_port = map(int, process.stdout.readline().split())
    found = Served(process, http_port, grpc_port, 0, TemporaryDirectory(prefix="glow-requests-"))
    owner = os.getpid()
    atexit.register(lambda: found.end() if os.getpid() == owner else None)
    _health(found)
    found.own = peak(process.pid)
    return found


def mutant(seed: int) -> Mutant:
    """The request of a seed, damaged in most cases."""
    random = Random(seed)
    name = random.choice(sorted(NETWORKS))
    dtype, shape = NETWORKS[name]
    count = LENGTHS[min(random.randrange(len(LENGTHS)), random.randrange(len(LENGTHS)))]
    if random.randrange(4) == 0 and dtype == "uint32":
        count = 8
    kind = random.choice(["JSON", "bytes", "gRPC contents", "gRPC bytes"])
    array = _elements(random, dtype, count)
    sizes = [count // 3, 3] if len(shape) == 2 else [count]
    body, headers = _WRITERS[kind](name, datatype_of(dtype), sizes, array[: int(np.prod(sizes))])
    if random.randrange(3):
        body = _damaged(random, body)
    if random.randrange(3) == 0:
        body, headers = _compressed(random, kind, body, headers)
    if headers and random.randrange(6) == 0:
        word = random.choice(sorted(headers))
        headers = {**headers, word: random.choice(["0", "-1", "7", str(len(body)), "9" * 30, "identity", ""])}
    return Mutant(name, kind, body, headers)


def _elements(random: Random, dtype: str, count: int) -> np.ndarray:
    numbers = np.random.default_rng(random.getrandbits(32))
    if dtype == STRING:
        found = np.empty(count, object)
        found[:] = [random.choice(["", "a", "Straße", "\0", "日本" * 3]) for _ in range(count)]
        return found
    return numbers.integers(0, 100, count).astype(named_dtype(dtype))


def _head(name: str, datatype: str, sizes: list[int], **said: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "datatype": datatype, "shape": sizes, **said}], "id": name}


def _as_json(name: str, datatype: str, sizes: list[int], array: np.ndarray) -> tuple[bytes, dict[str, str]]:
    return json.dumps(_head(name, datatype, sizes, data=array.tolist())).encode(), {}


def _raw(array: np.ndarray) -> bytes:
    return packed(item.encode() for item in array) if array.dtype == object else array.tobytes()


def _as_bytes(name: str, datatype: str, sizes: list[int], array: np.ndarray) -> tuple[bytes, dict[str, str]]:
    data = _raw(array)
    head = json.dumps(_head(name, datatype, sizes, parameters={"binary_data_size": len(data)})).encode()
    return head + data, {"Inference-Header-Content-Length": str(len(head))}


def _message(name: str, datatype: str, sizes: list[int], contents: bytes) -> bytes:
    item = message_class("InferTensor")(name="x", datatype=datatype, shape=sizes).SerializeToString()
    item += sized(5, len(contents)) + contents if contents else b""
    return message_class("ModelInferRequest")(model_name=name).SerializeToString() + sized(5, len(item)) + item


def _as_contents(name: str, datatype: str, sizes: list[int], array: np.ndarray) -> tuple[bytes, dict[str, str]]:
    if datatype not in FIELD_TYPES:
        return _as_raw(name, datatype, sizes, array)
    elements = array.tolist() if datatype == STRINGS else array
    return _message(name, datatype, sizes, b"".join(finished(written(datatype, elements, 1 << 30, Charge())))), {}


def _as_raw(name: str, datatype: str, sizes: list[int], array: np.ndarray) -> tuple[bytes, dict[str, str]]:
    data = _raw(array)
    return _message(name, datatype, sizes, b"") + sized(7, len(data)) + data, {}


_WRITERS: dict[str, Callable[[str, str, list[int], np.ndarray], tuple[bytes, dict[str, str]]]] = {
    "JSON": _as_json,
    "bytes": _as_bytes,
    "gRPC contents": _as_contents,
    "gRPC bytes": _as_raw,
}


def _pieces(random: Random) -> bytes:
    """Something to put into a request, short or long."""
    if random.randrange(8) == 0:
        return random.choice([b"[],", b"{},", b'"a":0,', b"0,", b" ", b"\x0a\0", b"\x2a\0", b"\1", b"\xff"]) * (
            1 << random.randrange(4, 22)
        )
    return random.choice(
        [
            random.randbytes(random.randrange(1, 9)),
            *(b"[", b"]", b"{", b'"', b",", b"null", b"1e999", b"NaN", b"-", b"9" * 400, b"\\u0000"),
            *(varint(random.getrandbits(64)), varint(1 << random.randrange(63)), sized(7, random.randrange(1 << 30))),
            *(b'"parameters":{"shared_memory_region":"r"},', b'"outputs":[],'),
        ]
    )


def _damaged(random: Random, body: bytes) -> bytes:
    """A body with some bytes that are others, gone, or there twice; near its beginning more often."""
    data = bytearray(body)
    for _ in range(random.randrange(1, 4)):
        place = random.randrange(min(len(data), random.choice([40, 200, len(data)])) + 1)
        what = random.randrange(4)
        if what == 0:
            data[place : place + 1] = random.randbytes(1)
        elif what == 1:
            data[place : place + random.choice([0, 0, 1, 3])] = _pieces(random)
        elif what == 2:
            del data[place : place + random.choice([1, 2, 50, len(data)])]
        else:
            data[place:place] = data[place : place + random.choice([1, 8, 1000])]
    return bytes(data[: 24 << 20])


def _compressed(random: Random, kind: str, body: bytes, headers: dict[str, str]) -> tuple[bytes, dict[str, str]]:
    """A body that was compressed, and perhaps damaged then."""
    if random.randrange(6) == 0:
        body += bytes(random.choice([1 << 20, 1 << 25]))
    name = random.choice(["gzip", "deflate"])
    data = gzip.compress(body, 1) if name == "gzip" else zlib.compress(body, 1)
    if random.randrange(4) == 0:
        data = _damaged(random, data)
    return data, headers if kind.startswith("gRPC") else {**headers, "Content-Encoding": name}


def check(seed: int) -> None:
    """Send the request of a seed; raises `AssertionError` for what is no answer, and for health that is late."""
    server, request = served(), mutant(seed)
    seconds: list[float] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set() or not seconds:
            seconds.append(_health(server))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        status = _over_grpc(server, request) if request.is_grpc else _over_http(server, request)
    finally:
        is_over.set()
        watcher.join()
    server.take_down(seconds)
    assert status not in FAULTS, status
    assert max(seconds) < STUCK, f"health was answered after {max(seconds):.2f} s"
    taken = peak(server.process.pid) - server.own
    assert taken < 2 * LIMITS.memory_bytes, f"the server took {taken >> 20} MiB"


def _health(server: Served) -> float:
    """The seconds after which health was answered."""
    begin = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=20)
    connection.request("GET", "/v2/health/live")
    assert connection.getresponse().status == 200
    connection.close()
    return time.perf_counter() - begin


def _over_http(server: Served, request: Mutant) -> str:
    """The status of an answer over HTTP."""
    said = {"Host": "127.0.0.1", "Content-Length": str(len(request.body)), **request.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in said.items())
    with socket.create_connection(("127.0.0.1", server.http), timeout=30) as connection:
        try:
            connection.sendall(
                f"POST /v2/models/{request.network}/infer HTTP/1.1\r\n{lines}\r\n".encode() + request.body
            )
        except (BrokenPipeError, ConnectionResetError):
            pass  # It was refused before all of it was sent.
        answer = http.client.HTTPResponse(connection)
        try:
            answer.begin()
            answer.read()
        except ConnectionResetError:
            return "413"
    return str(answer.status)


@cache
def _channel(port: int, process: int) -> Any:
    """The channel of this process, which is a fork."""
    import grpc

    return grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", -1)])


def _over_grpc(server: Served, request: Mutant) -> str:
    """The code of an answer over gRPC."""
    import grpc

    call = _channel(server.grpc, os.getpid()).unary_unary(f"/{SERVICE}/ModelInfer")
    try:
        call(request.body, timeout=30)
    except grpc.RpcError as error:
        found: Any = error
        return found.code().name
    return "OK"


def show(seed: int) -> str:
    """A line of a request."""
    request = mutant(seed)
    return (
        f"{request.kind} for '{request.network}', {len(request.body)} bytes, {request.headers}: {request.body[:200]!r}"
    )


STAGES = {"": Fuzzer(check, served, show)}
