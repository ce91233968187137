"""Protocol-independent requests to a server other than inference, shared by HTTP and gRPC."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from glow_mlir.errors import InputError, OptionError, UnknownNetworkError
from glow_mlir.runtime.signature import Argument
from glow_mlir.serving.access import local_names
from glow_mlir.serving.datatypes import datatype_of
from glow_mlir.serving.errors import ForbiddenError, NotReadyError, OverloadError, UnauthorizedError
from glow_mlir.serving.json_decoders import JsonDecoders
from glow_mlir.serving.json_text import is_list, read_json
from glow_mlir.serving.models import READY, Models, Network
from glow_mlir.serving.shared_memory import DeviceRegions, Regions
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import STRING, onnx_word

if TYPE_CHECKING:
    from glow_mlir.serving.generators import Generators

NAME = "glow"
"""Name, platform and backend of the server."""

EXTENSIONS = ("binary_tensor_data", "logging", "model_configuration", "sequence", "statistics", "trace")

TRACE = {
    "trace_level": ["OFF"],
    "trace_rate": "0",
    "trace_count": "-1",
    "log_frequency": "0",
    "trace_file": "",
    "trace_mode": "triton",
}
"""Trace settings in Triton's terms: clients cannot enable traces. Programs can, with `Host.tracing`."""

LOG = {
    "log_file": "",
    "log_info": False,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}
"""Log settings in Triton's terms: warnings and errors go to standard error."""

CONTROL_EXTENSION, MEMORY_EXTENSION = "model_repository", "system_shared_memory"

NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class Limits:
    """The limits of a server."""

    body_bytes: int = 256 << 20
    """Maximum bytes of a request, also after decompression."""
    json_bytes: int = 32 << 20
    """Maximum bytes of JSON in a request; decoding takes up to 60 times as much memory."""
    message_bytes: int = 32 << 20
    """Maximum bytes of a gRPC message, also after decompression; less than 2 GiB. gRPC assembles a message at once."""
    control_bytes: int = 256 << 10
    """Maximum bytes of a request other than inference."""
    memory_bytes: int = 2 << 30
    """The maximum memory of all requests at once, in bytes, with their decoded tensors and their responses."""
    body_seconds: float = 30.0
    """Time limit for receiving a request body in seconds."""
    response_seconds: float = 30.0
    """Time limit for a gRPC client to read a response in seconds, in addition to the time for its bytes."""
    response_rate: int = 1 << 17
    """The assumed minimum read rate of a gRPC client, in bytes per second."""
    stream_seconds: float = 300.0
    """Time limit of an idle gRPC stream in seconds."""
    requests: int = 1024
    """Maximum number of concurrent requests and gRPC calls, including calls whose messages have not arrived."""
    request_seconds: float = 60.0
    """The default and maximum computation time of a request in seconds."""


class Service:
    """The service of one server, for the thread of one event loop."""

    def __init__(
        self,
        models: Models,
        *,
        limits: Limits | None = None,
        metrics: Callable[[], str] | None = None,
        control: bool = False,
        shared_memory: bool = False,
        token: str = "",
    ) -> None:
        """
        `metrics` returns the text for Prometheus. With a `token`, all requests except health checks must present it.
        With `control`, clients may load and unload models, and with `shared_memory`, share memory of this machine.
        """
        self.models = models
        self.limits = limits or Limits()
        self.metrics = metrics
        self.regions = Regions()
        self.device_regions = DeviceRegions()
        self.has_control = control
        self.shares_memory = shared_memory
        self.generators: Generators | None = None
        """The models that generate text, by OpenAI's API; `None` if there are none."""
        self.names: frozenset[str] | None = None
        """The host names accepted in HTTP requests; `None` for any, as at addresses other than loopback."""
        self.decoders = JsonDecoders()
        """Decodes long JSON."""
        self._loaders = ThreadPoolExecutor(4, thread_name_prefix="glow-serve-load")
        """Load and unload models in a thread of their own, so that requests are not delayed."""
        self.has_token = bool(token)
        self._bearer = f"Bearer {token}".encode()
        self.is_open = True
        """Whether the server reports ready; false during shutdown."""
        self.running = 0
        """The number of running requests."""
        self.held_bytes = 0
        """The bytes held by their bodies."""

    def authorize(self, authorization: bytes) -> None:
        """
        Raise `UnauthorizedError` unless the `authorization` header has the token; the comparison takes constant time.
        """
        if self.has_token and not hmac.compare_digest(self._bearer, authorization):
            raise UnauthorizedError("the request has no valid token", hint="Authorization: Bearer TOKEN")

    # ---- load ----

    def enter(self) -> None:
        """Count a request; raises `OverloadError` if there are too many."""
        if self.running >= self.limits.requests:
            raise OverloadError(f"the server already has {self.running} requests", hint="later")
        self.running += 1

    def leave(self) -> None:
        """A request was answered."""
        self.running -= 1

    def hold(self, size: int) -> None:
        """Charge bytes; raises `OverloadError` beyond the limit."""
        if self.held_bytes + size > self.limits.memory_bytes:
            raise OverloadError(f"the requests at the server already hold {self.held_bytes} bytes", hint="later")
        self.held_bytes += size

    def release(self, size: int) -> None:
        """Return charged bytes."""
        self.held_bytes -= size

    def timeout(self, wanted: float | None) -> float:
        """The time limit of a request in seconds, given the requested one."""
        most = self.limits.request_seconds
        return most if wanted is None else min(most, wanted)

    # ---- what it is ----

    def is_ready(self) -> bool:
        """Whether the server accepts requests."""
        return self.is_open

    def metadata(self) -> dict[str, Any]:
        """Name, version and extensions of the server."""
        extensions = [*EXTENSIONS]
        if self.has_control:
            extensions.append(CONTROL_EXTENSION)
        if self.shares_memory:
            extensions.append(MEMORY_EXTENSION)
        return {"name": NAME, "version": _own_version(), "extensions": extensions}

    def find(self, name: str, version: str = "") -> Network:
        """A network; raises `UnknownModelError`."""
        return self.models.find(name, version)

    def is_model_ready(self, name: str, version: str = "") -> bool:
        """Whether a model accepts requests; raises `UnknownModelError`."""
        try:
            return self.models.find(name, version).is_ready
        except NotReadyError:
            return False

    def model_metadata(self, name: str, version: str = "") -> dict[str, Any]:
        """
        The inputs and outputs of a model; raises `UnknownModelError`, and `UnsupportedError` for unsupported types.
        """
        network = self.models.find(name, version)
        versions = [state.version for state in self.models.names() if state.name == name and state.state == READY]
        return {
            "name": network.name,
            "versions": versions or [network.version],
            "platform": NAME,
            "inputs": [_tensor(argument) for argument in network.inputs],
            "outputs": [_tensor(argument) for argument in network.outputs],
        }

    def config(self, name: str, version: str = "") -> dict[str, Any]:
        """The configuration of a model in Triton's format; shapes of batched models omit the batch."""
        network = self.models.find(name, version)
        skipped = int(network.max_batch > 0)
        return {
            "name": network.name,
            "platform": NAME,
            "backend": NAME,
            "max_batch_size": network.max_batch,
            "input": [_configured(argument, skipped) for argument in network.inputs],
            "output": [_configured(argument, skipped) for argument in network.outputs],
        }

    def statistics(self, name: str = "", version: str = "") -> list[dict[str, Any]]:
        """The statistics of a model, or of all ready ones, in Triton's format; raises `UnknownModelError`."""
        networks = [self.models.find(name, version)] if name else self.ready_networks()
        return [_statistics(network) for network in networks]

    def ready_networks(self) -> list[Network]:
        """All versions of networks that accept requests."""
        found: list[Network] = []
        for state in self.models.names():
            try:
                if state.state == READY:
                    found.append(self.models.find(state.name, state.version))
            except (NotReadyError, UnknownNetworkError):  # It was unloaded meanwhile.
                continue
        return found

    # ---- settings ----

    def trace_settings(self, name: str = "", wanted: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """
        The trace settings of a model or of all, which clients may only set to their present values.

        Raises `ForbiddenError` for other values, and `UnknownModelError`.
        """
        if name:
            self.models.find(name)
        return _unchanged("traces", TRACE, wanted or {}, "programs set it by Host.tracing")

    def log_settings(self, wanted: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """The log settings, which clients may only set to their present values; raises `ForbiddenError` for others."""
        return _unchanged("the log", LOG, wanted or {}, "redirect the server's standard error instead")

    # ---- the repository ----

    def index(self, *, is_ready: bool = False) -> list[dict[str, str]]:
        """All models of the repository, or only those that accept requests."""
        return [
            {"name": state.name, "version": state.version, "state": state.state, "reason": state.reason}
            for state in self.models.names()
            if not is_ready or state.state == READY
        ]

    async def load(self, name: str, parameters: Mapping[str, Any]) -> None:
        """
        Load a model outside the event loop, with the JSON configuration in the parameters.

        Raises `InputError`, and `ForbiddenError` if clients may not load models.
        """
        self.check_control()
        for word in parameters:
            if word.startswith("file:"):
                raise InputError("models cannot be sent with a request", hint="put it into the repository")
        text, config = parameters.get("config"), None
        if text is not None:
            config = read_json(text.encode()) if isinstance(text, str) else text
            if not isinstance(config, dict):
                raise InputError("the parameter 'config' is not a JSON object")
        await asyncio.get_running_loop().run_in_executor(self._loaders, partial(self.models.load, name, config))

    async def unload(self, name: str) -> None:
        """Unload a model outside the event loop; raises `UnknownModelError`, and `ForbiddenError`."""
        self.check_control()
        await asyncio.get_running_loop().run_in_executor(self._loaders, partial(self.models.unload, name))

    def check_control(self) -> None:
        """Raise `ForbiddenError` if clients may not load and unload models."""
        if not self.has_control:
            raise ForbiddenError("clients may not load or unload models", hint="glow-serve --model-control")

    def check_memory(self) -> None:
        """Raise `ForbiddenError` if clients may not share memory."""
        if not self.shares_memory:
            raise ForbiddenError("shared memory is disabled on this server", hint="glow-serve --shared-memory")

    def check_reach(self, host: str) -> None:
        """Accept requests at an address; raises `OptionError` if remote clients would get local permissions."""
        self.names = local_names(host)
        if self.names is not None:
            return
        if self.has_control and not self.has_token:
            reason = f"clients of other machines, which reach {host}, may load and unload models only with a token"
            raise OptionError(reason, hint="--token-file, or no --model-control")
        if self.shares_memory:
            reason = f"clients of other machines, which reach {host}, cannot share memory"
            raise OptionError(reason, hint="no --shared-memory, or --host 127.0.0.1")


def _unchanged(what: str, settings: Mapping[str, Any], wanted: Mapping[str, Any], hint: str) -> Mapping[str, Any]:
    """The settings; raises an error if a client requests other values, where `None` means the default."""
    for word, value in wanted.items():
        if word not in settings:
            raise InputError(f"{what} of this server has no setting '{word}'", hint=f"there are {', '.join(settings)}")
        if value is not None and _one(value) != _one(settings[word]):
            raise ForbiddenError(f"clients may not change settings of {what}, such as {word}", hint=hint)
    return settings


def _one(value: Any) -> Any:
    """The single element of a list, because gRPC sends all trace settings as lists, and HTTP some."""
    return value[0] if is_list(value) and len(value) == 1 else value


def _own_version() -> str:
    try:
        return version("glow-mlir")
    except PackageNotFoundError:
        return ""


def _shape(argument: Argument) -> list[int]:
    """A shape with -1 for free sizes, and a single -1 for unknown rank."""
    shape = (-1,) if argument.shape is None else argument.shape
    return [size if isinstance(size, int) else -1 for size in shape]


def _tensor(argument: Argument) -> dict[str, Any]:
    return {"name": argument.name, "datatype": datatype_of(argument.dtype), "shape": _shape(argument)}


def _configured(argument: Argument, skipped: int) -> dict[str, Any]:
    word = onnx_word(STRING).upper() if argument.dtype == STRING else datatype_of(argument.dtype)
    return {"name": argument.name, "data_type": f"TYPE_{word}", "dims": _shape(argument)[skipped:]}


def _statistics(network: Network) -> dict[str, Any]:
    """The counts of a network in Triton's terms."""
    data = network.data()
    failed = sum(_number(data, word) for word in ("failed", "cancelled", "expired", "refused"))
    succeeded = _number(data, "succeeded")
    return {
        "name": network.name,
        "version": network.version,
        "inference_count": _number(data, "samples"),
        "execution_count": _number(data, "calls"),
        "inference_stats": {
            "success": _duration(data, "request_seconds", succeeded),
            "fail": {"count": failed, "ns": 0},
            "queue": _duration(data, "queue_seconds", succeeded),
            "compute_infer": _duration(data, "compute_seconds", succeeded),
        },
    }


def _number(data: Mapping[str, Any], word: str) -> int:
    return int(data.get(word, 0))


def _duration(data: Mapping[str, Any], word: str, count: int) -> dict[str, int]:
    """Triton's count and total nanoseconds, from a count and a mean in seconds."""
    mean = data.get(word, {}).get("mean", 0.0)
    return {"count": count, "ns": int(mean * count * NANOSECONDS)}
