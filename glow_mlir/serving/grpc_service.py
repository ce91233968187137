"""The inference protocol over gRPC: the methods of its service, and the server that has them."""

from __future__ import annotations

import asyncio
import string
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import Future
from contextlib import nullcontext
from typing import Any
from urllib.parse import quote

from glow_mlir.errors import InputError, OptionError
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.errors import (
    MAX_WORDS,
    BodyTooLargeError,
    OverloadError,
    UnauthorizedError,
    shortened,
    words_of,
)
from glow_mlir.serving.grpc_arrivals import Arrivals
from glow_mlir.serving.grpc_codec import in_stream, message_steps, read_message, values_of
from glow_mlir.serving.grpc_messages import SERVICE, message_class
from glow_mlir.serving.http_responses import logged, logger
from glow_mlir.serving.inference import Completions, InferenceRequest, Outputs
from glow_mlir.serving.inflation import DEFLATE, GZIP, inflated
from glow_mlir.serving.models import Network
from glow_mlir.serving.packages import package
from glow_mlir.serving.service import Service
from glow_mlir.serving.steps import taken
from glow_mlir.serving.tensors import tensors_of
from glow_mlir.serving.wire import Data, WireReader

DEPTH = 32
"""How many requests of one stream are computed at once."""

HEADERS_BYTES = 16 << 10
"""How long the metadata of a request may be."""

GZIP_BEGIN, DEFLATE_BEGINS = b"\x1f\x8b", (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""How compressed messages begin."""

AS_IT_IS = string.ascii_letters + string.digits + string.punctuation.replace("%", "") + " "
"""The characters of a status that gRPC sends as they are, each in a byte."""

HEALTH = ("ServerLive", "ServerReady")
"""What anybody may ask, as those do who start servers and end them."""

Method = Callable[[Any], Awaitable[Any]]


class GrpcServer:
    """A server of gRPC in the event loop that starts it; raises `OptionError` where grpcio is not installed."""

    def __init__(self, service: Service, address: str, credentials: Any = None) -> None:
        """`address` is `host:port`, of a free port where that is 0; `credentials` are those of a server of gRPC."""
        self._service = service
        self._address = address
        self._credentials = credentials
        self._server: Any = None

    async def start(self) -> int:
        """Take requests: the port; raises `OptionError` where the address cannot be had."""
        message_bytes, requests = self._service.limits.message_bytes, self._service.limits.requests
        options = [
            ("grpc.max_receive_message_length", message_bytes),
            # What is compressed is inflated by us, within limits.
            ("grpc.per_message_decompression", 0),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", HEADERS_BYTES),
            ("grpc.max_concurrent_streams", requests),
            ("grpc.so_reuseport", 0),
            ("grpc.http2.bdp_probe", 0),
            ("grpc.http2.lookahead_bytes", 1 << 16),
        ]
        guards = (_guard(self._service),) if self._service.has_token else ()
        server = self._server = package("grpc.aio").server(
            options=options, maximum_concurrent_rpcs=requests, interceptors=guards
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
        """Take no more requests, and end those after `grace` seconds that are not done."""
        if self._server is not None:
            await self._server.stop(grace)


def _guard(service: Service) -> Any:
    """Stands before all methods but those of health; a call without the token ends, and its message is not read."""

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
    """A method that ends with an error, and reads and answers nothing."""

    async def refuse(messages: Any, context: Any) -> None:
        refusal(context, error)

    return package("grpc").stream_stream_rpc_method_handler(refuse)


def _authorization(metadata: Iterable[tuple[str, str | bytes]]) -> bytes:
    """The header `authorization` of a request; nothing where it has none."""
    found = next((value for name, value in metadata if name == "authorization"), b"")
    return found.encode() if isinstance(found, str) else found


def method_handlers(service: Service) -> Any:
    """
    The methods of the service, as gRPC asks for them.

    Those that take one message read it as a stream of one: gRPC puts it together when it is asked for it, not before.
    """
    grpc = package("grpc")
    arrivals = Arrivals(service.limits)
    inference = GrpcInference(service, arrivals)
    handlers = {
        "ModelInfer": grpc.stream_unary_rpc_method_handler(inference.infer),
        "ModelStreamInfer": grpc.stream_stream_rpc_method_handler(inference.stream),
    }
    for name, method in _Control(service).methods().items():
        handlers[name] = grpc.stream_unary_rpc_method_handler(
            _answering(service, arrivals, name, method),
            response_serializer=message_class(f"{name}Response").SerializeToString,
        )
    return grpc.method_handlers_generic_handler(SERVICE, handlers)


def refusal(context: Any, error: BaseException) -> bytes:
    """
    An empty message, with which a call ends with the status of an error.

    `context.abort` would raise what gRPC keeps for ever, and with it the frames of the call, and its message.
    """
    context.set_code(getattr(package("grpc").StatusCode, logged(error).grpc))
    context.set_details(details_of(error))
    return b""


def details_of(error: BaseException) -> str:
    """What a client of gRPC is told of an error, in `MAX_WORDS` bytes at most: some characters take 12."""
    words = words_of(error)
    while (size := len(quote(words, AS_IT_IS))) > MAX_WORDS:
        words = shortened(words, len(words) * MAX_WORDS // size)
    return words


async def plain(data: bytes, most: int, charge: Charge) -> Data:
    """
    A message, inflated where it was compressed.

    Which it tells by its first bytes: those of gzip are no field, and that of zlib is one that no message has. Raises
    `InputError`, `BodyTooLargeError` and `OverloadError`.
    """
    charge.add(len(data))
    format = GZIP if data[:2] == GZIP_BEGIN else DEFLATE if data[:2] in DEFLATE_BEGINS else 0
    if not format:
        if len(data) > most:
            raise BodyTooLargeError(f"the request has {len(data)} bytes, more than {most}")
        return data
    return await taken(inflated(data, format, most, charge, "the request"))


def parsed(name: str, data: Data) -> Any:
    """The message of that name in some bytes; raises `InputError` where they are none, of which gRPC makes more ado."""
    try:
        return message_class(name).FromString(bytes(data))
    except package("google.protobuf.message").DecodeError as error:
        raise InputError(f"the request is not a valid message: {error}") from None


def _answering(service: Service, arrivals: Arrivals, name: str, method: Method) -> Callable[..., Awaitable[Any]]:
    """A method of that name, whose errors become a status."""

    async def answer(messages: AsyncIterator[bytes], context: Any) -> Any:
        charge = Charge(service)
        try:
            # Health never waits.
            async with nullcontext(b"") if name in HEALTH else arrivals.message(messages) as data:
                message = await plain(data, service.limits.control_bytes, charge)
                return await method(parsed(f"{name}Request", message))
        except Exception as error:
            return refusal(context, error)
        finally:
            charge.release()

    return answer


class GrpcInference:
    """Answers requests for inferences."""

    def __init__(self, service: Service, arrivals: Arrivals) -> None:
        self._service = service
        self._arrivals = arrivals
        self._completions: Completions | None = None

    async def infer(self, messages: AsyncIterator[bytes], context: Any) -> Any:
        """Answer one request; who cancels the call cancels the request."""
        try:
            async with self._arrivals.message(messages) as data:
                return await self._answer(data, context.time_remaining())
        except Exception as error:
            return refusal(context, error)

    async def stream(self, messages: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
        """Answer requests as they come, in their order, several of which are computed at once."""
        try:
            self._arrivals.enter_stream()
        except OverloadError as error:
            refusal(context, error)
            return
        try:
            async for answer in self._answers(messages, context):
                yield answer
        finally:
            self._arrivals.leave_stream()

    async def _answers(self, messages: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
        """The answers to the requests of a stream."""
        answers: asyncio.Queue[asyncio.Task[Any] | None] = asyncio.Queue(DEPTH)
        reader = asyncio.create_task(self._take(messages, answers, context))
        task = None
        try:
            while (task := await answers.get()) is not None:
                yield await task
        finally:
            reader.cancel()
            while not answers.empty():
                if (left := answers.get_nowait()) is not None:
                    left.cancel()
            if task is not None:
                task.cancel()

    async def _take(
        self, messages: AsyncIterator[bytes], answers: asyncio.Queue[asyncio.Task[Any] | None], context: Any
    ) -> None:
        """Begin to answer what comes, one behind the other."""
        before = asyncio.Event()
        before.set()
        try:
            async for data in messages:
                step = _Step(before)
                before = step.is_passed
                task = asyncio.create_task(self._streamed(data, context.time_remaining(), step))
                try:
                    await answers.put(task)
                except asyncio.CancelledError:
                    task.cancel()  # Nobody else knows it.
                    raise
        except Exception as error:  # What was taken is still answered.
            logger.warning("a stream of requests failed", exc_info=error)
        await answers.put(None)

    async def _streamed(self, data: bytes, remaining: float | None, step: _Step) -> bytes:
        """The response of a stream to a request, which tells of an error: the stream goes on."""
        try:
            return await self._answer(data, remaining, step)
        except Exception as error:
            logged(error)
            response = message_class("ModelStreamInferResponse")
            return response(error_message=words_of(error), infer_response={"id": step.id}).SerializeToString()
        finally:
            step.is_passed.set()

    async def _answer(self, data: bytes, remaining: float | None, step: _Step | None = None) -> bytes:
        """The response to a request that has so many seconds left; raises what is wrong with it."""
        service = self._service
        charge = Charge(service)
        service.enter()
        try:
            message: Data = await plain(data, service.limits.message_bytes, charge)
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
            most = service.limits.message_bytes
            response = await taken(message_steps(network, request, outputs, service.regions, charge, most))
            return response if step is None else await taken(in_stream(response, charge))
        finally:
            service.leave()
            charge.release()

    async def _result(self, future: Future[Outputs]) -> Outputs:
        """What was computed."""
        if self._completions is None:
            self._completions = Completions(asyncio.get_running_loop())
        return await self._completions.result(future)


class _Step:
    """
    A request of a stream.

    Requests are read in steps, beside each other, and a short one is read before a long one that came earlier. Networks
    get them in the order in which they came, as the requests of a sequence need it.
    """

    def __init__(self, before: asyncio.Event) -> None:
        """`before` is that the network has the request in front of it, or never will."""
        self._before = before
        self.is_passed = asyncio.Event()
        """That the network has this one, or never will."""
        self.id = ""
        """Its identifier, as far as it was read."""

    async def submitted(self, request: InferenceRequest, network: Network) -> Future[Outputs]:
        """Submit it when its turn comes."""
        await self._before.wait()
        try:
            return request.submit(network)
        finally:
            self.is_passed.set()


class _Control:
    """The methods that are no inferences."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def methods(self) -> dict[str, Method]:
        """All of them by their names."""
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
        """That it is there."""
        return message_class("ServerLiveResponse")(live=True)

    async def ready(self, request: Any) -> Any:
        """Whether it takes requests."""
        return message_class("ServerReadyResponse")(ready=self._service.is_ready())

    async def server(self, request: Any) -> Any:
        """What the server is."""
        return message_class("ServerMetadataResponse")(**self._service.metadata())

    async def model_ready(self, request: Any) -> Any:
        """Whether a model takes requests."""
        return message_class("ModelReadyResponse")(ready=self._service.is_model_ready(request.name, request.version))

    async def model(self, request: Any) -> Any:
        """What a model takes and gives."""
        return message_class("ModelMetadataResponse")(**self._service.model_metadata(request.name, request.version))

    async def config(self, request: Any) -> Any:
        """The configuration of a model."""
        return message_class("ModelConfigResponse")(config=self._service.config(request.name, request.version))

    async def statistics(self, request: Any) -> Any:
        """What a model did, or all."""
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
        """The regions of shared memory that are registered."""
        self._service.check_memory()
        found = self._service.regions.status(request.name)
        return message_class("SystemSharedMemoryStatusResponse")(regions={item["name"]: item for item in found})

    async def register(self, request: Any) -> Any:
        """Register shared memory."""
        self._service.check_memory()
        self._service.regions.register(request.name, request.key, request.offset, request.byte_size)
        return message_class("SystemSharedMemoryRegisterResponse")()

    async def unregister(self, request: Any) -> Any:
        """Forget shared memory."""
        self._service.check_memory()
        self._service.regions.unregister(request.name)
        return message_class("SystemSharedMemoryUnregisterResponse")()

    async def device_memory(self, request: Any) -> Any:
        """The regions of memory of GPUs."""
        found = self._service.device_regions.status(request.name)
        return message_class("CudaSharedMemoryStatusResponse")(regions={item["name"]: item for item in found})

    async def register_device(self, request: Any) -> Any:
        """Register memory of a GPU."""
        self._service.device_regions.register(request.name)
        return message_class("CudaSharedMemoryRegisterResponse")()

    async def unregister_device(self, request: Any) -> Any:
        """Forget memory of GPUs."""
        self._service.device_regions.unregister(request.name)
        return message_class("CudaSharedMemoryUnregisterResponse")()
