"""The inference protocol over gRPC: the methods of its service, and the server."""

from __future__ import annotations

import asyncio
import string
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import Future
from contextlib import aclosing, nullcontext
from typing import Any
from urllib.parse import quote

from glow_mlir.errors import GlowError, InputError, OptionError
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.errors import (
    MAX_WORDS,
    BodyTooLargeError,
    UnauthorizedError,
    shortened,
    words_of,
)
from glow_mlir.serving.grpc_arrivals import Arrivals
from glow_mlir.serving.grpc_calls import Calls
from glow_mlir.serving.grpc_codec import MAX_MESSAGE, in_stream, message_steps, read_message, values_of
from glow_mlir.serving.grpc_messages import SERVICE, message_class
from glow_mlir.serving.grpc_streams import Answer, Step, Stream
from glow_mlir.serving.http_responses import logged
from glow_mlir.serving.inference import Completions, Outputs
from glow_mlir.serving.inflation import DEFLATE, GZIP, inflated
from glow_mlir.serving.packages import package
from glow_mlir.serving.service import Limits, Service
from glow_mlir.serving.steps import taken
from glow_mlir.serving.tensors import HEAD_TEXT, tensors_of
from glow_mlir.serving.wire import Data, WireReader

HEADERS_BYTES = 16 << 10
"""The maximum size of a request's metadata."""

GZIP_BEGIN, DEFLATE_BEGINS = b"\x1f\x8b", (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""The first bytes of compressed messages."""

COPIES = 2
"""The number of copies of a response being sent, because gRPC makes its own."""

MAX_PORT = (1 << 16) - 1

AS_IT_IS = string.ascii_letters + string.digits + string.punctuation.replace("%", "") + " "
"""The characters of a status that gRPC sends unescaped, as one byte each."""

HEALTH = ("ServerLive", "ServerReady")
"""Methods without access control, for supervisors that start and stop servers."""

KEEPALIVE_SECONDS, ANSWER_SECONDS = 60, 20
"""Seconds of silence before a client is pinged, and for its answer before it counts as disconnected."""

Method = Callable[[Any], Awaitable[Any]]
Answering = Callable[[AsyncIterator[bytes], Any], Awaitable[bytes]]


class GrpcServer:
    """A gRPC server in the event loop that starts it; raises `OptionError` if grpcio is not installed."""

    def __init__(self, service: Service, address: str, credentials: Any = None) -> None:
        """`address` is `host:port`, with port 0 for a free one; `credentials` are server credentials of gRPC."""
        package("grpc.aio")
        self._service = service
        self._address = address
        self._credentials = credentials
        self._server: Any = None

    async def start(self) -> int:
        """Start accepting requests; return the port. Raises `OptionError` if the address is not available."""
        _check_port(self._address)
        message_bytes, requests = most_bytes(self._service.limits), self._service.limits.requests
        options = [
            ("grpc.max_receive_message_length", message_bytes),
            # We decompress messages ourselves, within limits.
            ("grpc.per_message_decompression", 0),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", HEADERS_BYTES),
            # Health checks are accepted in addition to the maximum number of other calls.
            ("grpc.max_concurrent_streams", 2 * requests),
            ("grpc.keepalive_time_ms", 1000 * KEEPALIVE_SECONDS),
            ("grpc.keepalive_timeout_ms", 1000 * ANSWER_SECONDS),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.so_reuseport", 0),
            ("grpc.http2.bdp_probe", 0),
            ("grpc.http2.lookahead_bytes", 1 << 16),
        ]
        guards = (_guard(self._service),) if self._service.has_token else ()
        server = self._server = package("grpc.aio").server(
            options=options, maximum_concurrent_rpcs=2 * requests, interceptors=guards
        )
        server.add_generic_rpc_handlers((method_handlers(self._service),))
        try:
            if self._credentials is None:
                port = server.add_insecure_port(self._address)
            else:
                port = server.add_secure_port(self._address, self._credentials)
        except RuntimeError as error:
            raise OptionError(f"cannot listen on {self._address}: {error}") from None
        await server.start()
        return port

    async def stop(self, grace: float) -> None:
        """Stop accepting requests, and cancel those not done after `grace` seconds."""
        if self._server is not None:
            await self._server.stop(grace)


def _check_port(address: str) -> None:
    """Raise `OptionError` for an invalid port, of which gRPC would use the lower 16 bits, or a free port."""
    port = address.rpartition(":")[2]
    if port.lstrip("-").isdecimal() and not 0 <= int(port) <= MAX_PORT:
        raise OptionError(f"cannot listen on {address}: the port must be from 0 to {MAX_PORT}")


def most_bytes(limits: Limits) -> int:
    """The maximum size of request and response messages, limited by gRPC itself."""
    return min(limits.message_bytes, MAX_MESSAGE)


def _guard(service: Service) -> Any:
    """
    The interceptor of all methods except health checks; it ends calls without the token before reading their message.
    """

    class Guard(package("grpc.aio").ServerInterceptor):
        async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
            try:
                if details.method.rpartition("/")[2] not in HEALTH:
                    service.authorize(_authorization(details.invocation_metadata))
            except UnauthorizedError as error:
                return _refusing(error)
            return await continuation(details)

    return Guard()


def _refusing(error: UnauthorizedError) -> Any:
    """A method that ends with an error without reading or answering."""

    async def refuse(messages: Any, context: Any) -> None:
        refusal(context, error)

    return package("grpc").stream_stream_rpc_method_handler(refuse)


def _authorization(metadata: Iterable[tuple[str, str | bytes]]) -> bytes:
    """The `authorization` header of a request; empty if missing."""
    found = next((value for name, value in metadata if name == "authorization"), b"")
    return found.encode() if isinstance(found, str) else found


def method_handlers(service: Service) -> Any:
    """
    The methods of the service, for gRPC.

    Methods with a single message read it as a stream of one, so that gRPC assembles it only when it is requested.
    """
    grpc = package("grpc")
    calls, arrivals = Calls(service.limits), Arrivals(service.limits)
    inference = GrpcInference(service, calls, arrivals)
    handlers = {
        "ModelInfer": grpc.stream_unary_rpc_method_handler(inference.infer),
        "ModelStreamInfer": grpc.stream_stream_rpc_method_handler(inference.stream),
    }
    for name, method in _Control(service).methods().items():
        handlers[name] = grpc.stream_unary_rpc_method_handler(_answering(service, calls, arrivals, name, method))
    return grpc.method_handlers_generic_handler(SERVICE, handlers)


def refusal(context: Any, error: BaseException) -> bytes:
    """
    Set the status of an error, and return an empty message that ends the call.

    `context.abort` would raise an exception that gRPC keeps forever, with the frames of the call and its message.
    """
    context.set_code(getattr(package("grpc").StatusCode, logged(error).grpc))
    context.set_details(details_of(error))
    return b""


def details_of(error: BaseException) -> str:
    """The error text for a gRPC client, of at most `MAX_WORDS` bytes: some characters take 12."""
    words = words_of(error)
    while (size := len(quote(words, AS_IT_IS))) > MAX_WORDS:
        words = shortened(words, len(words) * MAX_WORDS // size)
    return words


async def plain(data: bytes, most: int, charge: Charge) -> Data:
    """
    Decompress a message if it is compressed.

    The first bytes tell: those of gzip are not a field, and zlib's is a field that no message has. Raises `InputError`,
    `BodyTooLargeError` and `OverloadError`.
    """
    charge.add(len(data))
    format = GZIP if data[:2] == GZIP_BEGIN else DEFLATE if data[:2] in DEFLATE_BEGINS else 0
    if not format:
        if len(data) > most:
            raise BodyTooLargeError(f"the request has {len(data)} bytes, more than {most}")
        return data
    return await taken(inflated(data, format, most, charge, "the request"))


def parsed(name: str, data: Data) -> Any:
    """
    Parse bytes as a message; raises `InputError` if they are invalid, in which case gRPC itself would log an error.
    """
    try:
        return message_class(name).FromString(bytes(data))
    except package("google.protobuf.message").DecodeError as error:
        raise InputError(f"the request is not a valid message: {error}") from None


def _answering(service: Service, calls: Calls, arrivals: Arrivals, name: str, method: Method) -> Answering:
    """The named method, with its errors converted to a status."""

    async def answer(messages: AsyncIterator[bytes], context: Any) -> bytes:
        call, charge, is_health = calls.call(context), Charge(service), name in HEALTH
        try:
            if not is_health:
                call.enter()
            # Health checks never wait.
            async with nullcontext(b"") if is_health else arrivals.message(messages) as data:
                message = await plain(data, service.limits.control_bytes, charge)
                found = await method(parsed(f"{name}Request", message))
            response = found.SerializeToString()
            charge.give_back(charge.size - len(response))
        except Exception as error:
            charge.release()
            response = refusal(context, error)
        except BaseException:
            charge.release()
            raise
        call.finish(len(response), charge)
        return response

    return answer


class GrpcInference:
    """Answers inference requests."""

    def __init__(self, service: Service, calls: Calls, arrivals: Arrivals) -> None:
        self._service = service
        self._calls = calls
        self._arrivals = arrivals
        self._completions: Completions | None = None

    async def infer(self, messages: AsyncIterator[bytes], context: Any) -> bytes:
        """Answer one request; cancelling the call cancels the request."""
        call, response, charge = self._calls.call(context), b"", Charge()
        try:
            call.enter()
            async with self._arrivals.message(messages) as data:
                response, charge = await self._answer(data, context.time_remaining())
        except Exception as error:
            refusal(context, error)
        call.finish(len(response), charge)
        return response

    async def stream(self, messages: AsyncIterator[bytes], context: Any) -> None:
        """Answer a stream of requests in order; several are computed at once."""
        call = self._calls.call(context)
        try:
            call.enter()
            with self._arrivals.stream():
                found = Stream(self._streamed, context, self._service.limits.stream_seconds)
                async with aclosing(found.answers(messages)) as answers:
                    async for response, charge in answers:
                        await call.send(response, charge)
        except GlowError as error:
            refusal(context, error)
        call.finish()

    async def _streamed(self, data: bytes, remaining: float | None, step: Step) -> Answer:
        """The response to a request of a stream; errors become responses, so that the stream continues."""
        try:
            return await self._answer(data, remaining, step)
        except Exception as error:
            logged(error)
            found = message_class("ModelStreamInferResponse")
            response = found(error_message=words_of(error), infer_response={"id": step.id}).SerializeToString()
            return Answer(response, Charge())  # The response is short.

    async def _answer(self, data: bytes, remaining: float | None, step: Step | None = None) -> Answer:
        """The response to a request with a number of seconds left; raises its error."""
        service = self._service
        charge = Charge(service)
        service.enter()
        try:
            response = await self._response(data, remaining, step, charge)
        except BaseException:
            charge.release()
            raise
        finally:
            service.leave()
        charge.give_back(max(0, charge.size - COPIES * len(response)))
        return Answer(response, charge)

    async def _response(self, data: bytes, remaining: float | None, step: Step | None, charge: Charge) -> bytes:
        service = self._service
        message: Data = await plain(data, most_bytes(service.limits), charge)
        parts = await taken(WireReader(message).read())
        if step is not None:
            step.id = parts.id
        network = service.find(parts.model_name, parts.model_version)
        most = tensors_of(network).most_packed
        if most is not None and len(message) > most:
            raise BodyTooLargeError(f"the request has {len(message)} bytes, more than the {most} of its inputs")
        request = await taken(read_message(network, message, parts, service.regions, charge))
        del message, parts
        request.timeout = service.timeout(request.timeout)
        if remaining is not None:
            request.timeout = max(0.0, min(request.timeout, remaining))
        future = request.submit(network) if step is None else await step.submitted(request, network)
        outputs = await self._result(future)
        most = min(most_bytes(service.limits), MAX_MESSAGE - 2 * HEAD_TEXT)
        response = await taken(message_steps(network, request, outputs, service.regions, charge, most))
        return response if step is None else await taken(in_stream(response, charge))

    async def _result(self, future: Future[Outputs]) -> Outputs:
        """The outputs of a future."""
        if self._completions is None:
            self._completions = Completions(asyncio.get_running_loop())
        return await self._completions.result(future)


class _Control:
    """The methods other than inference."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def methods(self) -> dict[str, Method]:
        """All methods by name."""
        return {
            "ServerLive": self.live,
            "ServerReady": self.ready,
            "ServerMetadata": self.server,
            "ModelReady": self.model_ready,
            "ModelMetadata": self.model,
            "ModelConfig": self.config,
            "ModelStatistics": self.statistics,
            "RepositoryIndex": self.index,
            "RepositoryModelLoad": self.load,
            "RepositoryModelUnload": self.unload,
            "TraceSetting": self.trace_settings,
            "LogSettings": self.log_settings,
            "SystemSharedMemoryStatus": self.memory,
            "SystemSharedMemoryRegister": self.register,
            "SystemSharedMemoryUnregister": self.unregister,
            "CudaSharedMemoryStatus": self.device_memory,
            "CudaSharedMemoryRegister": self.register_device,
            "CudaSharedMemoryUnregister": self.unregister_device,
        }

    async def live(self, request: Any) -> Any:
        """The health check."""
        return message_class("ServerLiveResponse")(live=True)

    async def ready(self, request: Any) -> Any:
        """Whether the server accepts requests."""
        return message_class("ServerReadyResponse")(ready=self._service.is_ready())

    async def server(self, request: Any) -> Any:
        """Name, version and extensions of the server."""
        return message_class("ServerMetadataResponse")(**self._service.metadata())

    async def model_ready(self, request: Any) -> Any:
        """Whether a model accepts requests."""
        return message_class("ModelReadyResponse")(ready=self._service.is_model_ready(request.name, request.version))

    async def model(self, request: Any) -> Any:
        """The inputs and outputs of a model."""
        return message_class("ModelMetadataResponse")(**self._service.model_metadata(request.name, request.version))

    async def config(self, request: Any) -> Any:
        """The configuration of a model."""
        return message_class("ModelConfigResponse")(config=self._service.config(request.name, request.version))

    async def statistics(self, request: Any) -> Any:
        """The statistics of one model, or of all."""
        found = self._service.statistics(request.name, request.version)
        return message_class("ModelStatisticsResponse")(model_stats=found)

    async def index(self, request: Any) -> Any:
        """The models of the repository."""
        return message_class("RepositoryIndexResponse")(models=self._service.index(is_ready=request.ready))

    async def load(self, request: Any) -> Any:
        """Load a model."""
        await self._service.load(request.model_name, values_of(request.parameters))
        return message_class("RepositoryModelLoadResponse")()

    async def unload(self, request: Any) -> Any:
        """Unload a model."""
        await self._service.unload(request.model_name)
        return message_class("RepositoryModelUnloadResponse")()

    async def trace_settings(self, request: Any) -> Any:
        """The settings of traces."""
        wanted = {word: list(item.value) or None for word, item in request.settings.items()}
        found = self._service.trace_settings(request.model_name, wanted)
        settings = {word: {"value": value if word == "trace_level" else [value]} for word, value in found.items()}
        return message_class("TraceSettingResponse")(settings=settings)

    async def log_settings(self, request: Any) -> Any:
        """The settings of the log."""
        found = self._service.log_settings(values_of(request.settings))
        words = {bool: "bool_param", int: "uint32_param", str: "string_param"}
        settings = {word: {words[type(value)]: value} for word, value in found.items()}
        return message_class("LogSettingsResponse")(settings=settings)

    async def memory(self, request: Any) -> Any:
        """The registered regions of shared memory."""
        self._service.check_memory()
        found = self._service.regions.status(request.name)
        return message_class("SystemSharedMemoryStatusResponse")(regions={item["name"]: item for item in found})

    async def register(self, request: Any) -> Any:
        """Register shared memory."""
        self._service.check_memory()
        self._service.regions.register(request.name, request.key, request.offset, request.byte_size)
        return message_class("SystemSharedMemoryRegisterResponse")()

    async def unregister(self, request: Any) -> Any:
        """Unregister shared memory."""
        self._service.check_memory()
        self._service.regions.unregister(request.name)
        return message_class("SystemSharedMemoryUnregisterResponse")()

    async def device_memory(self, request: Any) -> Any:
        """The registered regions of GPU memory."""
        found = self._service.device_regions.status(request.name)
        return message_class("CudaSharedMemoryStatusResponse")(regions={item["name"]: item for item in found})

    async def register_device(self, request: Any) -> Any:
        """Register memory of a GPU."""
        self._service.device_regions.register(request.name)
        return message_class("CudaSharedMemoryRegisterResponse")()

    async def unregister_device(self, request: Any) -> Any:
        """Unregister GPU memory."""
        self._service.device_regions.unregister(request.name)
        return message_class("CudaSharedMemoryUnregisterResponse")()
