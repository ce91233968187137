"""Tiles need the permission of the system, which it may refuse: then this machine is one without them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.llvm.host import detect_host
from glow_mlir.errors import OptionError
from glow_mlir.runtime import host, machine_code, tile_permission
from glow_mlir.runtime.artifact import Entry

CACHED = (tile_permission.may_use_tiles, host.llvm_features, detect_host)


@pytest.fixture(autouse=True)
def _processor_with_tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A processor that has tiles, whatever this one has; what is known of this one is forgotten around the test."""
    features = dict.fromkeys(PRESETS["amx"].enabled, True)
    monkeypatch.setattr(host, "_processor_features", lambda: features)
    monkeypatch.setattr(tile_permission.sys, "platform", "linux")
    monkeypatch.setattr(tile_permission.platform, "machine", lambda: "x86_64")
    for function in CACHED:
        function.cache_clear()
    yield
    for function in CACHED:
        function.cache_clear()


class System:
    """A system that answers what processes ask about tiles, and counts what they ask."""

    def __init__(self, grants: bool) -> None:
        self.grants = grants
        self.asked: list[int] = []

    def __call__(self, code: int, argument: int) -> int:
        self.asked.append(code)
        if code == tile_permission._REQUEST:  # pyright: ignore[reportPrivateUsage]
            assert argument == tile_permission._TILE_DATA  # pyright: ignore[reportPrivateUsage]
            return 0 if self.grants else -1
        tile_permission.ctypes.c_uint64.from_address(argument).value = 7 | 1 << 18 if self.grants else 7
        return 0


@pytest.fixture
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> System:
    """The system in the place of that of this machine."""
    found = System(request.param)
    monkeypatch.setattr(tile_permission, "arch_prctl", found)
    return found


def entry(features: tuple[str, ...]) -> Entry:
    """An entry of an artifact that needs these features."""
    fields = {field.name: () for field in dataclasses.fields(Entry)}
    return Entry(**{**fields, "name": "main", "triple": host.llvm_triple(), "features": features})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("system", [True], indirect=True)
def test_the_system_is_asked_once(system: System) -> None:
    for _ in range(2):
        host.llvm_features.cache_clear()
        assert host.llvm_features()["amx-int8"]
    assert len(system.asked) == 2
    assert "+amx-int8" in detect_host().features
    machine_code._check_machine(entry(("amx-int8", "amx-tile")))  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("system", [False], indirect=True)
def test_a_machine_whose_system_refuses_tiles_has_none(system: System) -> None:
    features = host.llvm_features()
    assert not any(is_there for name, is_there in features.items() if name.startswith("amx"))
    assert features["avx512vnni"]
    assert "-amx-int8" in detect_host().features
    assert system.asked


@pytest.mark.parametrize("system", [False], indirect=True)
def test_code_that_needs_tiles_is_refused_where_the_system_refuses_them(system: System) -> None:
    with pytest.raises(OptionError, match=r"@main: it lacks amx-int8, amx-tile, which the system disables \(hint"):
        machine_code._check_machine(entry(("amx-int8", "amx-tile", "avx512f")))  # pyright: ignore[reportPrivateUsage]


def test_other_systems_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_permission.sys, "platform", "darwin")
    granting = System(grants=True)
    monkeypatch.setattr(tile_permission, "arch_prctl", granting)
    assert not tile_permission.may_use_tiles()
    assert not granting.asked
