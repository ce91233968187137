"""What is rare: callers that are interrupted, callbacks that raise, numbers that are none, and forks."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from host_networks import Gate, made, rows_of
from models import GraphBuilder, linear
from onnx import TensorProto, helper

from glow_mlir.errors import (
    ExecutionError,
    InputError,
    NetworkHangsError,
    TimeLimitError,
    UnknownNetworkError,
    UnsupportedError,
)
from glow_mlir.host.host import Host
from glow_mlir.host.processes import ProcessRunner
from glow_mlir.host.sequences import SequenceStep


def layer(width: int, seed: int = 0) -> onnx.ModelProto:
    """A layer of two inputs and so many outputs."""
    g = GraphBuilder(seed)
    result = g.node("Relu", linear(g, "x", 2, width))
    return g.model({"x": (TensorProto.FLOAT, ("N", 2))}, {result: ("N", width)})


def lookup(path: Path) -> None:
    """A model that fails for places that there are not."""
    g = GraphBuilder(0)
    result = g.node("Gather", g.weight(np.arange(12, dtype=np.float32).reshape(4, 3)), "i")
    onnx.save(g.model({"i": (TensorProto.INT64, (2,))}, {result: (2, 3)}), path)


@pytest.mark.parametrize("value", [float("nan"), "5", True, [1]])
def test_a_timeout_that_is_no_duration_is_told(value: Any) -> None:
    with made(lambda x: x) as network, pytest.raises(InputError, match="must be a number of seconds"):
        network.submit(rows_of(1), timeout=value)


@pytest.mark.parametrize("value", ["high", 1.5, None])
def test_a_priority_that_is_no_number_is_told_and_breaks_nothing(value: Any) -> None:
    gate = Gate()
    with made(gate.through) as network:
        first = network.submit(rows_of(1))
        with pytest.raises(InputError, match="must be an integer"):
            network.submit(rows_of(1), priority=value)
        gate.open()
        first.result(30)
        network.submit(rows_of(1)).result(30)
        assert network.waiting == 0


@pytest.mark.parametrize("outputs", ["y", 5, [3]])
def test_outputs_that_are_no_list_are_told(outputs: Any) -> None:
    with made(lambda x: x) as network, pytest.raises(InputError):
        network.submit(rows_of(1), outputs=outputs)


def test_durations_longer_than_the_system_waits() -> None:
    with made(lambda x: x, batch=2, delay=1e12, call_limit=1e12) as network:
        for timeout in (float("inf"), 1e12):
            answers = [network.submit(rows_of(1), timeout=timeout) for _ in range(2)]
            for answer in answers:
                answer.result(30)
        with pytest.raises(TimeLimitError):
            network.submit(rows_of(1), timeout=0.01).result(30)


def test_no_time_is_no_time() -> None:
    with made(lambda x: x) as network:
        for timeout in (0, -1.0):
            with pytest.raises(TimeLimitError):
                network.submit(rows_of(1), timeout=timeout).result(30)
        assert network.statistics.counts["expired"] == 2


def test_requests_without_samples_are_told() -> None:
    with made(lambda x: x, batch=4) as network, pytest.raises(InputError, match="a request has no samples"):
        network.submit(rows_of(1, 0))


def test_a_callback_that_raises_keeps_no_answer_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[Any]()
    monkeypatch.setattr(threading, "excepthook", told.append)

    def leave(_: object) -> None:
        raise SystemExit

    gate = Gate()
    with made(gate.through, batch=8) as network:
        first = network.submit(rows_of(0))
        assert gate.entered.acquire(timeout=30)
        answers = [network.submit(rows_of(n)) for n in range(4)]
        late = network.submit(rows_of(9), timeout=0.01)
        for answer in (answers[0], late):
            answer.add_done_callback(leave)
        with pytest.raises(TimeLimitError):
            late.result(30)
        gate.open()
        for answer in (first, *answers):
            answer.result(30)
    assert len(told) == 2


def test_what_expires_while_others_are_joined_fails_alone() -> None:
    with made(lambda x: x, batch=4) as network:
        requests = [network._request(network._checked(rows_of(n), None), None, 0, None) for n in range(3)]
        network._queue.put(requests[0])  # So that it may be settled.
        inputs, done = network._batches.joined, list[bool]()

        def joined(given: Any) -> Any:
            done.append(requests[1].cancel())
            return inputs(given)

        network._batches.joined = joined
        network._compute(network.replicas[0], requests)
        assert done == [True]
        assert requests[0].answer.result(0)["y"].shape == requests[2].answer.result(0)["y"].shape == (1, 2)
        assert network.replicas[0].failures == 0


def test_calls_that_hang_end_the_network_only_while_they_hang() -> None:
    gate = Gate()
    with made(gate.through, call_limit=0.05, queue=50) as network:
        answers = [network.submit(rows_of(1)) for _ in range(6)]
        for answer in answers:
            with pytest.raises((TimeLimitError, NetworkHangsError)):
                answer.result(30)
        with pytest.raises(NetworkHangsError, match="accepts no requests: 2 of its calls hang"):
            network.submit(rows_of(1))
        gate.open()
        end = time.monotonic() + 30
        while not network.is_ready and time.monotonic() < end:
            time.sleep(0.001)
        assert network.is_ready


def test_the_limit_of_a_call_is_not_that_of_the_next() -> None:
    kept = list[Any]()

    def compute(x: np.ndarray) -> np.ndarray:
        if x[0, 0] < 0:
            raise ExecutionError("a negative number")
        time.sleep(0.25)
        return x

    with made(compute, call_limit=0.4) as network:
        for _ in range(3):
            with pytest.raises(ExecutionError) as caught:
                network.submit(rows_of(-1)).result(30)
            kept.append(caught)
            network.submit(rows_of(1)).result(30)
        assert network.replicas[0].failures == 0


def test_outputs_that_are_everybodys_are_refused() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])
    with Host() as host:
        for node, shape in (
            (helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0]), [2, "N"]),
            (helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0), []),
            (helper.make_node("NonZero", ["x"], ["y"]), [2, None]),
        ):
            kind = TensorProto.INT64 if node.op_type == "NonZero" else TensorProto.FLOAT
            y = helper.make_tensor_value_info("y", kind, shape)
            model = helper.make_model(helper.make_graph([node], "graph", [x], [y]), ir_version=9)
            with pytest.raises(UnsupportedError, match="which cannot be split by request"):
                host.add("net", model, batch=4)


def test_a_step_of_other_samples_than_its_sequence_fails_alone() -> None:
    nodes = [helper.make_node("Add", ["x", "h"], ["h2"]), helper.make_node("Identity", ["h2"], ["y"])]
    given, found = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 2]) for name in names]
        for names in (("x", "h"), ("y", "h2"))
    )
    with Host() as host:
        model = helper.make_model(helper.make_graph(nodes, "graph", given, found), ir_version=9)
        network = host.add("net", model, state={"h2": "h"}, batch=8)
        for name, count in (("a", 1), ("b", 3)):
            network.run(rows_of(1, count), sequence=SequenceStep(name, is_start=True))
        answers = [network.submit(rows_of(1, 3), sequence=SequenceStep(name)) for name in "ab"]
        with pytest.raises(InputError, match=r"a step has \[3\] samples, but its sequence has \[1\]"):
            answers[0].result(30)
        np.testing.assert_array_equal(answers[1].result(30)["y"], np.full((3, 2), 2))


def test_what_is_loaded_again_is_not_what_was_removed_or_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    from glow_mlir.host import network_plan

    models = [layer(1000), layer(1001)]
    with Host(memory_bytes=1) as host:
        host.add("a", models[0], dimensions={"N": 1})
        host.add("b", models[1], dimensions={"N": 1})
        made_network, gate = network_plan.NetworkPlan.network, Gate()

        def gated(plan: Any, timetable: Any) -> Any:
            if plan.name == "a" and plan.model is models[0]:
                gate.pass_through()
            return made_network(plan, timetable)

        monkeypatch.setattr(network_plan.NetworkPlan, "network", gated)
        found = list[Any]()

        def ask() -> None:
            try:
                found.append(next(iter(host.run("a", rows_of(1)).values())).shape)
            except UnknownNetworkError as error:
                found.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        assert gate.entered.acquire(timeout=30)
        host.add("a", models[1], dimensions={"N": 1})
        gate.open()
        thread.join(60)
        assert found == [(1, 1001)]
        host.remove("a")
        with pytest.raises(UnknownNetworkError):
            host.run("a", rows_of(1))


def test_a_worker_that_ends_in_a_direct_call_is_replaced(tmp_path: Path) -> None:
    onnx.save(layer(5), tmp_path / "net.onnx")
    with Host() as host:
        network = host.add("net", tmp_path / "net.onnx", workers="processes")
        runner: Any = network.replicas[0].runner
        asked = runner._asked

        def kill(child: Any, arrays: Any) -> Any:
            os.kill(child.pid, signal.SIGKILL)
            runner._asked = asked
            return asked(child, arrays)

        runner._asked = kill
        assert next(iter(network.run(rows_of(1)).values())).shape == (1, 5)
        assert network.statistics.counts["failed"] == 0


def test_an_interrupted_call_leaves_no_answer_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from glow_mlir.host import processes

    lookup(tmp_path / "net.onnx")
    with Host() as host:
        network = host.add("net", tmp_path / "net.onnx", workers="processes")
        name, left = "_received", [None]
        received: Any = getattr(processes, name)

        def interrupted(child: Any) -> Any:
            if left:
                left.pop()
                raise KeyboardInterrupt
            return received(child)

        monkeypatch.setattr(processes, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            network.run({"i": np.array([1, 1])})
        for n in (2, 3, 0):
            (found,) = network.run({"i": np.array([n, n])}).values()
            np.testing.assert_array_equal(found[0], np.arange(3 * n, 3 * n + 3))


def test_calls_that_fail_keep_no_memory(tmp_path: Path) -> None:
    lookup(tmp_path / "net.onnx")
    with Host() as host:
        network = host.add("net", tmp_path / "net.onnx", workers="processes")
        network.run({"i": np.array([1, 1])})
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            with pytest.raises(ExecutionError):
                network.run({"i": np.array([1, 9])})
        assert len(os.listdir("/proc/self/fd")) <= before + 2
        runner = network.replicas[0].runner
        assert isinstance(runner, ProcessRunner)
        runner.close()
        with pytest.raises(ExecutionError):
            network.run({"i": np.array([1, 1])})


def test_a_fork_has_threads_of_its_own() -> None:
    with made(lambda x: x * 2, calls=2) as network:
        for answer in [network.submit(rows_of(1)) for _ in range(8)]:
            answer.result(30)
        child = os.fork()
        if child == 0:
            try:
                found = network.submit(rows_of(3)).result(20)["y"]
                os._exit(0 if (found == 6).all() else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        network.submit(rows_of(1)).result(30)


def test_the_time_of_requests_ends_in_a_fork_as_well() -> None:
    def compute(x: np.ndarray) -> np.ndarray:
        time.sleep(0.5)
        return x

    with made(compute) as network:
        # So that the parent has a thread that looks at times, and is looking.
        ended = network.submit(rows_of(1), timeout=0.05)
        with pytest.raises(TimeLimitError):
            ended.result(30)
        child = os.fork()
        if child == 0:
            try:
                first, second = network.submit(rows_of(3)), network.submit(rows_of(4), timeout=0.05)
                is_late = isinstance(second.exception(20), TimeLimitError)
                os._exit(0 if is_late and (first.result(20)["y"] == 3).all() else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with pytest.raises(TimeLimitError):
            network.submit(rows_of(1), timeout=0.05).result(30)


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_fork_has_workers_of_its_own(tmp_path: Path, *, is_closed: bool) -> None:
    g = GraphBuilder(0)
    model = g.model({"x": (TensorProto.FLOAT, (1, 8))}, {linear(g, "x", 8, 4): (1, 4)})
    onnx.save(model, tmp_path / "model.onnx")
    x = {"x": np.ones((1, 8), np.float32)}
    with Host() as host:
        network = host.add("model", tmp_path / "model.onnx", workers="processes")
        (wanted,) = network.run(x).values()
        runner = network.replicas[0].runner
        assert isinstance(runner, ProcessRunner)
        pid = runner.pid
        child = os.fork()
        if child == 0:
            try:
                (found,) = network.run(x).values()
                is_own = runner.pid != pid
                if is_closed:
                    host.close()
                os._exit(0 if is_own and (found == wanted).all() else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        (found,) = network.run(x).values()
        np.testing.assert_array_equal(found, wanted)
        assert runner.pid == pid
