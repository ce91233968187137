"""
What a host costs beside a bare session, and what dynamic batching gains.

    python benchmarks/hosting.py [overhead batching processes stages]

`overhead`: a small network, one thread, with and without a host, in turns. `batching`: networks with as many clients as
`--clients` says, each of which waits for its answer, with and without batches. `processes`: two workers against one.
`stages`: a model in two stages with a worker each, against one worker that has all of it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import itertools

from models import GraphBuilder, linear
from onnx import TensorProto

from glow_mlir.api.model_session import ModelSession
from glow_mlir.host.host import Host
from glow_mlir.host.network import Network


def layers(sizes: tuple[int, ...]) -> onnx.ModelProto:
    """A perceptron with layers of those sizes, of any batch."""
    g = GraphBuilder(0)
    result = "x"
    for inner, outer in itertools.pairwise(sizes):
        result = g.node("Relu", linear(g, result, inner, outer))
    return g.model({"x": (TensorProto.FLOAT, ("N", sizes[0]))}, {result: ("N", sizes[-1])})


SMALL = (784, 512, 256, 10)
LARGE = (4096, 4096, 4096, 4096)


def times(call: Callable[[], object], count: int) -> tuple[float, float]:
    """Microseconds of a call, by the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    return (time.perf_counter() - wall) / count * 1e6, (time.process_time() - cpu) / count * 1e6


def overhead(args: argparse.Namespace) -> None:
    """A small network, in a session and through a host."""
    model = layers(SMALL)
    inputs = {"x": np.random.default_rng(0).standard_normal((1, SMALL[0]), np.float32)}
    session = ModelSession.of(model, dimensions={"N": 1})
    with Host() as host:
        host.add("net", model, dimensions={"N": 1})
        ways: dict[str, Callable[[], object]] = {
            "session": lambda: session.run(inputs),
            "session again": lambda: session.run(inputs),
            "run": lambda: host.run("net", inputs),
            "submit": lambda: host.submit("net", inputs).result(),
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(args.rounds):
            for name, call in ways.items():
                found[name].append(times(call, 2000))
    for name, rounds in found.items():
        wall, cpu = (median(row[number] for row in rounds) for number in range(2))
        print(f"{name:14} {wall:7.1f} µs, {cpu:7.1f} µs of the processor")


def asked(network: Network, width: int, clients: int, seconds: float) -> tuple[float, float]:
    """Requests a second that so many clients get answered, and the 99th percentile of their milliseconds."""
    latencies: list[float] = []
    end = time.perf_counter() + seconds

    def client(seed: int) -> None:
        inputs = {"x": np.random.default_rng(seed).standard_normal((1, width), np.float32)}
        while (begin := time.perf_counter()) < end:
            network.submit(inputs).result()
            latencies.append(time.perf_counter() - begin)

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(latencies) / seconds, float(np.percentile(latencies, 99)) * 1e3


def batching(args: argparse.Namespace) -> None:
    """Networks whose requests are computed one by one, and together."""
    for name, sizes in (("small", SMALL), ("weight-bound", LARGE)):
        model = layers(sizes)
        with Host() as host:
            options: dict[str, Any] = {"queue": 1000, "calls": 1}
            alone = host.add("alone", model, dimensions={"N": 1}, **options)
            together = host.add("together", model, batch=args.clients, **options)
            rows: list[list[tuple[float, float]]] = []
            for _ in range(args.rounds):
                rows.append([asked(network, sizes[0], args.clients, args.seconds) for network in (alone, together)])
        found = [[median(row[number][part] for row in rows) for part in range(2)] for number in range(2)]
        ratio = found[1][0] / found[0][0]
        print(f"{name}: {found[0][0]:.0f} → {found[1][0]:.0f} requests/s, {ratio:.2f} times; "
              f"p99 {found[0][1]:.2f} → {found[1][1]:.2f} ms")  # fmt: skip


def processes(args: argparse.Namespace) -> None:
    """A network of about 20 ms a call in one worker, and in two."""
    with tempfile.TemporaryDirectory() as folder, Host() as host:
        path = Path(folder) / "model.onnx"
        sizes = (1024, 4096, 4096, 1024)
        onnx.save(layers(sizes), path)
        rows = 64
        inputs = {"x": np.random.default_rng(0).standard_normal((rows, sizes[0]), np.float32)}
        options: dict[str, Any] = {"dimensions": {"N": rows}, "workers": "processes", "queue": 1000}
        networks = [host.add(str(count), path, replicas=count, **options) for count in (1, 2)]
        bare = ModelSession.of(path, dimensions={"N": rows})
        alone = median(times(lambda: bare.run(inputs), 10)[0] for _ in range(args.rounds)) / 1e3
        one, two = rates_of(networks, inputs, args.rounds)
    print(f"{alone:.1f} ms a call; one worker {one:.1f} calls/s, two {two:.1f}, {two / one:.2f} times")


def rates_of(networks: Sequence[Network], inputs: dict[str, np.ndarray], rounds: int) -> list[float]:
    """How many calls a second each of some networks computes, of which forty wait: medians of rounds."""
    rates: list[list[float]] = []
    for _ in range(rounds):
        rates.append([])
        for network in networks:
            begin = time.perf_counter()
            for answer in [network.submit(inputs) for _ in range(40)]:
                answer.result()
            rates[-1].append(40 / (time.perf_counter() - begin))
    return [median(row[number] for row in rates) for number in range(len(networks))]


def stages(args: argparse.Namespace) -> None:
    """Six equal layers in one worker, and in two of which each has three; as processes, and as actors of Ray."""
    with tempfile.TemporaryDirectory() as folder, Host() as host:
        path, rows, width = Path(folder) / "model.onnx", 64, 2048
        onnx.save(layers((width,) * 7), path)
        inputs = {"x": np.random.default_rng(0).standard_normal((rows, width), np.float32)}
        for workers in ("processes", *(["ray"] if find_spec("ray") else [])):
            found: list[tuple[float, np.ndarray]] = []
            for count in (1, 2):  # One after the other: a cluster of two cores has no place for three actors.
                network = host.add(workers, path, stages=count, dimensions={"N": rows}, workers=workers, queue=1000)
                (result,) = network.run(inputs).values()
                found.append((rates_of([network], inputs, args.rounds)[0], result))
                host.remove(workers)
            (one, whole), (two, split) = found
            assert np.allclose(whole, split, rtol=1e-4, atol=1e-4)
            print(f"{workers}: one worker {one:.1f} calls/s, two stages {two:.1f}, {two / one:.2f} times")


CASES = {"overhead": overhead, "batching": batching, "processes": processes, "stages": stages}


def main() -> None:
    """Run the cases that are named, by default all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)} (all)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=1.0, help="of load for a round")
    args = parser.parse_args()
    for name in args.cases or CASES:
        CASES[name](args)


if __name__ == "__main__":
    main()
