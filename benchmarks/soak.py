"""
A server under load for a while: whether its memory grows, with the confidence of that, and how long requests take.

    python benchmarks/soak.py [--minutes 15] [--clients 8]
    python benchmarks/soak.py --generator model.gguf

It needs the extra `serve`. Clients ask for one or two samples, give up some requests, and load and unload a model. With
`--generator`, they ask a decoder of text for streams of OpenAI's API, and leave one of five before its end.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from models import GraphBuilder, linear
from onnx import TensorProto

WORDS = "the light of an old house by the sea was seen from far away".split()

WARM = 60.0
"""Seconds whose memory does not count: pools and caches fill."""


def save(path: Path) -> None:
    """A small perceptron of any batch."""
    g = GraphBuilder(0)
    result = g.node("Relu", linear(g, g.node("Relu", linear(g, "x", 784, 256)), 256, 10))
    path.parent.mkdir(parents=True)
    onnx.save(g.model({"x": (TensorProto.FLOAT, ("N", 784))}, {result: ("N", 10)}), path)


def body_of(rows: int) -> tuple[bytes, dict[str, str]]:
    """A request with binary tensors, and its headers."""
    data = np.random.default_rng(rows).standard_normal((rows, 784), np.float32).tobytes()
    tensor = {"name": "x", "datatype": "FP32", "shape": [rows, 784], "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return head + data, {"Inference-Header-Content-Length": str(len(head))}


class Load:
    """Clients that ask until they are told to end: for inference, or a decoder of text for streams."""

    def __init__(self, port: int, clients: int, *, streams: bool) -> None:
        self.latencies: list[float] = []
        self.failures: list[str] = []
        self.left = 0
        """The number of streams that a client left."""
        self.ended = threading.Event()
        self._port = port
        ask = self._stream if streams else self._ask
        self._threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(clients)]
        if not streams:
            self._threads.append(threading.Thread(target=self._reload))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for thread in self._threads:
            thread.join()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)

    def _ask(self, seed: int) -> None:
        rng, bodies, connection = random.Random(seed), [body_of(rows) for rows in (1, 2)], self._connection()
        while not self.ended.is_set():
            body, headers = rng.choice(bodies)
            begin = time.perf_counter()
            connection.request("POST", "/v2/models/net/infer", body, headers)
            if rng.random() < 0.001:  # Gone before the answer.
                connection.close()
                connection = self._connection()
                continue
            answer = connection.getresponse()
            answer.read()
            self.latencies.append(time.perf_counter() - begin)
            if answer.status != 200:
                self.failures.append(f"{answer.status}")

    def _stream(self, seed: int) -> None:
        rng = random.Random(seed)
        while not self.ended.is_set():
            question = " ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 60)))
            data = {
                "model": "generator",
                "messages": [{"role": "user", "content": question}],
                "max_tokens": rng.randint(1, 40),
                "temperature": rng.choice([0, 0.7]),
                "stream": True,
            }
            begin, connection = time.perf_counter(), self._connection()
            connection.request("POST", "/v1/chat/completions", json.dumps(data), {"content-type": "application/json"})
            answer = connection.getresponse()
            if rng.random() < 0.2:
                answer.read(rng.randint(1, 900))
                self.left += 1
            elif b"[DONE]" not in (text := answer.read()) or answer.status != 200:
                self.failures.append(f"{answer.status} {text[-80:]!r}")
            else:
                self.latencies.append(time.perf_counter() - begin)
            connection.close()

    def _reload(self) -> None:
        while not self.ended.wait(10):
            connection = self._connection()
            for what in ("load", "unload"):
                connection.request("POST", f"/v2/repository/models/other/{what}", b"{}")
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    self.failures.append(f"{what}: {answer.status}")
            connection.close()


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))


def slope(times: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """How much values grow in a unit of time, and half of the interval that has the slope with 95 % confidence."""
    # Neighbours are alike: means of blocks are not.
    x, y = (np.array([float(block.mean()) for block in np.array_split(array, 30)]) for array in (times, values))
    found, start = (float(value) for value in np.polyfit(x, y, 1))
    error = np.sqrt(((y - found * x - start) ** 2).sum() / (len(x) - 2) / ((x - x.mean()) ** 2).sum())
    return found, float(2.05 * error)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--generator", type=Path, metavar="MODEL", help="a .gguf file, or a folder of safetensors")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.generator is None:
            for name in ("net", "other"):
                save(Path(folder) / name / "1" / "model.onnx")
            served = [folder, "--batch", "8"]
        else:
            served = [f"generator={args.generator}", "--context", "1024"]
        command = [sys.executable, "-m", "glow_mlir.tools.glow_serve", *served, "--port", "0", "--no-grpc"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline().rpartition(" ")[2])
            times: list[float] = []
            memory: list[int] = []
            begin = time.monotonic()
            with Load(port, args.clients, streams=args.generator is not None) as load:
                while (now := time.monotonic() - begin) < args.minutes * 60:
                    times.append(now)
                    memory.append(resident(server.pid))
                    time.sleep(0.5)
            server.terminate()
    kept = np.array(times) > min(WARM, args.minutes * 20)
    grows, error = slope(np.array(times)[kept] / 3600, np.array(memory)[kept] / 2**20)
    p50, p99, p999 = (float(np.percentile(load.latencies, percent)) * 1e3 for percent in (50, 99, 99.9))
    failed = f"{len(load.failures)} failed {load.failures[:3]}"
    first, last = memory[0] / 2**20, memory[-1] / 2**20
    left = f", {load.left:,} left before their end" if load.left else ""
    print(f"{len(load.latencies):,} requests in {args.minutes:g} minutes, {failed}{left}")
    print(f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, p99.9 {p999:.2f} ms")
    print(f"memory {first:.1f} → {last:.1f} MiB; it grows {grows:+.2f} ± {error:.2f} MiB an hour")


if __name__ == "__main__":
    main()
