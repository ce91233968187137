"""
A server with fakes behind it, as a process: prints its ports, and ends with its standard input.

`python tests/support/request_server.py`
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from served_models import FakeModels, echo, sums

from glow_mlir.serving.grpc_service import GrpcServer
from glow_mlir.serving.http_server import HttpServer
from glow_mlir.serving.service import Limits, Service
from glow_mlir.support.dtypes import STRING

LIMITS = Limits(
    body_bytes=48 << 20,
    json_bytes=3 << 20,
    message_bytes=16 << 20,
    memory_bytes=160 << 20,
    body_seconds=2.0,
    request_seconds=10.0,
)
"""Limits that large requests meet."""

NETWORKS = {
    "f": ("float32", ("N", 3)),
    "d": ("float64", ("N",)),
    "b": ("int8", ("N",)),
    "q": ("int64", ("N",)),
    "u": ("uint32", (8,)),
    "t": ("bool", ("N",)),
    "h": ("float16", ("N",)),
    "s": (STRING, ("N",)),
}
"""Name → type and shape of a network that answers what it is asked."""


async def serve() -> None:
    """Serve until the standard input ends."""
    models = FakeModels([*(echo(name, *said) for name, said in NETWORKS.items()), sums()])
    service = Service(models, limits=LIMITS)
    http, grpc = HttpServer(service, "127.0.0.1", 0), GrpcServer(service, "127.0.0.1:0")
    print(await http.start(), await grpc.start(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await asyncio.gather(http.stop(0.1), grpc.stop(0.1))
    models.close()


if __name__ == "__main__":
    asyncio.run(serve())
