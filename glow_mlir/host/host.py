"""`Host`: networks behind queues; networks can be added and removed while others are serving."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from glow_mlir.errors import OptionError, UnknownNetworkError
from glow_mlir.host.network import Network
from glow_mlir.host.network_plan import NetworkPlan
from glow_mlir.host.requests import Answer, Outputs
from glow_mlir.host.timetable import Timetable
from glow_mlir.options.declaration import declared
from glow_mlir.options.hosting import HostingOptions
from glow_mlir.runtime.queue_trace import QueueTrace, tracing
from glow_mlir.runtime.specializations import SpecializationLimits
from glow_mlir.runtime.trace import chrome_trace
from glow_mlir.support.forks import reset_in_forks
from glow_mlir.support.keywords import with_known_keywords

Asked = TypeVar("Asked")

Key = tuple[str, str]
"""The name and version of a network."""


class Host:
    """
    Networks behind queues (Glow's HostManager, paper §6), for any number of threads and loops of asyncio.

    Each model is compiled once, or found in the cache, and computed by replicas, several requests together where it has
    a batch. Requests beyond what a queue takes are refused at once. `close` ends all that there is, as does the end of
    a `with` statement.
    """

    @with_known_keywords
    def __init__(self, *, memory_bytes: int = 0) -> None:
        """
        `memory_bytes` limits the memory of networks, 0 for no limit: the least recently used networks beyond it are
        unloaded, and loaded again at the next request. Unbounded loops are limited to the same amount.
        """
        self._memory_bytes = memory_bytes
        self._plans: dict[Key, NetworkPlan] = {}
        self._networks: dict[Key, Network] = {}
        """The loaded networks."""
        self._timetable = Timetable("glow-host-timetable")
        self._is_closed = False
        self.reset_after_fork()
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Replace the locks in a child of `os.fork`, because those of the parent may be held forever."""
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        """A lock for reloading unloaded networks."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ---- networks ----

    def add(
        self,
        name: str,
        model: Any,
        *,
        version: str = "1",
        devices: str | Sequence[str] = "",
        **given: Any,
    ) -> Network:
        """
        Serve a model by a name; one of the same name and version is served by it from now on.

        It may be all that `InferenceSession` takes, with the same keywords, and those of `HostingOptions`: `queue`,
        `batch`, `delay`, `replicas`, `stages`, `calls`, `workers`, `sequences`, `state`, `call_limit`. Several texts of
        `devices` are a replica each. The caller compiles it meanwhile; requests of others are served. Raises
        `GlowError` for whatever is wrong with the model or what is said, and then nothing has changed.
        """
        names = declared(HostingOptions)
        options = HostingOptions.from_keywords({word: value for word, value in given.items() if word in names})
        keywords = {word: value for word, value in given.items() if word not in names}
        if self._memory_bytes and options.stages == 1:  # Stages have no sizes that calls decide.
            keywords.setdefault("limits", SpecializationLimits(memory=self._memory_bytes))
        assignments = [devices] * options.replicas if isinstance(devices, str) else list(devices)
        if not assignments:
            raise OptionError("a network has no replicas", hint="devices='cpu', or several")
        plan = NetworkPlan(name, version, model, assignments, options, keywords)
        network = self._load(plan)
        assert network is not None
        return network

    def _load(self, plan: NetworkPlan, *, is_again: bool = False) -> Network | None:
        """
        Serve the network of a plan, and unload others if memory is short.

        Returns `None` for a reload of a network that was replaced or removed meanwhile.
        """
        key, network = (plan.name, plan.version), plan.network(self._timetable)
        with self._lock:
            is_stale = is_again and self._plans.get(key) is not plan
            is_late = self._is_closed or is_stale
            gone = [network] if is_late else [self._networks.get(key)]
            if not is_late:
                self._plans[key], self._networks[key] = plan, network
                gone += self._unloaded(network)
        for before in gone:
            if before is not None:
                before.close(wait=float("inf"))
        if is_stale:
            return None
        if is_late:
            raise OptionError("the host is closed", hint="another one")
        return network

    def _unloaded(self, kept: Network) -> list[Network]:
        """The least recently used networks to unload so that the rest fits into memory."""
        gone: list[Network] = []
        if not self._memory_bytes:
            return gone
        sizes = {key: network.memory_bytes for key, network in self._networks.items()}
        for key, network in sorted(self._networks.items(), key=lambda item: item[1].used):
            if sum(sizes.values()) <= self._memory_bytes:
                break
            if network is not kept and not network.waiting:
                del sizes[key]
                gone.append(self._networks.pop(key))
        return gone

    def remove(self, name: str, version: str | None = None, *, wait: float = 0.0) -> None:
        """
        Remove a network, or all its versions: waiting requests are computed for `wait` seconds, then cancelled.

        Raises `UnknownNetworkError`.
        """
        with self._lock:
            keys = [key for key in self._plans if key[0] == name and version in (None, key[1])]
            if not keys:
                raise self._unknown(name, version)
            for key in keys:
                del self._plans[key]
            gone = [self._networks.pop(key) for key in keys if key in self._networks]
        for network in gone:
            network.close(wait)

    def network(self, name: str, version: str | None = None) -> Network:
        """
        The network of a name, by default its latest version; it is loaded if necessary.

        Raises `UnknownNetworkError`.
        """
        while True:
            key = self.key_of(name, version)
            if key is None:
                raise self._unknown(name, version)
            if (found := self.loaded(key)) is not None:
                return found
            with self._loading:
                plan = self._plans.get(key)
                found = self.loaded(key) if plan is None else self.loaded(key) or self._load(plan, is_again=True)
            if found is not None:
                return found

    def key_of(self, name: str, version: str | None = None) -> Key | None:
        """Name and version of a network, by default the latest; `None` if there is none."""
        if version is not None:
            return (name, version) if (name, version) in self._plans else None
        return max((key for key in list(self._plans) if key[0] == name), key=_order, default=None)

    def loaded(self, key: Key) -> Network | None:
        """The network of a name and version, if it is loaded."""
        return self._networks.get(key)

    def _unknown(self, name: str, version: str | None) -> UnknownNetworkError:
        given = "" if version is None else f" of version {version}"
        return UnknownNetworkError(f"there is no network '{name}'{given}", hint=known_keys(name, list(self._plans)))

    @property
    def names(self) -> list[Key]:
        """Name and version of each network, loaded or not, in the order in which they were added."""
        return list(self._plans)

    @property
    def networks(self) -> list[Network]:
        """The loaded networks."""
        return list(self._networks.values())

    # ---- requests ----

    def run(self, name: str, inputs: Mapping[str, Any], *, version: str | None = None, **given: Any) -> Outputs:
        """The outputs of a network, as from `Network.run`."""
        return self._asked(name, version, given, lambda network: network.run(inputs, **given))

    def submit(self, name: str, inputs: Mapping[str, Any], *, version: str | None = None, **given: Any) -> Answer:
        """A future for the outputs of a network, as from `Network.submit`."""
        return self._asked(name, version, given, lambda network: network.submit(inputs, **given))

    async def infer(self, name: str, inputs: Mapping[str, Any], *, version: str | None = None, **given: Any) -> Outputs:
        """The outputs of a network, as from `Network.infer`."""
        return await asyncio.wrap_future(self.submit(name, inputs, version=version, **given))

    def _asked(self, name: str, version: str | None, given: dict[str, Any], ask: Callable[[Network], Asked]) -> Asked:
        """The result of a network; if it was unloaded or replaced meanwhile, the request is submitted again."""
        # A retry reads iterators again.
        if isinstance(outputs := given.get("outputs"), Iterator):
            given["outputs"] = tuple(cast("Iterator[object]", outputs))
        while True:
            network = self.network(name, version)
            try:
                return ask(network)
            except UnknownNetworkError:
                if network.is_ready:
                    raise

    @contextmanager
    def tracing(self, path: str | os.PathLike[str]) -> Generator[None]:
        """
        Write a trace of all requests, calls and device queues inside the `with` statement to a file, in Chrome's JSON
        format.
        """
        trace = QueueTrace()
        try:
            with tracing(trace):
                yield
        finally:
            from glow_mlir.ir.text import write_text

            write_text(chrome_trace(trace.events(), "host", trace.queues), Path(path))

    def data(self) -> list[dict[str, object]]:
        """The status and statistics of all networks, for JSON."""
        return [network.data() for network in self.networks]

    def close(self, *, wait: float = 0.0) -> None:
        """Remove all networks, as by `remove`, and accept no others."""
        with self._lock:
            self._is_closed = True
            gone = list(self._networks.values())
            self._networks.clear()
            self._plans.clear()
        for network in gone:
            network.close(wait)
        self._timetable.close()


def known_keys(name: str, keys: Collection[Key]) -> str:
    """A hint for an unknown network: its versions, or the names of all networks if it has none."""
    versions = [version for _, version in sorted((key for key in keys if key[0] == name and key[1]), key=_order)]
    if versions:
        return f"'{name}' has version{'s' * (len(versions) > 1)} {', '.join(versions)}"
    return f"there are {', '.join(sorted({known for known, _ in keys})) or 'none'}"


def _order(key: Key) -> tuple[int, int | str]:
    """A sort key of versions: numbers numerically, after others alphabetically."""
    return (1, int(key[1])) if key[1].isdecimal() else (0, key[1])
