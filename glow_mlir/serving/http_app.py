"""The inference protocol over HTTP as an ASGI application: inference directly, everything else through Starlette."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

from glow_mlir.errors import GlowError, InputError
from glow_mlir.serving.access import HeadCheck
from glow_mlir.serving.errors import NotReadyError, UnknownModelError, words_of
from glow_mlir.serving.handlers import Handler, answering, data_of, json_response
from glow_mlir.serving.http_bodies import Receive, Send
from glow_mlir.serving.http_inference import HttpInference, named_model
from glow_mlir.serving.http_responses import error_response, respond_error
from glow_mlir.serving.inference_codec import read_parameters
from glow_mlir.serving.json_text import write_json
from glow_mlir.serving.openai_errors import INVALID, PATHS, error_data, failed_at
from glow_mlir.serving.packages import package
from glow_mlir.serving.page import PAGE, page_data
from glow_mlir.serving.service import Service

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

HEALTH = ("/v2/health/live", "/v2/health/ready")
"""Paths without access control, for supervisors that start and stop servers."""


class HttpApp:
    """The application; raises `OptionError` if Starlette is not installed."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._head = HeadCheck(service.names)
        self._inference = HttpInference(service)

    @cached_property
    def _others(self) -> Any:
        """What answers all but inference; made by the first request, when all models are there."""
        return control_app(self._service)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._others(scope, receive, send)
            return
        head = dict(scope["headers"])
        try:
            self._head.check(scope, head)
            if self._service.has_token and scope["path"] not in HEALTH:
                self._service.authorize(head.get(b"authorization", b""))
        except GlowError as error:
            await respond_error(send, receive, error, partial(failed_at, scope["path"]))
            return
        if scope["method"] == "POST":
            model = named_model(scope["path"])
            if model is not None:
                await self._inference.answer(model, head, receive, send)
                return
        await self._others(scope, receive, send)


def control_app(service: Service) -> Any:
    """All requests except inference, as a Starlette application."""
    route = package("starlette.routing").Route
    control = _Control(service)
    answers = ((method, path, answering(handler, error_response)) for method, path, handler in control.routes())
    routes = [route(path, handler, methods=[method]) for method, path, handler in answers]
    if service.generators is not None:
        # Their modules are loaded where text is generated only.
        from glow_mlir.serving.embedding_app import EmbeddingApp
        from glow_mlir.serving.openai_app import OpenAiApp

        texts = [*OpenAiApp(service, service.generators).routes(), *EmbeddingApp(service, service.generators).routes()]
        routes += [route(path, handler, methods=[method]) for method, path, handler in texts]
    failing = package("starlette.exceptions").HTTPException
    return package("starlette.applications").Starlette(routes=routes, exception_handlers={failing: _unknown})


async def _unknown(request: Any, error: Any) -> Any:
    """Report an unknown path or method."""
    path: str = request.url.path
    reason = words_of(InputError(f"{request.method} {path}: {error.detail}"))
    found = error_data(reason, INVALID, None, "unknown_url") if path.startswith(PATHS) else {"error": reason}
    return json_response(write_json(found), error.status_code)


class _Control:
    """The handlers of requests other than inference; each takes Starlette's request and returns JSON data."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths and their handlers; the first match counts."""
        model = "/v2/models/{name}"
        found: list[tuple[str, str, Handler]] = [
            ("GET", "/", self.page),
            ("GET", "/statistics", self.page_data),
            ("GET", "/v2", self.server),
            ("GET", "/v2/health/live", self.live),
            ("GET", "/v2/health/ready", self.ready),
            ("GET", "/v2/models/stats", self.statistics),
            ("POST", "/v2/repository/index", self.index),
            ("POST", "/v2/repository/models/{name}/load", self.load),
            ("POST", "/v2/repository/models/{name}/unload", self.unload),
            ("GET", "/v2/logging", self.log_settings),
            ("POST", "/v2/logging", self.log_settings),
            ("GET", "/metrics", self.metrics),
        ]
        for path in ("/v2/trace/setting", f"{model}/trace/setting"):
            found += [(method, path, self.trace_settings) for method in ("GET", "POST")]
        for start, status, register, unregister in (
            ("/v2/systemsharedmemory", self.memory, self.register, self.unregister),
            ("/v2/cudasharedmemory", self.device_memory, self.register_device, self.unregister_device),
        ):
            found += [
                ("GET", f"{start}/status", status),
                ("GET", f"{start}/region/{{name}}/status", status),
                ("POST", f"{start}/region/{{name}}/register", register),
                ("POST", f"{start}/unregister", unregister),
                ("POST", f"{start}/region/{{name}}/unregister", unregister),
            ]
        for start in (f"{model}/versions/{{version}}", model):
            found += [
                ("GET", start, self.model),
                ("GET", f"{start}/ready", self.model_ready),
                ("GET", f"{start}/config", self.config),
                ("GET", f"{start}/stats", self.statistics),
            ]
        return found

    async def page(self, request: Any) -> Any:
        """The page of the server."""
        return package("starlette.responses").HTMLResponse(PAGE)

    async def page_data(self, request: Any) -> Any:
        """The data of the page."""
        return page_data(self._service)

    async def server(self, request: Any) -> Any:
        """Name, version and extensions of the server."""
        return self._service.metadata()

    async def live(self, request: Any) -> Any:
        """The health check."""
        return {"live": True}

    async def ready(self, request: Any) -> Any:
        """Whether the server accepts requests."""
        if not self._service.is_ready():
            raise NotReadyError("the server accepts no requests now")
        return {"ready": True}

    async def model(self, request: Any) -> Any:
        """The inputs and outputs of a model."""
        return self._service.model_metadata(*_named(request))

    async def model_ready(self, request: Any) -> Any:
        """Whether a model accepts requests."""
        name, version = _named(request)
        if not self._service.is_model_ready(name, version):
            raise NotReadyError(f"model '{name}' accepts no requests now")
        return {"name": name, "ready": True}

    async def config(self, request: Any) -> Any:
        """The configuration of a model."""
        return self._service.config(*_named(request))

    async def statistics(self, request: Any) -> Any:
        """The statistics of one model, or of all."""
        return {"model_stats": self._service.statistics(*_named(request))}

    async def index(self, request: Any) -> Any:
        """The models of the repository."""
        return self._service.index(is_ready=(await self._data(request)).get("ready") is True)

    async def load(self, request: Any) -> Any:
        """Load a model."""
        data = await self._data(request)
        await self._service.load(_named(request)[0], read_parameters(data, "the request"))
        return {}

    async def unload(self, request: Any) -> Any:
        """Unload a model."""
        await self._data(request)
        await self._service.unload(_named(request)[0])
        return {}

    async def trace_settings(self, request: Any) -> Any:
        """The settings of traces."""
        wanted = await self._data(request) if request.method == "POST" else None
        return self._service.trace_settings(_named(request)[0], wanted)

    async def log_settings(self, request: Any) -> Any:
        """The settings of the log."""
        return self._service.log_settings(await self._data(request) if request.method == "POST" else None)

    async def memory(self, request: Any) -> Any:
        """The registered regions of shared memory."""
        self._service.check_memory()
        return self._service.regions.status(_named(request)[0])

    async def register(self, request: Any) -> Any:
        """Register shared memory."""
        self._service.check_memory()
        data = await self._data(request)
        name = _named(request)[0]
        self._service.regions.register(name, data.get("key"), data.get("offset", 0), data.get("byte_size"))
        return {}

    async def unregister(self, request: Any) -> Any:
        """Unregister shared memory."""
        self._service.check_memory()
        await self._data(request)
        self._service.regions.unregister(_named(request)[0])
        return {}

    async def device_memory(self, request: Any) -> Any:
        """The registered regions of GPU memory."""
        return self._service.device_regions.status(_named(request)[0])

    async def register_device(self, request: Any) -> Any:
        """Register memory of a GPU."""
        await self._data(request)
        self._service.device_regions.register(_named(request)[0])
        return {}

    async def unregister_device(self, request: Any) -> Any:
        """Unregister GPU memory."""
        await self._data(request)
        self._service.device_regions.unregister(_named(request)[0])
        return {}

    async def metrics(self, request: Any) -> Any:
        """The metrics for Prometheus."""
        if self._service.metrics is None:
            raise UnknownModelError("metrics are disabled on this server")
        text = self._service.metrics()
        return package("starlette.responses").Response(text, headers={"content-type": METRICS_TYPE})

    async def _data(self, request: Any) -> Mapping[str, Any]:
        """The optional JSON object of a request; raises `InputError` for other JSON."""
        return await data_of(self._service, request, is_optional=True)


def _named(request: Any) -> tuple[str, str]:
    """The model or region in the path of a request, and its version; empty if missing."""
    return request.path_params.get("name", ""), request.path_params.get("version", "")
