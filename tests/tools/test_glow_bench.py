"""`glow-bench`: loops by a clock that does as it is told, connections to servers of all manners, and real servers."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import Finished, run_tool
from running_servers import Running, needed, running

from glow_mlir.errors import OptionError
from glow_mlir.tools import glow_bench
from glow_mlir.tools.load.inference_bodies import GivenInputs, ModelInput
from glow_mlir.tools.load.inference_senders import HttpSender
from glow_mlir.tools.load.load_driver import (
    LATE,
    Arrivals,
    Budget,
    ClosedLoad,
    Done,
    Failure,
    OpenLoad,
    Record,
)
from glow_mlir.tools.load.load_target import answered
from glow_mlir.tools.reports.process_times import cpu_seconds, spent, with_children

REFUSED = Failure("503", "full")


class FakeTimers:
    """A clock that goes on when something is to be called; `hiccup` is how long after its time it is."""

    def __init__(self, hiccup: float = 0.0) -> None:
        self.now = 100.0
        self._hiccup = hiccup
        self._calls: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], object], /) -> object:
        heapq.heappush(self._calls, (when, next(self._numbers), callback))
        return None

    def run(self) -> None:
        while self._calls:
            when, _, callback = heapq.heappop(self._calls)
            self.now = max(self.now, when + self._hiccup)
            callback()


class FakeSender:
    """A server that takes so many seconds for an answer, or never gives one; `sent` is when requests came."""

    def __init__(self, timers: FakeTimers, seconds: float | None, failures: Iterable[Failure] = ()) -> None:
        self.sent: list[float] = []
        self._timers = timers
        self._seconds = seconds
        self._failures = iter(failures)
        self._done: Done | None = None

    def send(self, done: Done) -> None:
        assert self._done is None
        self._done = done
        self.sent.append(self._timers.now)
        if self._seconds is not None:
            self._timers.call_at(self._timers.now + self._seconds, lambda: self._end(next(self._failures, None)))

    def abort(self) -> None:
        self._end(LATE)

    def _end(self, failure: Failure | None) -> None:
        done, self._done = self._done, None
        assert done is not None
        done(failure)


def closed(timers: FakeTimers, senders: list[FakeSender], budget: Budget, think: float = 0.0) -> Record:
    """What becomes of a closed loop."""
    ended: list[float] = []
    load = ClosedLoad(timers, senders, budget, 2.0, lambda: ended.append(timers.now), think)
    load.start()
    timers.run()
    assert ended == [load.record.end]
    return load.record


def opened(timers: FakeTimers, senders: list[FakeSender], budget: Budget, arrivals: Arrivals) -> Record:
    """What becomes of an open loop."""
    ended: list[float] = []
    load = OpenLoad(timers, senders, budget, 2.0, lambda: ended.append(timers.now), arrivals)
    load.start()
    timers.run()
    assert ended == [load.record.end]
    return load.record


def times(seconds: Iterable[float]) -> Any:
    return pytest.approx(list(seconds))


def test_clients_wait_for_their_answers_and_think() -> None:
    timers = FakeTimers()
    senders = [FakeSender(timers, 0.125), FakeSender(timers, 0.25)]
    record = closed(timers, senders, Budget(seconds=1.0), think=0.25)
    assert senders[0].sent == times([100, 100.375, 100.75])
    assert senders[1].sent == times([100, 100.5])
    assert sorted(record.latencies) == times([0.125] * 3 + [0.25] * 2)
    assert record.end - record.begin == pytest.approx(1.125)


@pytest.mark.parametrize("clients", [1, 3, 20])
def test_a_number_of_requests_is_sent_by_all_clients_together(clients: int) -> None:
    timers = FakeTimers()
    senders = [FakeSender(timers, 0.125) for _ in range(clients)]
    record = closed(timers, senders, Budget(requests=10))
    assert len(record.latencies) == sum(len(sender.sent) for sender in senders) == 10


def test_failures_are_counted_by_their_statuses() -> None:
    timers = FakeTimers()
    sender = FakeSender(timers, 0.125, [REFUSED, Failure("400", "bad"), Failure("503", "still full")])
    record = closed(timers, [sender], Budget(requests=5))
    assert record.failures == {"503": (2, "full"), "400": (1, "bad")}
    assert (len(record.latencies), record.failed) == (2, 3)


def test_who_gets_no_answer_does_not_wait_for_ever() -> None:
    timers = FakeTimers()
    record = closed(timers, [FakeSender(timers, None)], Budget(requests=2))
    assert record.failures == {"timeout": (2, LATE.reason)}
    assert record.end - record.begin < 6


def test_requests_at_equal_distances() -> None:
    timers = FakeTimers()
    senders = [FakeSender(timers, 0.5) for _ in range(8)]
    record = opened(timers, senders, Budget(seconds=1.0), Arrivals(8.0, is_fixed=True))
    assert sorted(time for sender in senders for time in sender.sent) == times(100 + k / 8 for k in range(8))
    assert list(record.latencies) == times([0.5] * 8)
    assert set(record.lateness) == {0.0}


def test_latency_counts_from_when_a_request_was_due() -> None:
    timers = FakeTimers()
    sender = FakeSender(timers, 0.5)
    record = opened(timers, [sender], Budget(requests=4), Arrivals(8.0, is_fixed=True))
    assert sender.sent == times([100, 100.5, 101, 101.5])
    assert list(record.latencies) == times([0.5, 0.875, 1.25, 1.625])


def test_a_late_clock_is_told_and_counts_as_latency() -> None:
    timers = FakeTimers(hiccup=0.0625)
    senders = [FakeSender(timers, 0.125) for _ in range(4)]
    record = opened(timers, senders, Budget(requests=3), Arrivals(2.0, is_fixed=True))
    assert list(record.lateness) == times([0.0, 0.0625, 0.0625])
    assert max(record.latencies) == pytest.approx(0.0625 + 0.125 + 0.0625)


def test_requests_that_wait_in_the_end_are_given_up() -> None:
    timers = FakeTimers()
    record = opened(timers, [FakeSender(timers, None)], Budget(requests=50), Arrivals(100.0, is_fixed=True))
    assert record.failures == {"timeout": (50, LATE.reason)}
    assert record.end - record.begin < 10


def test_random_times_have_the_rate_and_the_seed_that_are_asked_for() -> None:
    first, again, other = (list(itertools.islice(Arrivals(50.0, seed).times(), 20_000)) for seed in (3, 3, 4))
    assert first == again != other
    gaps = np.diff(first)
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.03)
    assert gaps.std() == pytest.approx(1 / 50, rel=0.03)


def test_no_request_at_random_is_lost() -> None:
    timers = FakeTimers()
    senders = [FakeSender(timers, 0.25, itertools.repeat(REFUSED, 5)) for _ in range(3)]
    record = opened(timers, senders, Budget(seconds=20.0), Arrivals(9.0, seed=1))
    wanted = list(itertools.takewhile(lambda time: time < 20, Arrivals(9.0, seed=1).times()))
    assert len(record.latencies) + record.failed == len(wanted)
    assert record.failures == {"503": (15, "full")}


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
ENDED = Failure("connection", "the server closed it without an answer")
ANSWERS: dict[str, tuple[list[bytes], Failure | None]] = {
    "at once": ([OK + b"Content-Length: 3\r\n\r\nabc"], None),
    "byte by byte": ([bytes([byte]) for byte in OK + b"content-length: 3\r\n\r\nabc"], None),
    "chunks": ([OK + CHUNKED + b"2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n"], None),
    "chunks in parts": (
        [OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\na", b"b\r\n1\r\nc\r", b"\n0\r\n", b"\r\n"],
        None,
    ),
    "until the end": ([OK + b"\r\nab", b"c", b""], None),
    "error": ([b'HTTP/1.1 503 Busy\r\nContent-Length: 16\r\n\r\n{"error":"full"}'], Failure("503", "full")),
    "error in words": ([b"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nabc"], Failure("500", "abc")),
    "closed": ([b""], ENDED),
    "half": (
        [OK + b"Content-Length: 30\r\n\r\nabc", b""],
        Failure("connection", "the server closed it without an answer"),
    ),
    "no HTTP": ([b"SSH-2.0\r\n\r\n"], Failure("connection", "the answer is no HTTP")),
    "no length": ([OK + b"Content-Length: many\r\n\r\n"], Failure("connection", "the answer is no HTTP")),
}
"""Parts of answers, of which an empty one ends the connection, and what a client makes of them."""


@contextmanager
def answering(connections: list[list[list[bytes]]]) -> Generator[int]:
    """A server whose connections give those answers, in parts, one after the other: its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answers in connections:
            connection, _ = listener.accept()
            with connection:
                for parts in answers:
                    connection.recv(1 << 16)
                    for part in parts:
                        connection.sendall(part)
                        time.sleep(0.001)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        thread.join(30)
        listener.close()
        assert not thread.is_alive()


async def asked(port: int, count: int) -> list[tuple[Failure | None, bytes]]:
    """What one sender finds."""
    sender = HttpSender("127.0.0.1", port, b"GET / HTTP/1.1\r\n\r\n")
    found = [(await answered(sender, 20), sender.body) for _ in range(count)]
    await sender.close()
    return found


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_over_http(name: str) -> None:
    parts, failure = ANSWERS[name]
    with answering([[parts]]) as port:
        ((found, body),) = asyncio.run(asked(port, 1))
    assert found == failure
    assert failure is not None or body == b"abc"


def test_a_connection_is_kept_and_had_again_where_the_server_ended_it() -> None:
    answer = ANSWERS["at once"][0]
    last = [OK + b"Connection: close\r\nContent-Length: 3\r\n\r\nabc"]
    with answering([[answer, answer], [answer, last], [answer]]) as port:
        assert asyncio.run(asked(port, 5)) == [(None, b"abc")] * 5


INPUTS = (ModelInput("x", "FP32", (-1, 3)), ModelInput("n", "INT64", (1,)), ModelInput("h", "BF16", (2, -1)))


def test_inputs_are_random_by_what_the_server_says_of_them() -> None:
    found = GivenInputs({}, {"x": (2, 3)}, {"h": {1: 5}}).tensors(INPUTS)
    assert {name: (array.dtype.name, array.shape) for name, array in found.items()} == {
        "x": ("float32", (2, 3)),
        "n": ("int64", (1,)),
        "h": ("bfloat16", (2, 5)),
    }
    assert GivenInputs({}, {}, {}).tensors(INPUTS)["x"].shape == (1, 3)


def test_cpu_time_of_processes_and_of_what_they_started() -> None:
    before = cpu_seconds([os.getpid()])
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        child.stdout.readline()
        assert {os.getpid(), child.pid} <= with_children([os.getpid()])
        assert spent(before, cpu_seconds([os.getpid()])) >= 0.25
        child.stdin.close()
    with pytest.raises(OptionError, match="there is no process"):
        with_children([child.pid])


@pytest.fixture(autouse=True)
def no_core_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers in this process take of the core of the load generator."""
    monkeypatch.setattr(glow_bench, "FULL_CORE", 1e9)


def bench(*arguments: str, directory: Path | None = None) -> Finished:
    """Run the tool."""
    return run_tool(glow_bench.main, arguments, program="glow-bench", directory=directory)


@pytest.fixture(scope="module")
def server() -> Generator[Running]:
    with running() as found:
        yield found


def places(server: Running) -> dict[str, str]:
    return {"http": f"http://127.0.0.1:{server.http}", "grpc": f"grpc://127.0.0.1:{server.grpc}"}


FEW = ("--requests", "30", "--warmup", "0")


@pytest.mark.extra
@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("tensors", ["binary", "json"])
def test_table_has_a_row_for_each_number_of_clients(protocol: str, tensors: str, server: Running) -> None:
    network = server.models.find("sums")
    before = network.succeeded
    found = bench(places(server)[protocol], "sums", "--clients", "1,4", "--bind", "a.0=2", "--bind", "b.0=2",
                  "--tensors", tensors, "--pid", str(os.getpid()), *FEW)  # fmt: skip
    assert (found.code, found.stderr) == (0, b"")
    title, head, *rows = found.stdout.decode().splitlines()
    assert title == f"sums at {places(server)[protocol]}: a FP32[2, 4], b FP32[2, 4]"
    assert head.split()[0] == "clients"
    assert head.split()[-2:] == ["server", "µs"]
    assert [row.split()[0] for row in rows] == ["1", "4"]
    # Each connection has an answer before the load begins.
    assert network.succeeded - before == 2 * 30 + 1 + 4


@pytest.mark.extra
@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("load", [(), ("--rate", "500"), ("--rate", "500", "--fixed"), ("--think", "0.001")])
def test_report_has_all_requests(protocol: str, load: tuple[str, ...], server: Running) -> None:
    found = bench(places(server)[protocol], "echo", *load, *FEW, "--json", "-")
    assert (found.code, found.stderr) == (0, b"")
    report = json.loads(found.stdout)
    (row,) = report.pop("rows")
    assert report == {
        "address": places(server)[protocol],
        "model": "echo",
        "version": "",
        "tensors": "binary",
        "inputs": ["x FP32[1, 3]"],
        "seed": 0,
    }
    assert (row["answered"], row["failed"], row["failures"], row["server_cpu"]) == (30, 0, {}, None)
    latency = row["latency"]
    assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["p999"] <= row["largest"]
    assert row["clients"] == (64 if "--rate" in load else 1)
    assert (row["arrivals"] is not None) == ("--rate" in load)
    assert row["client_cpu"] > 0


@pytest.mark.extra
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_seconds_and_files_and_versions(protocol: str, server: Running, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((5, 3), np.float32))
    found = bench(places(server)[protocol], "echo", "--input", "x=x.npy", "--seconds", "0.2", "--warmup", "0.1",
                  "--model-version", "1", "--json", "r.json", directory=tmp_path)  # fmt: skip
    assert (found.code, found.stderr) == (0, b"")
    report = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert report["inputs"] == ["x FP32[5, 3]"]
    assert report["rows"][0]["answered"] > 0


@pytest.mark.extra
@pytest.mark.parametrize(
    ("protocol", "given", "status", "reason"),
    [
        ("http", 0, "500", "it does not work"),
        ("http", 1, "400", "it is no input"),
        ("grpc", 0, "INTERNAL", "it does not work"),
        ("grpc", 1, "INVALID_ARGUMENT", "it is no input"),
    ],
)
def test_a_server_that_refuses_is_a_line(
    protocol: str, given: int, status: str, reason: str, server: Running, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.array([given]))
    found = bench(places(server)[protocol], "failing", "--input", "x=x.npy", *FEW, directory=tmp_path)
    assert found.code == 1
    line = found.stderr.decode()
    assert line.startswith(f"{places(server)[protocol]}: error: no answer to a request, {status}: {reason}")
    assert (line.count("\n"), found.stdout) == (1, b"")


@pytest.mark.extra
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_wrong_inputs_and_models_are_a_line(protocol: str, server: Running, tmp_path: Path) -> None:
    np.save(tmp_path / "text.npy", np.zeros(3, np.complex64))
    cases = {
        ("none",): "there is no model 'none' (hint: is the name of the model right, and is it loaded?)",
        ("echo", "--model-version", "9"): "there is no model 'echo' in version 9",
        ("echo", "--bind", "y.0=2"): "the model has no input 'y' (hint: inputs are x)",
        ("echo", "--bind", "x.1=4"): "--bind x.1=4 does not fit: the model takes x FP32[?, 3]",
        ("echo", "--bind", "x.2=4"): "--bind x.2=4 does not fit",
        ("echo", "--shape", "x=3,4"): "--shape x=3,4 does not fit: the model takes x FP32[?, 3]",
        ("echo", "--shape", "x=3"): "--shape x=3 does not fit",
        ("echo", "--input", "x=text.npy"): "no element type 'complex64'",
        ("slow", "--timeout", "0.1"): "no answer to a request, timeout",
        ("half", "--tensors", "json"): "" if protocol == "http" else "must be sent as bytes (hint: --tensors binary)",
    }
    for arguments, reason in cases.items():
        found = bench(places(server)[protocol], *arguments, *FEW, directory=tmp_path)
        assert (found.code, reason in found.stderr.decode()) == (int(bool(reason)), True), (arguments, found)
        assert found.stderr.count(b"\n") == int(bool(reason)), found


def answer(status: str, data: object) -> list[bytes]:
    """An answer over HTTP in one part."""
    body = json.dumps(data).encode()
    return [f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body]


METADATA = answer("200 OK", {"name": "m", "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]})


def test_failures_are_in_the_table_and_told_of() -> None:
    good, bad = answer("200 OK", {}), answer("503 Busy", {"error": "the queue\nis full"})
    with answering([[METADATA], [good, good, bad, bad, good]]) as port:
        found = bench(f"http://127.0.0.1:{port}", "m", "--requests", "4", "--warmup", "0")
    assert found.code == 0
    assert found.stderr.decode() == (
        f"http://127.0.0.1:{port}: warning: 2 requests failed, 503: the queue is full (hint: fewer --clients)\n"
    )
    assert found.stdout.decode().splitlines()[2].split()[8:10] == ["503:", "2"]


def test_who_measures_the_load_generator_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glow_bench, "FULL_CORE", 0.0)
    with answering([[METADATA], [answer("200 OK", {})] * 3]) as port:
        found = bench(f"http://127.0.0.1:{port}", "m", "--requests", "2", "--warmup", "0")
    assert found.code == 0
    assert b"glow-bench: warning: the load generator took " in found.stderr
    assert found.stderr.count(b"\n") == 1


def test_where_nothing_is_answered_the_tool_fails() -> None:
    good, bad = answer("200 OK", {}), answer("500 No", {"error": "no"})
    with answering([[METADATA], [good, bad, bad]]) as port:
        found = bench(f"http://127.0.0.1:{port}", "m", "--requests", "2", "--warmup", "0", "--json", "-")
    assert found.code == 1
    (row,) = json.loads(found.stdout)["rows"]
    assert (row["answered"], row["failures"]) == (0, {"500": {"number": 2, "reason": "no"}})


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([], "not model metadata of the inference protocol"),
        ({"inputs": [3]}, "not model metadata of the inference protocol"),
        ({"inputs": {"x": 3}}, "not model metadata of the inference protocol"),
        ({"name": "m"}, "the server does not say what the model takes (hint: --input NAME=FILE.npy for each input)"),
        ({"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1]}]}, "input 'x' is strings, for which there are"),
        ({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1 << 50]}]}, "there is no memory for input 'x'"),
    ],
)
def test_what_a_server_says_of_a_model_may_be_anything(said: object, reason: str) -> None:
    with answering([[answer("200 OK", said)]]) as port:
        found = bench(f"http://127.0.0.1:{port}", "m", *FEW)
    assert (found.code, found.stderr.count(b"\n")) == (1, 1)
    assert reason in found.stderr.decode()


@pytest.mark.extra
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_token_is_asked_for(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with running(token="secret") as server:
        found = bench(places(server)[protocol], "echo", *FEW)
        assert found.code == 1
        assert b"--token-file has what the server asks for" in found.stderr
        assert bench(places(server)[protocol], "echo", "--token-file", "token", *FEW, directory=tmp_path).code == 0


@pytest.mark.extra
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_where_no_server_is(protocol: str) -> None:
    for module in ("grpc", "google.protobuf"):
        needed(module)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    found = bench(f"{protocol}://127.0.0.1:{port}", "echo", "--timeout", "5")
    assert found.code == 1
    assert b"is a server there, and is this its port for the protocol?" in found.stderr
    assert found.stderr.count(b"\n") == 1


@pytest.mark.extra
def test_the_wrong_port_is_a_line(server: Running) -> None:
    for address in (f"http://127.0.0.1:{server.grpc}", f"grpc://127.0.0.1:{server.http}"):
        found = bench(address, "echo", "--timeout", "5")
        assert (found.code, found.stderr.count(b"\n")) == (1, 1), found


ADDRESS = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["127.0.0.1:8000", "m"], "'127.0.0.1:8000' is no address of a server (hint: such as http://"),
        (["http://127.0.0.1:99999", "m"], "is no address: Port out of range"),
        (["http://127.0.0.1/v2", "m"], "is no address of a server"),
        ([ADDRESS, "m", "--clients", "0"], "expected numbers from 1 to 10,000 between commas, got '0'"),
        ([ADDRESS, "m", "--clients", "2,2"], "a number is given twice in '2,2'"),
        ([ADDRESS, "m", "--rate", "nan"], "expected rates from 0.001 to 1,000,000 between commas, got 'nan'"),
        ([ADDRESS, "m", "--fixed"], "argument --fixed: there is no --rate"),
        ([ADDRESS, "m", "--rate", "5", "--think", "1"], "argument --think: requests of --rate wait for nothing"),
        ([ADDRESS, "m", "--rate", "5", "--clients", "1,2"], "argument --clients: with --rate there is one number"),
        ([ADDRESS, "m", "--seconds", "0"], "argument --seconds: nothing is measured in 0 seconds"),
        ([ADDRESS, "m", "--seconds", "1", "--requests", "1"], "not allowed with argument"),
        ([ADDRESS, "m", "--bind", "x=3"], "expected NAME.AXIS=SIZE, got 'x=3'"),
        ([ADDRESS, "m", "--bind", "x.a=3"], "expected an axis from 0 to 63, got 'a'"),
        ([ADDRESS, "m", "--shape", "x=3,b"], "expected a size, got 'b'"),
        ([ADDRESS, "m", "--shape", "x=3", "--bind", "x.0=3"], "the shape of input 'x' is given twice"),
        ([ADDRESS, "m", "--input", "x"], "expected NAME=FILE.npy, got 'x'"),
        ([ADDRESS, "m", "--input", "x=no.npy"], "no.npy: error: cannot be read"),
        ([ADDRESS, "m", "--token-file", "no"], "no: error: cannot be read"),
        (["https://127.0.0.1:9", "m", "--tls-authorities", "no"], "no: error: there is no such file"),
        ([ADDRESS, "m", "--pid", "999999999"], "there is no process 999999999"),
    ],
)
def test_wrong_arguments_are_a_line(arguments: list[str], reason: str, tmp_path: Path) -> None:
    found = bench(*arguments, directory=tmp_path)
    assert found.code == 1
    assert reason in found.stderr.decode()
    assert found.stderr.count(b"\n") == 1
