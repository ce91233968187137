"""
What several CPU devices gain over one: a pipeline of two halves of a network, and a product that two devices share.

    python benchmarks/partitioned.py [pipeline balance hidden product]

Each is timed in turns, as often as `--rounds` says, with one thread a device. Ratios are what counts: of throughput
with three calls in flight, and of latency for products.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from models import GraphBuilder, random_inputs, seeded_light_model
from onnx import TensorProto

from glow_mlir import InferenceSession
from glow_mlir.runtime.queue_trace import QueueTrace, tracing


def profile_of(model: Path, folder: Path) -> Path:
    """A file with measured seconds of the nodes of a model on one core."""
    path = folder / "profile.json"
    command = [sys.executable, "-m", "glow_mlir.tools.glow_run", str(model), "--profile", "--iterations", "30"]
    subprocess.run([*command, "--json", str(path)], check=True, stdout=subprocess.DEVNULL)
    return path


def seconds_of(run: Callable[[], object]) -> float:
    """How long something takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def in_flight(session: InferenceSession, inputs: dict[str, np.ndarray], calls: int, count: int) -> Callable[[], object]:
    """Calls of a session, some of which are in flight at once."""
    pool = ThreadPoolExecutor(count)

    def call(number: int) -> object:
        return session.run(None, inputs)

    return lambda: list(pool.map(call, range(calls)))


def pipeline(rounds: int) -> None:
    """ResNet-50 in two stages on two devices, against the same on one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet50.onnx"
        onnx.save(seeded_light_model("resnet50"), path)
        profile = profile_of(path, Path(folder))
        inputs = random_inputs(onnx.load(path), np.random.default_rng(0))
        one = InferenceSession(path)
        two = InferenceSession(path, devices="cpu,cpu", partition="pipeline", placement_profile=str(profile))
    runs = [in_flight(session, inputs, 16, count) for session, count in ((one, 1), (two, 3))]
    times = [[seconds_of(run) for run in runs] for _ in range(rounds)]
    alone, both = (median(row[number] for row in times) for number in range(2))
    print(f"pipeline of ResNet-50: {16 / alone:.1f} → {16 / both:.1f} calls a second, ratio {alone / both:.2f}")


def balance(rounds: int) -> None:
    """ResNet-50 in two, three and four stages: how far the slowest is above the mean, as the queues measure them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet50.onnx"
        onnx.save(seeded_light_model("resnet50"), path)
        profile = profile_of(path, Path(folder))
        inputs = random_inputs(onnx.load(path), np.random.default_rng(0))
        for count in (2, 3, 4):
            devices = ",".join(["cpu"] * count)
            session = InferenceSession(path, devices=devices, partition="pipeline", placement_profile=str(profile))
            session.run(None, inputs)
            trace = QueueTrace()
            with tracing(trace):
                for _ in range(3 * rounds):
                    session.run(None, inputs)
            stages = [
                median((span.end - span.begin) / 1e6 for span in trace.spans if span.queue == queue)
                for queue in trace.queues
            ]
            mean = sum(stages) / len(stages)
            listed = ", ".join(f"{stage:.2f}" for stage in stages)
            print(
                f"{count} stages of ResNet-50: {listed} ms; the slowest is {max(stages) / mean - 1:.1%} above the mean"
            )


def hidden(rounds: int) -> None:
    """ResNet-50 in two stages, the second with memory of its own: how much of the transfers another queue hides."""
    model = seeded_light_model("resnet50")
    inputs = random_inputs(model, np.random.default_rng(0))
    session = InferenceSession(model, devices="cpu,cpu,own_memory=1", partition="pipeline")
    session.run(None, inputs)
    trace = QueueTrace()
    with tracing(trace):
        in_flight(session, inputs, 4 * rounds, 3)()
    moving = [span for span in trace.spans if span.what == "transfer"]
    computing = [span for span in trace.spans if span.what != "transfer"]
    whole = sum(span.end - span.begin for span in moving)
    inside = sum(
        max(0, min(span.end, other.end) - max(span.begin, other.begin))
        for span in moving
        for other in computing
        if other.queue != span.queue
    )
    listed = f"{len(moving)} transfers of {whole / len(moving) / 1e3:.0f} µs"
    print(f"{listed}, {inside / whole:.0%} of their time while another queue computes")


def product(rounds: int) -> None:
    """A product of 256×2048 by 2048×2048, which two devices share by columns, and by rows."""
    g = GraphBuilder(0)
    result = g.node("MatMul", "x", g.weight(g.rng.standard_normal((2048, 2048), np.float32)))
    model = g.model({"x": (TensorProto.FLOAT, (256, 2048))}, {result: (256, 2048)})
    inputs = random_inputs(model, np.random.default_rng(0))
    ways = ("tensor-parallel", "data-parallel")
    shared = [InferenceSession(model, devices="cpu,cpu", partition=way) for way in ways]
    sessions = [InferenceSession(model), *shared]
    for session in sessions:
        session.run(None, inputs)
    times = [[seconds_of(lambda s=session: s.run(None, inputs)) for session in sessions] for _ in range(5 * rounds)]
    alone, *both = (median(row[number] for row in times) for number in range(3))
    for way, found in zip(ways, both, strict=True):
        print(f"product of 256×2048×2048, {way}: {alone * 1e3:.2f} → {found * 1e3:.2f} ms, ratio {alone / found:.2f}")


CASES: dict[str, Callable[[int], None]] = {
    "pipeline": pipeline,
    "balance": balance,
    "hidden": hidden,
    "product": product,
}


def main() -> None:
    """Run the cases that are named, by default all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)} (all)")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    for name in args.cases or CASES:
        CASES[name](args.rounds)


if __name__ == "__main__":
    main()
