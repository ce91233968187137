"""`Host`: networks behind queues, which are added and removed while others are served."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from glow_mlir.errors import OptionError, UnknownNetworkError
from glow_mlir.host.network import Network
from glow_mlir.host.network_plan import NetworkPlan
from glow_mlir.host.requests import Answer, Outputs
from glow_mlir.host.timetable import Timetable
from glow_mlir.options.declaration import declared
from glow_mlir.options.hosting import HostingOptions

Key = tuple[str, str]
"""Name and version of a network."""


class Host:
    """
    Networks behind queues (Glow's HostManager, paper §4.5), for any number of threads and loops of asyncio.

    Each model is compiled once, or found in the cache, and computed by replicas, several requests together where it has
    a batch. Requests beyond what a queue takes are refused at once. `close` ends all that there is, as does the end of
    a `with` statement.
    """

    def __init__(self) -> None:
        self._networks: dict[Key, Network] = {}
        self._lock = threading.Lock()
        self._timetable = Timetable("glow-host-timetable")
        self._is_closed = False

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
        entry: str | None = None,
        **said: Any,
    ) -> Network:
        """
        Serve a model by a name; one of the same name and version is served by it from now on.

        It may be all that `InferenceSession` takes, with the same keywords, and those of `HostingOptions`: `queue`,
        `batch`, `delay`, `replicas`, `calls`, `call_limit`. Several texts of `devices` are a replica each. The caller
        compiles it meanwhile; requests of others are served. Raises `GlowError` for whatever is wrong with the model or
        what is said, and then nothing has changed.
        """
        names = declared(HostingOptions)
        options = HostingOptions(**{word: value for word, value in said.items() if word in names})
        options.check()
        keywords = {word: value for word, value in said.items() if word not in names}
        places = [devices] * options.replicas if isinstance(devices, str) else list(devices)
        if not places:
            raise OptionError("a network has no replicas", hint="devices='cpu', or several")
        plan = NetworkPlan(name, version, model, places, entry, options, keywords)
        network = plan.network(self._timetable)
        with self._lock:
            if is_late := self._is_closed:
                before = network
            else:
                before = self._networks.get((name, version))
                self._networks[name, version] = network
        if before is not None:
            before.close(wait=float("inf"))
        if is_late:
            raise OptionError("the host is closed", hint="another one")
        return network

    def remove(self, name: str, version: str | None = None, *, wait: float = 0.0) -> None:
        """
        Serve a network no more, or all versions of it: those that wait are computed for so many seconds, others end.

        Raises `UnknownNetworkError`.
        """
        with self._lock:
            keys = [key for key in self._networks if key[0] == name and version in (None, key[1])]
            if not keys:
                raise self._unknown(name, version)
            gone = [self._networks.pop(key) for key in keys]
        for network in gone:
            network.close(wait)

    def network(self, name: str, version: str | None = None) -> Network:
        """The network of that name, of the latest version where none is said; raises `UnknownNetworkError`."""
        if version is not None:
            found = self._networks.get((name, version))
        else:
            versions = [key for key in list(self._networks) if key[0] == name]
            found = self._networks.get(max(versions, key=_order)) if versions else None
        if found is None:
            raise self._unknown(name, version)
        return found

    def _unknown(self, name: str, version: str | None) -> UnknownNetworkError:
        known = ", ".join(f"{key[0]} {key[1]}" for key in self._networks) or "none"
        said = "" if version is None else f" of version {version}"
        return UnknownNetworkError(f"there is no network '{name}'{said}", hint=f"there are {known}")

    @property
    def networks(self) -> list[Network]:
        """All networks, in the order in which they were added."""
        return list(self._networks.values())

    # ---- requests ----

    def run(self, name: str, inputs: Mapping[str, Any], *, version: str | None = None, **said: Any) -> Outputs:
        """The outputs of a network, as `Network.run` gives them."""
        return self.network(name, version).run(inputs, **said)

    def submit(self, name: str, inputs: Mapping[str, Any], *, version: str | None = None, **said: Any) -> Answer:
        """A future with the outputs of a network, as `Network.submit` gives it."""
        return self.network(name, version).submit(inputs, **said)

    async def infer(self, name: str, inputs: Mapping[str, Any], *, version: str | None = None, **said: Any) -> Outputs:
        """The outputs of a network, as `Network.infer` gives them."""
        return await self.network(name, version).infer(inputs, **said)

    def data(self) -> list[dict[str, object]]:
        """What there is and how it fares, as JSON has it."""
        return [network.data() for network in self.networks]

    def close(self, *, wait: float = 0.0) -> None:
        """Remove all networks, as `remove` does each, and take no others."""
        with self._lock:
            self._is_closed = True
            gone = list(self._networks.values())
            self._networks.clear()
        for network in gone:
            network.close(wait)
        self._timetable.close()


def _order(key: Key) -> tuple[int, int | str]:
    """Versions that are numbers in their order, behind others by their letters."""
    return (1, int(key[1])) if key[1].isdecimal() else (0, key[1])
