"""Networks of a host for tests, whose replicas compute what a function of numpy does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from glow_mlir.api.model_session import ModelSession
from glow_mlir.host.batches import Batches, NoBatches
from glow_mlir.host.network import Network
from glow_mlir.host.replicas import Replica
from glow_mlir.host.timetable import Timetable
from glow_mlir.options.hosting import HostingOptions
from glow_mlir.runtime.device_array import Tensor, on_host

Compute = Callable[[np.ndarray], np.ndarray]


class Gate:
    """Lets calls through when it is open; before that they wait, and tell that they are there."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self._opened = threading.Event()

    def pass_through(self) -> None:
        """Wait until it is open."""
        self.entered.release()
        self._opened.wait(60)

    def through(self, x: np.ndarray) -> np.ndarray:
        """What waits there, as it is."""
        self.pass_through()
        return x

    def open(self) -> None:
        """Let all calls through from now on."""
        self._opened.set()


class FunctionRunner:
    """Computes the output `y` of the input `x`."""

    memory_bytes = 0
    is_replaced = False

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self.is_closed = False

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
        """What the function makes of the input."""
        assert not self.is_closed
        return {"y": self._compute(on_host(inputs["x"]))}

    def interrupt(self) -> None:
        """A function cannot be ended."""

    def close(self) -> None:
        """Nobody calls it any more."""
        self.is_closed = True


@cache
def session() -> ModelSession:
    """A session of `y = -x`, of which samples have two numbers."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "graph", [x], [y])
    return ModelSession.of(helper.make_model(graph, ir_version=9), dimensions={"N": (1, 1 << 12)})


def rows_of(number: float, count: int = 1) -> dict[str, np.ndarray]:
    """Inputs of so many samples of a number."""
    return {"x": np.full((count, 2), number, np.float32)}


@contextmanager
def _closed(network: Network, timetable: Timetable) -> Generator[Network]:
    try:
        yield network
    finally:
        network.close()
        timetable.close()


def made(*computes: Compute, calls: int = 1, **said: Any) -> Any:
    """A network with a replica for each function, that ends with the `with` statement."""
    options, timetable, first = HostingOptions(**said), Timetable("glow-host-timetable"), session().first
    options.check()
    batches = Batches("N", first.inputs, first.outputs, options.batch) if options.batch > 1 else NoBatches()
    replicas = [
        (Replica(f"replica {number}", FunctionRunner(compute)), calls) for number, compute in enumerate(computes)
    ]
    return _closed(Network("model", "1", first, replicas, batches, options, timetable), timetable)


def threads_left(seconds: float = 10.0) -> list[threading.Thread]:
    """The threads of hosts that have not ended so many seconds later: those that hung end when they are let go."""
    end = time.monotonic() + seconds
    while found := [thread for thread in threading.enumerate() if thread.name.startswith("glow-host")]:
        if time.monotonic() > end:
            break
        time.sleep(0.001)
    return found
