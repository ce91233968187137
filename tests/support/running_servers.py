"""Servers for tests, in a thread of their own, and the packages that they need."""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from served_models import FakeModels, repository

from glow_mlir.serving.connections import ConnectionLimits
from glow_mlir.serving.grpc_service import GrpcServer
from glow_mlir.serving.http_server import HttpServer
from glow_mlir.serving.service import Limits, Service


def needed(module: str) -> Any:
    """A module of an extra; skips the test where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Clients import what is deprecated.
        return pytest.importorskip(module)


@dataclass
class Running:
    """A server that runs: its ports, and what it has."""

    http: int
    grpc: int
    service: Service
    models: FakeModels


@contextmanager
def running(
    *, limits: Limits | None = None, connections: ConnectionLimits | None = None, grace: float = 0.2, **options: Any
) -> Generator[Running]:
    """A server of HTTP and of gRPC, with one of each of the fakes."""
    for module in ("uvicorn", "httptools", "starlette", "grpc", "google.protobuf"):
        needed(module)
    models = repository()
    generators = options.pop("generators", None)
    service = Service(models, limits=limits, **{"control": True, "shared_memory": True, **options})
    service.generators = generators
    found: dict[str, Any] = {}
    is_up, loops = threading.Event(), list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]()

    async def serve() -> None:
        http = HttpServer(service, "127.0.0.1", 0, limits=connections)
        grpc = GrpcServer(service, "127.0.0.1:0")
        end = asyncio.Event()
        found["http"], found["grpc"] = await http.start(), await grpc.start()
        loops.append((asyncio.get_running_loop(), end))
        is_up.set()
        await end.wait()
        await http.stop(grace)
        await grpc.stop(grace)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert is_up.wait(30)
        yield Running(found["http"], found["grpc"], service, models)
    finally:
        for loop, end in loops:
            loop.call_soon_threadsafe(end.set)
        thread.join(30)
        models.close()
        assert not thread.is_alive()


def until(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether something comes to hold."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
