"""Each backend has kernels and packed forms of its own, and those of the backends that it extends."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from xdsl.ir import Operation

from glow_mlir import InferenceSession
from glow_mlir.backends.cpu.backend import CpuBackend
from glow_mlir.backends.interface import Backend, get_backend
from glow_mlir.codegen.kernels.products.conv import ConvKernel
from glow_mlir.constants.layouts import depthwise_filters
from glow_mlir.constants.packed_layout import PackedLayout
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.target import Target
from glow_mlir.driver.pipelines import Pipeline
from glow_mlir.errors import OptionError, PackageError
from glow_mlir.ir import registry
from glow_mlir.ir.registry import BACKENDS, Numbers, backend, kernel, kernels_of, packed_form, packed_forms_of
from glow_mlir.runtime.executable import Executable

DIGITS = ROOT / "examples" / "digits.onnx"


class Device(Backend):
    """A backend whose tables are its own."""

    name = "device"

    def supports(self, op: Operation) -> bool:
        return False

    def load(self, artifact: Any, threads: int) -> Executable:
        raise NotImplementedError


class Extended(CpuBackend):
    """A backend with the kernels of another behind its own."""

    name = "extended"
    TABLES = ("extended", *CpuBackend.TABLES)


@pytest.fixture(autouse=True)
def start_with_empty_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins with empty tables for the backends of this module."""
    for table in (kernels_of, packed_forms_of):
        for name in ("device", "extended"):
            monkeypatch.setattr(table(name), "_entries", {})


def by_channels(shape: Shape, numbers: Numbers) -> PackedLayout:
    return depthwise_filters(shape)


def test_kernel_of_another_backend_is_none_of_the_cpu() -> None:
    kernel("warp-product", backend="device")(object)
    assert set(Device().kernels) == {"warp-product"}
    assert "warp-product" not in get_backend("cpu").kernels


def test_kernels_of_two_backends_may_have_the_same_name() -> None:
    class Conv:
        """A kernel."""

    kernel("conv", backend="device")(Conv)
    assert isinstance(Device().kernels["conv"], Conv)
    assert not isinstance(get_backend("cpu").kernels["conv"], Conv)


def test_backend_that_extends_another_prefers_its_own_kernels() -> None:
    class Conv(ConvKernel):
        """A kernel."""

    kernel("conv", backend="extended")(Conv)
    found, shared = Extended().kernels, get_backend("cpu").kernels
    assert next(iter(found)) == "conv"
    assert isinstance(found["conv"], Conv)
    assert set(found) == set(shared)


def test_packed_forms_are_open_to_other_packages() -> None:
    packed_form("scaled", backend="extended")(by_channels)
    assert Extended().packed_forms["scaled"] is by_channels
    assert set(get_backend("cpu").packed_forms) == set(Extended().packed_forms) - {"scaled"}


def test_modules_of_a_package_are_imported_for_their_backend_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def load(part: str, backend: str = "") -> Iterator[Any]:
        asked.append((part, backend))
        return iter(())

    monkeypatch.setattr(registry, "part_modules", load)
    table = registry.Part[Any]("kernels", "device")
    assert table.all() == {}
    assert asked == [("kernels", "device")]


def test_modules_behind_the_one_with_an_entry_are_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []

    def load(part: str, backend: str = "") -> Iterator[Any]:
        def module(name: str) -> None:
            imported.append(name)
            table.add(name, object)

        return iter([partial(module, name) for name in ("one", "two", "three")])

    monkeypatch.setattr(registry, "part_modules", load)
    table = registry.Part[Any]("backends")
    assert table.first("two") is object
    assert imported == ["one", "two"]
    assert table.first("none") is None
    assert list(table.all()) == imported == ["one", "two", "three"]


def test_two_kernels_of_one_name_in_one_table_are_an_error() -> None:
    kernel("conv", backend="device")(object)
    with pytest.raises(PackageError, match="the kernels of 'device' have two entries for 'conv'"):
        kernel("conv", backend="device")(dict)


class Mine(CpuBackend):
    """A backend as docs/add-a-backend.md shows one, registered by the script that defines it."""

    name = "mine"

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        return super().pipeline(target, profile).without("eliminate-copies")


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of that backend, which other tests do not know."""
    monkeypatch.setattr(BACKENDS, "_entries", dict(BACKENDS.all()))
    backend(Mine.name)(Mine)
    return Mine.name


def test_subclass_that_a_script_registers_compiles_and_runs(mine: str) -> None:
    stages: list[str] = []
    session = InferenceSession(
        DIGITS, backend=mine, dimensions={"N": 1}, observers=[lambda stage, module, _: stages.append(stage.name)]
    )
    (image,) = session.get_inputs()
    x = np.random.default_rng(0).standard_normal(image.shape, np.float32)
    expected = InferenceSession(DIGITS, dimensions={"N": 1}).run(None, {image.name: x})
    np.testing.assert_allclose(session.run(None, {image.name: x})[0], expected[0], rtol=1e-5, atol=1e-6)
    assert stages[-3:] == ["allocated", "structured", "llvm"]
    assert 'backend = "mine"' in session.machine_entry.entry.target
    # Nothing says which version of the script there is, so what it compiles is not kept.
    assert InferenceSession(DIGITS, backend=mine, dimensions={"N": 1}).compile_seconds


@pytest.mark.usefixtures("mine")
def test_targets_of_a_subclass_are_its_own() -> None:
    target = Mine().target("avx2,threads=2")
    assert (target.backend, target.policy.threads) == ("mine", 2)
    with pytest.raises(OptionError, match="a target of the backend 'mine' says its triple"):
        Mine().check_target(Target("mine"))
