"""
How late health is while a server has the largest requests, valid ones and others, over HTTP and gRPC.

    python benchmarks/health.py [--rounds 3] [--clients 2]

`glow-serve` serves a model of any number of codes. For each kind of request, so many clients send it so many times, one
after the other, while another process asks `/v2/health/live` all the time, of a new connection each. `99.9 %` and
`longest` are milliseconds, and so they are where no requests come, by what else the machine does; `memory` is what the
server and its processes took at most, beside what they have without requests.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from glow_mlir.serving.grpc_messages import SERVICE, message_class
from glow_mlir.serving.wire import sized

MIB = 1 << 20


@dataclass(frozen=True)
class Body:
    """What is sent: over HTTP with headers, or as a message of gRPC."""

    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    is_grpc: bool = False


def head(count: int, **fields: Any) -> bytes:
    """A request of so many codes, as JSON."""
    return json.dumps({"inputs": [{"name": "x", "datatype": "INT8", "shape": [count], **fields}]}).encode()


def valid_json() -> Body:
    """As many numbers as JSON may have."""
    text = head(10 * MIB, data=[0])
    return Body(text.replace(b"[0]", b"[" + b"12," * (10 * MIB - 1) + b"12]"))


def brackets() -> Body:
    """A short body that becomes 31 MiB of lists."""
    text = head(4, data=[0]).replace(b"[0]", b"[" + b"[]," * (31 * MIB // 3) + b"0]")
    return Body(gzip.compress(text, 6), {"Content-Encoding": "gzip"})


def binary() -> Body:
    """As many codes as a body may have."""
    count = 255 * MIB
    text = head(count, parameters={"binary_data_size": count})[:-1] + b',"parameters":{"binary_data_output":true}}'
    return Body(text + bytes(count), {"Inference-Header-Content-Length": str(len(text))})


def numbers_for_bytes() -> Body:
    """Codes as bytes, which are answered as JSON."""
    count = 16 * MIB
    text = head(count, parameters={"binary_data_size": count})
    return Body(text + bytes(count), {"Inference-Header-Content-Length": str(len(text))})


def zeros() -> Body:
    """A short body that becomes more than may be."""
    return Body(gzip.compress(bytes(300 * MIB), 1), {"Content-Encoding": "gzip"})


def message(count: int, contents: bytes, raw: bytes = b"") -> bytes:
    """A message of gRPC with so many codes."""
    item = message_class("InferTensor")(name="x", datatype="INT8", shape=[count]).SerializeToString()
    item += sized(5, len(contents)) + contents if contents else b""
    found = message_class("ModelInferRequest")(model_name="codes").SerializeToString() + sized(5, len(item)) + item
    return found + sized(7, len(raw)) + raw if raw else found


def contents(count: int) -> bytes:
    """So many codes as numbers."""
    return sized(2, count) + b"\1" * count


KINDS: dict[str, Callable[[], Body | None]] = {
    "none": lambda: None,
    "JSON, 30 MiB, valid": valid_json,
    "gzip of 31 MiB of brackets": brackets,
    "gzip of 300 MiB of zeros": zeros,
    "255 MiB of bytes, valid": binary,
    "16 MiB of bytes for JSON": numbers_for_bytes,
    "gRPC, 31 MiB of numbers": lambda: Body(message(31 * MIB, contents(31 * MIB)), is_grpc=True),
    "gRPC, gzip of those": lambda: Body(gzip.compress(message(31 * MIB, contents(31 * MIB)), 6), is_grpc=True),
    "gRPC, gzip of 200 MiB": lambda: Body(gzip.compress(message(200 * MIB, contents(200 * MIB)), 1), is_grpc=True),
    "gRPC, 31 MiB of bytes": lambda: Body(message(31 * MIB, b"", bytes(31 * MIB)), is_grpc=True),
}


def look(port: int, pipe: Connection) -> None:
    """Ask for health until somebody says something: the seconds that each answer took."""
    found: list[float] = []
    while not pipe.poll():
        begin = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", "/v2/health/live")
        connection.getresponse().read()
        connection.close()
        found.append(time.perf_counter() - begin)
        time.sleep(0.002)
    pipe.send(found)


def send(body: Body, ports: tuple[int, int]) -> str:
    """The status of an answer."""
    if not body.is_grpc:
        connection = http.client.HTTPConnection("127.0.0.1", ports[0], timeout=120)
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request("POST", "/v2/models/codes/infer", body.data, dict(body.headers))
            answer = connection.getresponse()
            answer.read()
            return str(answer.status)
        except ConnectionResetError:
            return "reset"
        finally:
            connection.close()
    import grpc

    limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{ports[1]}", options=limits) as channel:
        try:
            channel.unary_unary(f"/{SERVICE}/ModelInfer")(body.data, timeout=120)
        except grpc.RpcError as error:
            found: Any = error
            return found.code().name
    return "OK"


def sent(kind: str, ports: tuple[int, int], rounds: int, pipe: Connection) -> None:
    """Send a request so many times, in a process that makes it: the statuses of the answers."""
    body = KINDS[kind]()
    pipe.send("ready")
    pipe.recv()
    if body is None:
        time.sleep(2.0)
    pipe.send([] if body is None else [send(body, ports) for _ in range(rounds)])


class Memory:
    """The most memory that a process and its children have, by a thread that looks 50 times a second."""

    def __init__(self, pid: int) -> None:
        self.most = 0
        self._pid = pid
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self.most = max(self.most, self.now())
            time.sleep(0.02)

    def now(self) -> int:
        """The bytes that they have now."""
        found = resident(self._pid)
        with contextlib.suppress(OSError):  # It, or a thread, has ended.
            for thread in Path(f"/proc/{self._pid}/task").iterdir():
                found += sum(map(resident, map(int, (thread / "children").read_text().split())))
        return found


def resident(pid: int) -> int:
    """The bytes that a process has in memory."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def write_model(path: Path) -> None:
    """A model of any number of codes."""
    values = [helper.make_tensor_value_info(name, TensorProto.INT8, ["N"]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "codes", values[:1], values[1:])
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)]), path)


def measure(kind: str, ports: tuple[int, int], args: argparse.Namespace) -> tuple[set[str], np.ndarray]:
    """The statuses of a kind of request, and how long health took meanwhile."""
    processes = multiprocessing.get_context("spawn")
    clients: list[Any] = []
    for _ in range(args.clients):
        own, other = processes.Pipe()
        processes.Process(target=sent, args=(kind, ports, args.rounds, other), daemon=True).start()
        clients.append(own)
    for client in clients:
        client.recv()
    asker, other = processes.Pipe()
    processes.Process(target=look, args=(ports[0], other), daemon=True).start()
    time.sleep(1.5)  # Until it looks.
    for client in clients:
        client.send("begin")
    statuses = {status for client in clients for status in client.recv()}
    asker.send("end")
    return statuses, np.array(asker.recv())


def main() -> None:
    """Measure all kinds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder) / "codes.onnx")
        command = [sys.executable, "-m", "glow_mlir.tools.glow_serve", f"{folder}/codes.onnx"]
        server = subprocess.Popen([*command, "--port", "0", "--grpc-port", "0"], stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        ports = (int(server.stdout.readline().split()[-1]), int(server.stdout.readline().split()[-1]))
        memory, seconds = Memory(server.pid), list[np.ndarray]()
        own = memory.now()
        print(f"{'request':28} {'answers':22} {'asked':>6} {'median':>7} {'99.9 %':>7} {'longest':>7} {'memory':>9}")
        for kind in KINDS:
            memory.most = 0
            statuses, found = measure(kind, ports, args)
            seconds.append(found)
            show(kind, ", ".join(sorted(statuses)), found, memory.most - own)
        show("all", "", np.concatenate(seconds), 0)
        server.terminate()
        server.wait()


def show(kind: str, statuses: str, seconds: np.ndarray, memory: int) -> None:
    """Print a line."""
    middle, most, longest = (1e3 * np.quantile(seconds, share) for share in (0.5, 0.999, 1.0))
    size = f"{memory >> 20} MiB" if memory else ""
    print(f"{kind:28} {statuses:22} {len(seconds):6} {middle:7.1f} {most:7.1f} {longest:7.1f} {size:>9}", flush=True)


if __name__ == "__main__":
    main()
