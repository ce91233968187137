"""Networks for tests of servers: numpy functions behind a thread, and a repository that has some."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from glow_mlir.errors import GlowError, InputError
from glow_mlir.host.sequences import SequenceStep
from glow_mlir.runtime.signature import Argument
from glow_mlir.serving.errors import UnknownModelError
from glow_mlir.serving.models import READY, ModelState
from glow_mlir.support.dtypes import STRING

Outputs = dict[str, np.ndarray]
Function = Callable[[Mapping[str, np.ndarray]], Outputs]


class FakeNetwork:
    """A network that is a function; `requests` is what came, and `cancelled` how many of it were cancelled."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[Argument],
        outputs: Sequence[Argument],
        function: Function,
        *,
        version: str = "1",
        max_batch: int = 0,
    ) -> None:
        self.name = name
        self.version = version
        self.inputs = inputs
        self.outputs = outputs
        self.max_batch = max_batch
        self.is_ready = True
        self.succeeded = 0
        self.requests: list[dict[str, Any]] = []
        self.cancelled = threading.Event()
        self._function = function
        self._threads = ThreadPoolExecutor(4, thread_name_prefix=f"fake-{name}")

    def data(self) -> Mapping[str, Any]:
        return {
            "name": self.name,
            "version": self.version,
            "waiting": 0,
            "succeeded": self.succeeded,
            "calls": self.succeeded,
            "samples": self.succeeded,
            "request_seconds": {"mean": 0.5},
        }

    def submit(
        self,
        inputs: Mapping[str, np.ndarray],
        *,
        outputs: Sequence[str] | None = None,
        priority: int = 0,
        timeout: float | None = None,
        sequence: SequenceStep | None = None,
    ) -> Future[Outputs]:
        said = {"outputs": outputs, "priority": priority, "timeout": timeout, "sequence": sequence}
        self.requests.append(said)
        future: Future[Outputs] = Future()
        future.add_done_callback(self._ended)
        self._threads.submit(self._compute, dict(inputs), outputs, future)
        return future

    def close(self) -> None:
        self._threads.shutdown()

    def _ended(self, future: Future[Outputs]) -> None:
        if future.cancelled():
            self.cancelled.set()

    def _compute(self, inputs: dict[str, np.ndarray], wanted: Sequence[str] | None, future: Future[Outputs]) -> None:
        try:
            found = self._function(inputs)
            result = found if wanted is None else {name: found[name] for name in wanted}
        except Exception as error:
            if not future.cancelled():
                future.set_exception(error)
            return
        self.succeeded += 1
        if not future.cancelled():
            future.set_result(result)


class FakeModels:
    """A repository that has some networks, which may be unloaded and loaded again."""

    def __init__(self, networks: Iterable[FakeNetwork]) -> None:
        self._all = {network.name: network for network in networks}
        self._loaded = dict(self._all)
        self.configs: list[Mapping[str, Any] | None] = []

    def find(self, name: str, version: str = "") -> FakeNetwork:
        network = self._loaded.get(name)
        if network is None or version not in ("", network.version):
            raise UnknownModelError(f"there is no model '{name}'" + (f" in version {version}" if version else ""))
        return network

    def names(self) -> list[ModelState]:
        return [
            ModelState(name, network.version, READY if name in self._loaded else "UNAVAILABLE")
            for name, network in self._all.items()
        ]

    def load(self, name: str, config: Mapping[str, Any] | None) -> None:
        if name not in self._all:
            raise UnknownModelError(f"there is no model '{name}'")
        self.configs.append(config)
        self._loaded[name] = self._all[name]

    def unload(self, name: str) -> None:
        self.find(name)
        del self._loaded[name]

    def close(self) -> None:
        for network in self._all.values():
            network.close()


def echo(name: str, dtype: str, shape: tuple[int | str, ...] = ("N",)) -> FakeNetwork:
    """A network whose output `y` is its input `x`."""
    return FakeNetwork(
        name, [Argument("x", dtype, shape)], [Argument("y", dtype, shape)], lambda given: {"y": given["x"]}
    )


def sums() -> FakeNetwork:
    """A network with two inputs and two outputs: `sum` and `difference` of `a` and `b`."""
    inputs = [Argument(name, "float32", ("N", 4)) for name in ("a", "b")]
    outputs = [Argument(name, "float32", ("N", 4)) for name in ("sum", "difference")]

    def function(given: Mapping[str, np.ndarray]) -> Outputs:
        return {"sum": given["a"] + given["b"], "difference": given["a"] - given["b"]}

    return FakeNetwork("sums", inputs, outputs, function, version="3", max_batch=8)


def slow(seconds: float) -> FakeNetwork:
    """A network that takes so long."""

    def function(given: Mapping[str, np.ndarray]) -> Outputs:
        time.sleep(seconds)
        return {"y": given["x"]}

    return FakeNetwork("slow", [Argument("x", "float32", (2,))], [Argument("y", "float32", (2,))], function)


def failing() -> FakeNetwork:
    """A network that fails by the number that it gets: by an error of ours, of the input, or of the program."""
    errors = [GlowError("it does not work"), InputError("it is no input"), ZeroDivisionError("secret")]

    def function(given: Mapping[str, np.ndarray]) -> Outputs:
        raise errors[int(given["x"][0])]

    return FakeNetwork("failing", [Argument("x", "int64", (1,))], [Argument("y", "int64", (1,))], function)


def repository() -> FakeModels:
    """A repository that has one of each."""
    echoes = [echo("echo", "float32", ("N", 3)), echo("half", "float16"), echo("words", STRING, ("N", 2))]
    return FakeModels([*echoes, sums(), slow(0.6), failing()])
