"""Sequences: steps on the state that the one before left, of sessions with state and of models that return it."""

from __future__ import annotations

import random
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from host_networks import threads_left
from onnx import TensorProto, helper
from small_models import counter

from glow_mlir.errors import ExecutionError, InputError, OptionError, QueueFullError
from glow_mlir.host import sequences
from glow_mlir.host.host import Host
from glow_mlir.host.network import Network
from glow_mlir.host.sequences import SequenceStep


@pytest.fixture
def host() -> Generator[Host]:
    """A host that leaves nothing behind."""
    with Host() as made:
        yield made
    assert not threads_left()


def summing(rows: int | str = "N") -> onnx.ModelProto:
    """A model whose state is what its inputs add up to, and whose result is twice that."""
    nodes = [helper.make_node("Add", ["x", "before"], ["after"]), helper.make_node("Add", ["after", "after"], ["y"])]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, 2]) for name in names]
        for names in (("x", "before"), ("y", "after"))
    )
    return helper.make_model(helper.make_graph(nodes, "graph", inputs, outputs), ir_version=9)


PAIRS = {"after": "before"}


def step(network: Network, name: int | str, number: float, **said: Any) -> Any:
    """A step of a sequence, and what it gives."""
    inputs = {"x": np.full((1, 2), number, np.float32)}
    return network.submit(inputs, sequence=SequenceStep(name, **said))


def test_outputs_are_inputs_of_the_next_step(host: Host) -> None:
    network = host.add("model", summing(), state=PAIRS, batch=4)
    for number, total in ((1, 2), (2, 6), (3, 12)):
        found = step(network, "a", number, is_start=number == 1, is_end=number == 3).result(30)
        assert found.keys() == {"y"}
        np.testing.assert_array_equal(found["y"], [[total, total]])
    with pytest.raises(InputError, match="the sequence 'a' of 'model' has not begun"):
        step(network, "a", 1)
    plain = {"x": np.ones((1, 2), np.float32)}
    assert network.run(plain).keys() == {"y"}
    assert [[item.name for item in side] for side in (network.inputs, network.outputs)] == [["x"], ["y"]]
    with pytest.raises(InputError, match="input 'before' is state, which the server keeps"):
        network.run({**plain, "before": plain["x"]})
    with pytest.raises(InputError, match="output 'after' cannot be requested"):
        network.submit(plain, outputs=["after"], sequence=SequenceStep("b", is_start=True))


def test_steps_are_in_order_and_sequences_together(host: Host) -> None:
    network = host.add("model", summing(), state=PAIRS, batch=8, queue=10_000)
    answers: list[tuple[int, float, Any]] = []
    totals = [0.0] * 20
    rng = random.Random(0)
    for name in range(20):
        answers.append((name, 0.0, step(network, name, 0, is_start=True)))
    for _ in range(400):
        name = rng.randrange(20)
        totals[name] += name
        answers.append((name, 2 * totals[name], step(network, name, name)))
    for _, total, answer in answers:
        np.testing.assert_array_equal(answer.result(60)["y"], [[total, total]])
    assert network.data()["calls"] != network.data()["samples"]


@pytest.fixture
def counting(host: Host, tmp_path: Path) -> Network:
    """A network with a session that counts."""
    module = tmp_path / "counter.mlir"
    module.write_text(counter(), encoding="utf-8")
    return host.add("counter", module)


def test_a_session_exchanges_its_state(counting: Network) -> None:
    x, totals = np.ones(4, np.float32), dict.fromkeys(range(5), 0)
    rng = random.Random(0)
    for name in range(5):
        counting.run({"x": x}, sequence=SequenceStep(name, is_start=True))
        totals[name] += 1
    for _ in range(60):
        name = rng.randrange(6)
        if name == 5:  # Requests of no sequence have a state of their own.
            totals[5] = totals.get(5, 0) + 1
            (found,) = counting.run({"x": x}).values()
        else:
            totals[name] += 1
            (found,) = counting.run({"x": x}, sequence=SequenceStep(name)).values()
        np.testing.assert_array_equal(found, np.full(4, totals[name], np.float32))
    (found,) = counting.run({"x": x}, sequence=SequenceStep(2, is_start=True)).values()
    np.testing.assert_array_equal(found, x)


def test_clients_have_sequences_of_their_own(counting: Network) -> None:
    def client(name: int) -> list[float]:
        steps = [SequenceStep(name, is_start=n == 0, is_end=n == 19) for n in range(20)]
        return [float(next(iter(counting.run({"x": np.ones(4, np.float32)}, sequence=s).values()))[0]) for s in steps]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(client, range(8))) == [[float(n) for n in range(1, 21)]] * 8


def test_a_step_that_is_not_computed_ends_the_sequence(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    network = host.add("model", summing(), state=PAIRS, calls=1)
    runner: Any = network.replicas[0].runner
    computed, gate = runner.run, threading.Event()

    def gated(inputs: Any) -> Any:
        gate.wait(60)
        return computed(inputs)

    monkeypatch.setattr(runner, "run", gated)
    first, second, third = (step(network, 7, n, is_start=n == 0) for n in range(3))
    assert second.cancel()
    gate.set()
    first.result(30)
    with pytest.raises(ExecutionError, match="the sequence 7 of 'model' has lost its state"):
        third.result(30)
    with pytest.raises(InputError, match="has not begun"):
        step(network, 7, 1)
    step(network, 7, 1, is_start=True).result(30)


def test_there_are_only_so_many_sequences(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    network = host.add("model", summing(), state=PAIRS, sequences=2)
    for name in "ab":
        step(network, name, 1, is_start=True).result(30)
    with pytest.raises(QueueFullError, match="'model' has 2 sequences"):
        step(network, "c", 1, is_start=True)
    monkeypatch.setattr(sequences, "IDLE", 0.0)
    step(network, "c", 1, is_start=True).result(30)
    with pytest.raises(InputError, match="the sequence 'a' of 'model' has not begun, or was dropped"):
        step(network, "a", 1)
    step(network, "b", 1).result(30)


def test_what_makes_no_sense_is_told(host: Host, tmp_path: Path) -> None:
    wrong: Any = (
        ({"state": {"after": "x1"}}, "output 'after' to input 'x1', and one of them does not exist"),
        ({"state": {"w": "before"}}, "output 'w' to input 'before', and one of them does not exist"),
    )
    for said, reason in wrong:
        with pytest.raises(OptionError, match=reason):
            host.add("model", summing(), **said)
    module = tmp_path / "counter.mlir"
    module.write_text(counter(), encoding="utf-8")
    unfit: Any = ({"replicas": 2}, {"workers": "processes"}, {"state": {"y": "x"}}, {"calls": 2})
    for said in unfit:
        with pytest.raises(OptionError, match="the state of 'model' is kept in its session"):
            host.add("model", module, **said)
    network = host.add("model", summing())
    with pytest.raises(InputError, match="'model' has no state"):
        step(network, 1, 1, is_start=True)
