"""Hosts: networks that are added, replaced, unloaded and removed, and what they write of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from host_networks import rows_of, threads_left
from models import GraphBuilder, linear
from onnx import TensorProto, parser

import glow_mlir
from glow_mlir.api.model_identity import stored_bytes
from glow_mlir.errors import ExecutionError, OptionError, UnknownNetworkError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.host.host import Host
from glow_mlir.host.network import Network


@pytest.fixture
def host() -> Generator[Host]:
    """A host that leaves nothing behind."""
    with Host() as made:
        yield made
    assert not threads_left()


def layer(width: int, seed: int = 0) -> onnx.ModelProto:
    """A layer of two inputs and so many outputs."""
    g = GraphBuilder(seed)
    result = g.node("Relu", linear(g, "x", 2, width))
    return g.model({"x": (TensorProto.FLOAT, ("N", 2))}, {result: ("N", width)})


def width_of(host: Host, name: str, version: str | None = None) -> int:
    """How wide the result of a network is."""
    (found,) = host.run(name, rows_of(1), version=version).values()
    return found.shape[1]


def test_a_host_is_one_of_the_names_of_the_package() -> None:
    assert glow_mlir.Host is Host


def test_versions_are_told_apart(host: Host) -> None:
    for version, width in (("2", 5), ("10", 7), ("beta", 9)):
        host.add("net", layer(width), version=version)
    assert [width_of(host, "net", version) for version in (None, "2", "10", "beta")] == [7, 5, 7, 9]
    host.add("net", layer(11), version="10")
    assert width_of(host, "net") == 11
    host.remove("net", "10")
    assert width_of(host, "net") == 5
    with pytest.raises(
        UnknownNetworkError, match=r"there is no network 'net' of version 10 \(hint: 'net' has versions beta, 2\)"
    ):
        host.run("net", rows_of(1), version="10")
    host.remove("net")
    with pytest.raises(UnknownNetworkError, match=r"there is no network 'net' \(hint: there are none"):
        host.submit("net", rows_of(1))
    with pytest.raises(UnknownNetworkError):
        host.remove("net")


def test_who_asks_again_has_the_same_outputs(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    networks = [host.add("net", layer(width)) for width in (5, 7)]
    (name,) = (argument.name for argument in networks[1].outputs)

    def network(*_: object) -> Network:
        return networks.pop(0)

    monkeypatch.setattr(host, "network", network)  # The first was replaced just now.
    assert host.run("net", rows_of(1), outputs=iter([name]))[name].shape == (1, 7)


def test_what_takes_too_much_memory_is_unloaded_and_loaded_again() -> None:
    models = [layer(1000 + number) for number in range(3)]
    with Host() as host:
        host.add("net", models[0], dimensions={"N": 1})
        one = host.network("net").memory_bytes
    with Host(memory_bytes=5 * one // 2) as host:
        for number, model in enumerate(models):
            host.add(f"net{number}", model, dimensions={"N": 1})
            for known in range(number + 1):
                assert width_of(host, f"net{known}") == 1000 + known
                assert sum(network.memory_bytes for network in host.networks) <= 5 * one // 2
        assert len(host.networks) == 2
        assert len(host.names) == 3


@pytest.mark.parametrize("kind", ["file", "message", "bytes"])
@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_what_is_compiled_when_it_is_called_counts_before(kind: str, workers: str, tmp_path: Path) -> None:
    models = [layer(4000 + number) for number in range(3)]
    given: list[Any] = list(models)
    for number, model in enumerate(models):
        if kind == "file":
            given[number] = tmp_path / f"{number}.onnx"
            onnx.save(model, given[number])
        elif kind == "bytes":
            given[number] = model.SerializeToString()
    weights = 4 * 3 * 4000
    with Host(memory_bytes=5 * weights // 2) as host:
        networks = [host.add(f"net{number}", model, workers=workers) for number, model in enumerate(given)]
        assert all(weights <= network.memory_bytes < 1.1 * weights for network in networks)
        assert [network.name for network in host.networks] == ["net1", "net2"]
        before = networks[2].memory_bytes
        assert width_of(host, "net2") == 4002
        assert host.network("net2").memory_bytes > before


def test_what_a_module_takes_are_its_constants() -> None:
    assert stored_bytes(import_model(layer(4000), {"N": 1})) == 4 * 3 * 4000


def test_a_model_that_cannot_be_served_changes_nothing(host: Host) -> None:
    host.add("net", layer(3))
    before = host.network("net")
    fixed = GraphBuilder(0)
    result = linear(fixed, "x", 2, 3)
    model = fixed.model({"x": (TensorProto.FLOAT, (1, 2))}, {result: (1, 3)})
    with pytest.raises(UnsupportedError, match=r"'net' cannot batch requests: its inputs are x: float32\[1, 2\]"):
        host.add("net", model, batch=4)
    with pytest.raises(OptionError, match="a network has no replicas"):
        host.add("net", layer(3), devices=[])
    with pytest.raises(OptionError, match="a session has no keyword 'quantise'"):
        host.add("net", layer(3), quantise=True)
    assert host.network("net") is before
    host.close()
    with pytest.raises(OptionError, match="the host is closed"):
        host.add("net", layer(3))


def test_replicas_have_devices_of_their_own(host: Host) -> None:
    network = host.add("net", layer(3), devices=["cpu", "cuda,target=emulated-sm_80"], dimensions={"N": 1})
    found = [network.submit(rows_of(2)).result(30) for _ in range(8)]
    for outputs in found:
        np.testing.assert_allclose(next(iter(outputs.values())), next(iter(found[0].values())), rtol=1e-6)
    assert [replica.name for replica in network.replicas] == [
        "replica 0 (cpu)", "replica 1 (cuda,target=emulated-sm_80)"
    ]  # fmt: skip


def test_a_trace_has_requests_and_the_queues_of_devices(host: Host, tmp_path: Path) -> None:
    host.add("net", layer(3), devices="cpu,cpu", partition="pipeline", dimensions={"N": 1})
    path = tmp_path / "trace.json"
    with host.tracing(path):
        host.submit("net", rows_of(1)).result(30)
        host.run("net", rows_of(1))
    events: Any = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    found = [str(event["name"]) for event in events]
    assert found.count("computes") == found.count("waits") == 2
    assert any(name.startswith("main") for name in found)


def test_loops_of_asyncio(host: Host) -> None:
    host.add("net", layer(3), batch=8)

    async def ask() -> list[int]:
        answers = await asyncio.gather(*(host.infer("net", rows_of(n)) for n in range(20)))
        return [next(iter(outputs.values())).shape[0] for outputs in answers]

    assert asyncio.run(ask()) == [1] * 20


def test_loops_that_nothing_bounds_take_no_more_memory_than_the_host() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> graph (float[64] x, bool c) => (float[n, 64] y) {
            f, y = Loop ("", c, x) <body = step (int64 i, bool goes, float[64] a)
                => (bool on, float[64] b, float[64] r) {
                b = Neg (a) r = Identity (b) on = Identity (goes)
            }>
        }"""
    )
    with Host(memory_bytes=1_000_000) as host:
        host.add("loop", model, cache=False)
        with pytest.raises(ExecutionError, match=r"'f': a loop takes more trips .* bytes, more than 1000000 \(hint: "):
            host.run("loop", {"x": np.ones(64, np.float32), "c": np.array(True)})
