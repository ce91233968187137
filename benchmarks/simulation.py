"""
How far simulated devices are from real ones, in throughput and the 99th percentile of latency.

    python benchmarks/simulation.py [sleeping pipeline]

*Sleeping*: a network of `Host` with four replicas that sleep by a known law; the simulator gets the law, what
`time.sleep` takes beyond what it is asked for, and what a request costs that sleeps for no time, all measured first.
*Pipeline*: ResNet-50 in two stages on two CPU devices with one to three calls in flight; the simulator gets the host
program and the seconds of its entries, once as they are with one call at a time, and once as they were in the calls
that it is compared with: the first has also the error of what two cores take from each other. Each is measured
`--rounds` times, of which the median counts; the spread says how much the machine differs from itself.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from host_networks import made, rows_of
from models import random_inputs, seeded_light_model
from partitioned import profile_of

from glow_mlir import InferenceSession
from glow_mlir.host.network import Network
from glow_mlir.options.hosting import MANY
from glow_mlir.runtime.host_programs import HostProgram
from glow_mlir.runtime.partitions import PartitionedExecutable
from glow_mlir.runtime.queue_trace import QueueTrace, tracing
from glow_mlir.simulation.arrivals import Arrivals, ClosedLoop, Load, Poisson, Trace, open_times
from glow_mlir.simulation.engine import simulate
from glow_mlir.simulation.program_stages import from_host_program, measured_seconds
from glow_mlir.simulation.service import Affine, Fixed, Law, Measured, service_of
from glow_mlir.simulation.system import Batching, Stage, System, replicated
from glow_mlir.support.dataclass import dataclass

DEVICES = 4
"""Replicas that sleep."""

IN_FLIGHT = (1, 2, 3)
"""Calls of a session on two devices."""

WAYS = ("of one call at a time", "of the same calls")
"""When the seconds of entries were measured that a prediction is made of."""

SEEDS = 9
"""Predictions, of which the median counts as well."""


@dataclass(frozen=True)
class Found:
    """Answers a second, and the 99th percentile of latency in seconds."""

    throughput: float
    p99: float


def found_of(begins: Sequence[float], ends: Sequence[float]) -> Found:
    """What the times of requests and answers say, as the simulator counts: answers while requests come."""
    last = max(begins)
    answers = sum(end <= last for end in ends)
    latencies = np.array(ends) - np.array(begins)
    p99 = float(np.quantile(latencies, 0.99, method="inverted_cdf"))
    return Found(answers / (last - min(begins)), p99)


class Request:
    """A request of a host, with the times when it came and when its answer was there."""

    def __init__(self, network: Network) -> None:
        self.begin = time.perf_counter()
        self.end = self.begin
        self._answer = network.submit(rows_of(0))
        self._answer.add_done_callback(self._note)

    def _note(self, answer: object) -> None:
        self.end = time.perf_counter()

    def wait(self) -> None:
        """Wait for the answer."""
        self._answer.result()


def sleeping_network(
    seconds: Sequence[Callable[[int], float]],
    batching: Batching,
    sleep: Callable[[float], None] = time.sleep,
) -> AbstractContextManager[Network]:
    """A network of a host whose replicas, one for each of the laws, sleep in the place of computing."""

    def computing(law: Callable[[int], float]) -> Callable[[np.ndarray], np.ndarray]:
        def compute(x: np.ndarray) -> np.ndarray:
            sleep(law(len(x)))
            return x

        return compute

    keywords: dict[str, Any] = {"batch": batching.size, "delay": batching.delay} if batching.size > 1 else {}
    return made(*map(computing, seconds), queue=MANY, **keywords)


def asked(network: Network, arrivals: Arrivals, count: int) -> list[Request]:
    """The requests of a load, all answered."""
    found: list[Request] = []
    if isinstance(arrivals, ClosedLoop):

        def client(requests: int) -> None:
            for _ in range(requests):
                found.append(request := Request(network))
                request.wait()

        threads = [Thread(target=client, args=(count // arrivals.clients,)) for _ in range(arrivals.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found
    origin = time.perf_counter()
    for when in open_times(arrivals, count, np.random.default_rng(0)):
        time.sleep(max(0.0, origin + when - time.perf_counter()))
        found.append(Request(network))
    for request in found:
        request.wait()
    return found


def overshoots() -> list[float]:
    """The seconds that `time.sleep` takes beyond what it is asked for, while as many threads sleep as are devices."""
    found: list[float] = []

    def sleeper() -> None:
        for _ in range(100):
            begin = time.perf_counter()
            time.sleep(0.01)
            found.append(time.perf_counter() - begin - 0.01)

    threads = [Thread(target=sleeper) for _ in range(DEVICES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def idle_seconds() -> float:
    """What a request takes that sleeps for no time."""
    nothing = service_of(Fixed(0.0), np.random.default_rng())
    with sleeping_network([nothing] * DEVICES, Batching(), lambda seconds: None) as network:
        found = asked(network, ClosedLoop(1), 500)
    return median(request.end - request.begin for request in found)


def slower(law: Fixed | Affine | Measured, seconds: Sequence[float]) -> Law:
    """A law with one of some seconds more a call."""
    match law:
        case Fixed(fixed):
            return Measured(tuple(fixed + more for more in seconds))
        case Affine(fixed, per_row):
            return Measured(tuple(fixed + more for more in seconds), per_row)
        case Measured(samples, per_row):
            return Measured(tuple(sample + more for sample in samples for more in seconds), per_row)


SLEEPING: dict[str, tuple[Fixed | Affine | Measured, Batching, Arrivals, int]] = {
    "10 ms, 8 clients": (Fixed(0.010), Batching(), ClosedLoop(8), 4_000),
    "10 ms, Poisson at 75 %": (Fixed(0.010), Batching(), Poisson(300.0), 3_000),
    "10 or 30 ms, Poisson at 70 %": (Measured((0.010, 0.010, 0.030)), Batching(), Poisson(168.0), 2_000),
    "20 ms + 2 ms a row, 8 at most, Poisson at 70 %": (
        *(Affine(0.020, 0.002), Batching(8, 0.005), Poisson(620.0), 6_000),
    ),
    "20 ms + 2 ms a row, 8 at most, 64 clients": (*(Affine(0.020, 0.002), Batching(8, 0.005), ClosedLoop(64), 8_000),),
}


def sleeping(rounds: int) -> None:
    """Four replicas that sleep, against the simulator."""
    gc.collect()
    gc.freeze()  # Looking through all that the compiler has takes 20 to 50 ms, which no law says.
    beyond, idle = overshoots(), idle_seconds()
    print(
        f"a sleep takes {median(beyond) * 1e6:.0f} µs more than it is asked for, a request {idle * 1e6:.0f} µs besides"
    )
    for name, (law, batching, arrivals, count) in SLEEPING.items():
        measured: list[Found] = []
        for number in range(rounds):
            randoms = [np.random.default_rng([number, device]) for device in range(DEVICES)]
            with sleeping_network([service_of(law, random) for random in randoms], batching) as network:
                requests = asked(network, arrivals, count)
            measured.append(found_of([request.begin for request in requests], [request.end for request in requests]))
        if isinstance(arrivals, Poisson):
            arrivals = Trace(tuple(open_times(arrivals, count, np.random.default_rng(0))))
        one = System(((Stage("sleep", "device", slower(law, beyond)),),), batching)
        system = replicated(System(one.replicas, batching, overhead=idle, cores=64), DEVICES)
        compare(name, [predicted(system, Load(arrivals, count))] * rounds, measured)


def predicted(system: System, load: Load) -> Found:
    """What the simulator finds."""
    results = [simulate(system, load, seed=seed) for seed in range(SEEDS)]
    return Found(median(result.throughput for result in results), median(result.latency.p99 for result in results))


def compare(name: str, predictions: Sequence[Found], measured: Sequence[Found]) -> None:
    """Print the medians of what was predicted and measured, and of the error of a round, and the range of rounds."""
    print(name)
    for what, unit, factor in (("throughput", "a second", 1.0), ("p99", "ms", 1e3)):
        each = [factor * getattr(found, what) for found in predictions]
        real = [factor * getattr(found, what) for found in measured]
        keywords, error = median(each), median(ours / theirs for ours, theirs in zip(each, real, strict=True)) - 1
        spread = f"{min(real):.2f} to {max(real):.2f}"
        print(
            f"  {what:10} {keywords:9.2f} predicted, {median(real):9.2f} measured ({spread}) {unit}, error {error:+.1%}"
        )


def in_flight(run: Callable[[], object], calls: int, count: int) -> Found:
    """What callers find who each wait for their answer, so many calls in all."""
    begins: list[float] = []
    ends: list[float] = []

    def caller() -> None:
        for _ in range(calls // count):
            begin = time.perf_counter()
            run()
            ends.append(time.perf_counter())
            begins.append(begin)

    threads = [Thread(target=caller) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found_of(begins, ends)


@dataclass(frozen=True)
class Partitioned:
    """A session on several devices: its host program, and what a call and an event take besides the entries."""

    program: HostProgram
    overhead: float
    wake: float

    def system(self, trace: QueueTrace) -> System:
        """The session, with the seconds that entries take in a trace."""
        replica = from_host_program(self.program, measured_seconds(trace), wake_seconds=self.wake)
        return System((replica,), depth=4, overhead=self.overhead, cores=4)


def one_at_a_time(program: HostProgram, run: Callable[[], object], calls: int) -> tuple[Partitioned, QueueTrace]:
    """What one call after the other takes."""
    besides: list[int] = []
    gaps: list[int] = []
    whole = QueueTrace()
    for _ in range(calls):
        trace = QueueTrace()
        begin = time.perf_counter_ns()
        with tracing(trace):
            run()
        taken = time.perf_counter_ns() - begin
        spans = sorted(trace.spans, key=lambda span: span.begin)
        besides.append(taken - (spans[-1].end - spans[0].begin))
        gaps += [after.begin - before.end for before, after in pairwise(spans)]
        whole.spans += spans
    overhead, wake = (max(0.0, median(values)) / 1e9 for values in (besides, gaps))
    return Partitioned(program, overhead, wake), whole


def pipeline(rounds: int) -> None:
    """ResNet-50 in two stages on two devices, against the simulator."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet50.onnx"
        onnx.save(seeded_light_model("resnet50"), path)
        inputs = random_inputs(onnx.load(path), np.random.default_rng(0))
        profile = profile_of(path, Path(folder))
        session = InferenceSession(path, devices="cpu,cpu", partition="pipeline", placement_profile=str(profile))

    def run() -> object:
        return session.run(None, inputs)

    run()
    executable = session.executable
    assert isinstance(executable, PartitionedExecutable)
    (program,) = executable.programs.values()
    measured: dict[int, list[Found]] = {count: [] for count in IN_FLIGHT}
    predictions: dict[tuple[int, str], list[Found]] = {(count, way): [] for count in IN_FLIGHT for way in WAYS}
    for _ in range(rounds):  # What the machine does besides changes from minute to minute.
        partitioned, alone = one_at_a_time(program, run, 24)
        for count in IN_FLIGHT:
            together = QueueTrace()
            with tracing(together):
                measured[count].append(in_flight(run, 36, count))
            for way, trace in zip(WAYS, (alone, together), strict=True):
                found = predicted(partitioned.system(trace), Load(ClosedLoop(count), 36))
                predictions[count, way].append(found)
    for (count, way), found in predictions.items():
        compare(f"{count} in flight, from seconds {way}", found, measured[count])


CASES: dict[str, Callable[[int], None]] = {"sleeping": sleeping, "pipeline": pipeline}


def main() -> None:
    """Run the cases that are named, by default all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)} (all)")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    for name in args.cases or CASES:
        CASES[name](args.rounds)


if __name__ == "__main__":
    main()
