"""
What a request costs a server: `glow-serve` beside mlserver and Triton from PyPI, with a small perceptron.

    python benchmarks/serving.py [--mlserver PYTHON] [--pytriton PYTHON]

Each PYTHON is that of an environment with the server (`pip install mlserver 'uvloop<0.22'`, `pip install
nvidia-pytriton`), and with onnxruntime, or else numpy computes. Triton wants the Python of the system, of version 3.11.
In each round every server is started, asked by `glow-bench` over HTTP and gRPC with each number of clients, and ended;
the figures are medians of the rounds. `µs` are of the processor, of all processes of the server, for one request;
`ratio` is that to glow-serve's over the same protocol, and over HTTP to that with binary tensors. A measurement waits
until the rest of the machine is quiet, and is said to be disturbed where that does not happen.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from models import GraphBuilder, linear
from onnx import TensorProto, numpy_helper

from glow_mlir.tools.reports.process_times import cpu_seconds, spent

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "benchmarks" / "peer_servers"

SIZES = (784, 512, 256, 10)
"""The width of the input, and of each layer."""

OURS = "glow-serve"

PATIENCE = 90.0
"""Seconds until a server has to be ready."""

QUIET, LOOKS = 0.15, 20
"""The share of a core that others may take in a second, and how many seconds to wait for that."""


@dataclass(frozen=True)
class Way:
    """How a server is asked: the scheme of its address, and tensors as bytes or as numbers."""

    scheme: str
    tensors: str

    def __str__(self) -> str:
        return f"{'HTTP' if self.scheme == 'http' else 'gRPC'} {self.tensors}"


HTTP, HTTP_JSON, GRPC = Way("http", "binary"), Way("http", "json"), Way("grpc", "binary")


@dataclass(frozen=True)
class Candidate:
    """A server: what starts it, before its folder and its ports, what ends the command, and how it is asked."""

    name: str
    command: tuple[str, ...]
    ways: tuple[Way, ...]
    more: tuple[str, ...] = ()
    libraries: str = ""
    """What its loader needs to find."""

    def line(self, folder: Path, ports: list[int]) -> list[str]:
        """The command with ports of HTTP, gRPC and metrics."""
        http, grpc, metrics = map(str, ports)
        if self.name == OURS:
            return [*self.command, str(folder / "mlp.onnx"), "--port", http, "--grpc-port", grpc, *self.more]
        return [*self.command, str(folder), http, grpc, metrics, *self.more]


@dataclass(frozen=True)
class Cell:
    """What is measured: a server, a way to ask it, and a number of clients."""

    server: str
    way: Way
    clients: int


def candidates(args: argparse.Namespace) -> list[Candidate]:
    """The servers that there are, ours first."""
    ours = (sys.executable, "-m", "glow_mlir.tools.glow_serve")
    found = [Candidate(OURS, ours, (HTTP, HTTP_JSON, GRPC), ("--threads", "1"))]
    if args.mlserver:
        command = (args.mlserver, str(PEERS / "mlserver_perceptron.py"))
        found += [
            Candidate("mlserver", command, (HTTP_JSON, GRPC)),
            Candidate("mlserver, lean", command, (HTTP_JSON, GRPC), ("lean",)),
        ]
    if args.pytriton:
        command = (args.pytriton, str(PEERS / "pytriton_perceptron.py"))
        code = "import pathlib, pytriton; print(pathlib.Path(pytriton.__file__).parents[1] / 'nvidia_pytriton.libs')"
        libraries = subprocess.run(
            [args.pytriton, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        found += [
            Candidate("Triton", command, (HTTP, GRPC), (), libraries),
            Candidate("Triton, batches", command, (HTTP, GRPC), ("8",), libraries),
        ]
    return found


def write_model(folder: Path) -> None:
    """The perceptron as ONNX, of one row and of any number, and its weights for those who have no runtime for that."""
    for name, rows in (("mlp.onnx", 1), ("batches.onnx", "N")):
        g = GraphBuilder(0)
        result = "x"
        for inner, outer in itertools.pairwise(SIZES):
            result = g.node("Relu", linear(g, result, inner, outer))
        model = g.model({"x": (TensorProto.FLOAT, (rows, SIZES[0]))}, {result: (rows, SIZES[-1])})
        onnx.save(model, folder / name)
        names = [f"{letter}{number}" for number in range(len(SIZES) - 1) for letter in "wb"]
        arrays = [numpy_helper.to_array(item) for item in model.graph.initializer]
        np.savez(folder / "mlp.npz", allow_pickle=False, **dict(zip(names, arrays, strict=True)))


def free_ports(count: int) -> list[int]:
    """Ports that nobody has."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextmanager
def started(candidate: Candidate, folder: Path) -> Generator[tuple[int, list[int]]]:
    """A server that runs: its process, and its ports of HTTP, gRPC and metrics."""
    ports = free_ports(3)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    own = {"PYTHONPATH": str(ROOT)} if candidate.name == OURS else {"LD_LIBRARY_PATH": candidate.libraries}
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen(
        candidate.line(folder, ports),
        stdout=log,
        stderr=log,
        env={**os.environ, **threads, **own},
        cwd=folder,
        start_new_session=True,
    )
    try:
        wait_for(process, ports[0], folder)
        yield process.pid, ports
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.close()


def wait_for(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    """Wait until the model is ready; ends the program where the server does not get there."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/models/mlp/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"a server does not start:\n{log_of(folder)}")


def log_of(folder: Path) -> str:
    """What a server said in the end."""
    return "\n".join((folder / "server.log").read_text("utf-8", "replace").splitlines()[-20:])


def busy() -> float:
    """The seconds for which all cores were busy, guests of the machine's host included."""
    user, nice, system, _, _, *others = (
        int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    )
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


def is_quiet(pid: int) -> bool:
    """Wait until others than the server take little time; whether they do."""
    for _ in range(LOOKS):
        before, own = busy(), cpu_seconds([pid])
        time.sleep(1)
        if busy() - before - spent(own, cpu_seconds([pid])) < QUIET:
            return True
    return False


def measure(cell: Cell, pid: int, port: int, seconds: float, folder: Path) -> dict[str, Any]:
    """What `glow-bench` finds, which is a process of its own; ends the program where there are no answers."""
    command = [
        *(sys.executable, "-m", "glow_mlir.tools.glow_bench", f"{cell.way.scheme}://127.0.0.1:{port}", "mlp"),
        *("--tensors", cell.way.tensors, "--clients", str(cell.clients), "--pid", str(pid)),
        *("--seconds", str(seconds), "--warmup", "0.5", "--json", "-"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    if found.returncode:
        sys.exit(f"{cell.server}: {found.stderr.strip()}\n{log_of(folder)}")
    return json.loads(found.stdout)["rows"][0]


def rounds(args: argparse.Namespace, folder: Path) -> tuple[dict[Cell, list[dict[str, Any]]], int]:
    """What was found in each cell in each round, and how many measurements were disturbed."""
    found: dict[Cell, list[dict[str, Any]]] = {}
    disturbed = 0
    for number in range(args.rounds):
        print(f"round {number + 1}, load {os.getloadavg()[0]:.2f}", file=sys.stderr)
        for candidate in candidates(args):
            with started(candidate, folder) as (pid, ports):
                for cell in [Cell(candidate.name, way, clients) for way in candidate.ways for clients in args.clients]:
                    disturbed += not is_quiet(pid)
                    port = ports[cell.way.scheme == "grpc"]
                    found.setdefault(cell, []).append(measure(cell, pid, port, args.seconds, folder))
    return found, disturbed


def middle(rows: list[dict[str, Any]], name: str) -> float:
    """The median of a figure over the rounds."""
    return median(row[name] for row in rows)


def show(found: dict[Cell, list[dict[str, Any]]]) -> None:
    """Print a line for each cell."""
    print(f"{'server':16} {'way':12} {'clients':>7} {'server µs':>9} {'from':>6} {'to':>6} {'ratio':>6} "
          f"{'client µs':>9} {'core':>5} {'requests/s':>10} {'p99 ms':>7} {'errors':>6}")  # fmt: skip
    for cell, rows in found.items():
        ours = found[Cell(OURS, GRPC if cell.way == GRPC else HTTP, cell.clients)]
        costs = [1e6 * row["server_cpu"] for row in rows]
        p99 = 1e3 * median(row["latency"]["p99"] for row in rows)
        print(f"{cell.server:16} {cell.way!s:12} {cell.clients:7} {median(costs):9.0f} {min(costs):6.0f} "
              f"{max(costs):6.0f} {median(costs) / 1e6 / middle(ours, 'server_cpu'):6.2f} "
              f"{1e6 * middle(rows, 'client_cpu'):9.0f} {middle(rows, 'client_share'):5.0%} "
              f"{middle(rows, 'throughput'):10.0f} {p99:7.2f} {sum(row['failed'] for row in rows):6}")  # fmt: skip


def main() -> None:
    """Measure all servers that there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mlserver", metavar="PYTHON", help="of an environment with mlserver")
    parser.add_argument("--pytriton", metavar="PYTHON", help="of an environment with nvidia-pytriton")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of load for a measurement (3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was found")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        write_model(Path(folder))
        found, disturbed = rounds(args, Path(folder))
    show(found)
    print(f"{args.rounds} rounds; {disturbed} of {args.rounds * len(found)} measurements disturbed by others")
    if args.json is not None:
        cells = [{"server": cell.server, "way": str(cell.way), "rows": rows} for cell, rows in found.items()]
        args.json.write_text(json.dumps(cells, indent=1) + "\n")


if __name__ == "__main__":
    main()
