"""Clients of gRPC that do not read what they asked for: it counts as memory, and their connections end."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from running_servers import Running, needed, running, until

from glow_mlir.serving.grpc_calls import disconnect
from glow_mlir.serving.grpc_messages import SERVICE, message_class
from glow_mlir.serving.service import Limits
from glow_mlir.serving.wire import sized

ROWS = (1 << 20) // 12
"""The rows of a message of 1 MiB."""

ALONE = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
"""A channel with a connection of its own."""


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    limits = Limits(
        memory_bytes=64 << 20, message_bytes=2 << 20, response_seconds=0.7, response_rate=1 << 30, stream_seconds=0.5
    )
    with running(limits=limits) as found:
        yield found


def request(rows: int) -> bytes:
    item = message_class("InferTensor")(name="x", datatype="FP32", shape=[rows, 3]).SerializeToString()
    head = message_class("ModelInferRequest")(model_name="echo").SerializeToString()
    return head + sized(5, len(item)) + item + sized(7, 12 * rows) + bytes(12 * rows)


def is_live(server: Running) -> bool:
    with needed("grpc").insecure_channel(f"127.0.0.1:{server.grpc}", options=ALONE) as channel:
        return bool(channel.unary_unary(f"/{SERVICE}/ServerLive")(b"", timeout=5))


@pytest.mark.extra
def test_a_stream_whose_client_does_not_read(server: Running) -> None:
    is_over = threading.Event()

    def messages() -> Iterator[bytes]:
        yield from [request(ROWS)] * 12
        is_over.wait(30)

    with needed("grpc").insecure_channel(f"127.0.0.1:{server.grpc}", options=ALONE) as channel:
        stream = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")(messages())
        # The client's package reads ahead, less than this.
        assert until(lambda: server.service.held_bytes > 8 << 20)
        assert is_live(server)
        assert until(lambda: not stream.is_active())
        is_over.set()
        assert stream.code().name == "UNAVAILABLE"
    assert until(lambda: server.service.held_bytes == 0)


@pytest.mark.extra
def test_a_stream_whose_client_reads_in_time(server: Running) -> None:
    """Each answer has a time of its own."""
    with needed("grpc").insecure_channel(f"127.0.0.1:{server.grpc}", options=ALONE) as channel:
        stream = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")(iter([request(ROWS)] * 12))
        count = 0
        for data in stream:
            assert len(data) > 12 * ROWS
            count += 1
            time.sleep(0.15)
    assert count == 12
    assert until(lambda: server.service.held_bytes == 0)


@pytest.mark.extra
def test_a_stream_without_requests_ends(server: Running) -> None:
    is_over = threading.Event()

    def messages() -> Iterator[bytes]:
        yield request(1)
        is_over.wait(30)

    with needed("grpc").insecure_channel(f"127.0.0.1:{server.grpc}", options=ALONE) as channel:
        stream = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")(messages())
        assert next(stream)
        with pytest.raises(needed("grpc").RpcError) as caught:
            next(stream)
        is_over.set()
    error: Any = caught.value
    assert (error.code().name, error.details()) == ("DEADLINE_EXCEEDED", "the stream had no request for 0.5 seconds")


def frame(kind: int, flags: int, stream: int, data: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    return struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data


def deaf_client(server: Running, method: str, message: bytes) -> socket.socket:
    """A client that takes no byte of the messages that answer it, whose connection is there."""
    fields = {":method": "POST", ":scheme": "http", ":path": f"/{SERVICE}/{method}", ":authority": "a"}
    fields |= {"content-type": "application/grpc", "te": "trailers"}
    head = b""
    for name, value in fields.items():
        head += b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    no_window = frame(4, 0, 0, struct.pack(">HI", 4, 0))
    body = b"\0" + struct.pack(">I", len(message)) + message
    found = socket.create_connection(("127.0.0.1", server.grpc), timeout=20)
    found.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + no_window + frame(1, 4, 1, head) + frame(0, 1, 1, body))
    return found


@pytest.mark.extra
@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer", "ServerMetadata", "ServerLive"])
def test_a_call_whose_client_does_not_read(server: Running, method: str) -> None:
    message = request(100) if "Infer" in method else b""
    with deaf_client(server, method, message) as client:
        if message:
            assert until(lambda: server.service.held_bytes > 1200)
        assert is_live(server)
        while client.recv(1 << 16):  # Frames that are no part of messages, until the connection ends.
            pass
    assert until(lambda: server.service.held_bytes == 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_is_found_by_its_peer(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip("the machine has no such addresses")
        listener.listen()
        clients = [socket.create_connection(listener.getsockname()[:2], timeout=5) for _ in range(2)]
        sockets = [listener.accept()[0] for _ in clients]
        port = clients[0].getsockname()[1]
        disconnect([f"ipv6:%5B::1%5D:{port}" if ":" in host else f"ipv4:127.0.0.1:{port}", "unix:", "unix:/a"])
        assert clients[0].recv(1) == b""
        clients[1].setblocking(False)
        with pytest.raises(BlockingIOError):
            clients[1].recv(1)
        for connection in (*clients, *sockets):
            connection.close()


@pytest.mark.extra
def test_health_is_answered_beside_as_many_calls_as_may_be() -> None:
    """Those wait for their turns; one more is told at once that there are too many."""

    async def ask(port: int, count: int) -> tuple[bytes, list[str]]:
        aio = needed("grpc.aio")
        async with aio.insecure_channel(f"127.0.0.1:{port}", options=ALONE) as channel:
            method = channel.stream_unary(f"/{SERVICE}/ModelInfer")
            calls = [method() for _ in range(count)]
            await asyncio.sleep(0.5)
            live = await channel.unary_unary(f"/{SERVICE}/ServerLive")(b"", timeout=5)
            found = [(await call.code()).name for call in calls if call.done()]
            assert all(["already has 20 calls" in await call.details() for call in calls if call.done()])
            for call in calls:
                call.cancel()
            await asyncio.sleep(0.2)
            assert await channel.stream_unary(f"/{SERVICE}/ModelInfer")(iter([request(1)]), timeout=5)
            return live, found

    with running(limits=Limits(requests=20, memory_bytes=64 << 20, message_bytes=8 << 20)) as server:
        live, codes = asyncio.run(ask(server.grpc, 25))
    assert message_class("ServerLiveResponse").FromString(live).live
    assert codes == ["RESOURCE_EXHAUSTED"] * 5
