"""The driver's C API as the backend calls it, on a library that the emulation stands in for."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from fake_libcuda import OUT_OF_MEMORY, FakeLibCuda
from models import random_inputs
from quantized_models import residual
from small_models import counter

from glow_mlir import InferenceSession
from glow_mlir.backends.cuda import devices
from glow_mlir.backends.cuda.device import CudaDevice
from glow_mlir.backends.cuda.executable import CudaEntry, CudaExecutable
from glow_mlir.backends.cuda.libcuda import NOT_READY, LibCuda
from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import ExecutionError, OptionError, OutOfMemoryError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.devices import Event


def artifacts(model: onnx.ModelProto) -> tuple[Artifact, FakeLibCuda]:
    """A model as PTX, and a library that runs it."""
    found, emulated = (
        Compilation(import_model(model), backend="cuda", target=target).artifact()
        for target in ("sm_80", "emulated-sm_80")
    )
    return found, FakeLibCuda({found.code[0]: emulated.code[0]})


def entry_of(artifact: Artifact, library: FakeLibCuda) -> CudaEntry:
    """The entry of an artifact on the only device of a library."""
    return CudaExecutable(artifact, CudaDevice(LibCuda(library), 0, "cuda:0")).load("main")


def test_a_model_by_the_api() -> None:
    model = residual()
    inputs = random_inputs(model, np.random.default_rng(0))
    (expected,) = InferenceSession(model, cache=False).run(None, inputs)
    artifact, library = artifacts(model)
    entry = entry_of(artifact, library)
    for _ in range(3):
        (found,) = entry.run(inputs).values()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * float(np.abs(expected).max()))
    # One graph does all launches, and calls whose buffers are those of the last one launch it again.
    assert library.calls["cuLaunchKernel"] == len(list(entry.program.launches()))
    assert library.calls["cuGraphLaunch"] == 3
    assert library.calls["cuStreamEndCapture"] == 1
    assert library.calls["cuMemHostAlloc"] <= 3
    assert {grid.threads for _, grid in library.launches} == {128}


def test_events_and_memory_are_given_back() -> None:
    model = residual()
    inputs = random_inputs(model, np.random.default_rng(0))
    artifact, library = artifacts(model)
    entry = entry_of(artifact, library)
    entry.run(inputs)
    made = library.calls["cuMemAlloc_v2"]
    for _ in range(4):
        entry.run(inputs)
    assert library.calls["cuMemAlloc_v2"] == made
    assert library.calls["cuEventCreate"] == library.calls["cuEventDestroy_v2"]


def test_properties() -> None:
    found = LibCuda(FakeLibCuda({}, room=1 << 20)).properties(0)
    assert (found.name, found.generation, found.nbytes) == ("Fake A100", 80, 1 << 20)


def test_too_little_memory() -> None:
    artifact, library = artifacts(residual())
    small = FakeLibCuda(library.modules, room=1 << 10)
    with pytest.raises(OutOfMemoryError, match="the device has too little memory: out of memory"):
        entry_of(artifact, small)


def test_ptx_that_the_driver_refuses() -> None:
    artifact, _ = artifacts(residual())
    with pytest.raises(ExecutionError, match="the CUDA driver fails in cuModuleLoadDataEx: ptxas fatal: unknown"):
        entry_of(artifact, FakeLibCuda({}))


@pytest.fixture
def without_devices(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A machine without a driver."""
    monkeypatch.setattr(devices, "driver", lambda: None)
    yield
    devices.real_device.cache_clear()


@pytest.mark.usefixtures("without_devices")
def test_a_machine_without_devices() -> None:
    artifact, _ = artifacts(residual())
    with pytest.raises(OptionError, match=r"there is no device 'cuda:0': no libcuda.so.1 with one"):
        get_backend("cuda").load(artifact, 1)
    with pytest.raises(OptionError, match="there is no CUDA device here"):
        get_backend("cuda").host()


def test_the_device_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    artifact, library = artifacts(residual())
    devices.real_device.cache_clear()
    monkeypatch.setattr(devices, "driver", lambda: LibCuda(library))
    backend = get_backend("cuda")
    assert backend.host().cpu == "sm_80"
    assert backend.lacks(backend.targets()["sm_90"]) == "a CUDA device of generation 90"
    assert not backend.lacks(backend.targets()["sm_75"])
    assert backend.memory(backend.targets()["sm_75"]).nbytes == 1 << 30
    assert backend.memory(backend.targets()["emulated-sm_75"]).nbytes == 0
    assert backend.load(artifact, 1).entry().inputs
    with pytest.raises(OptionError, match="there is no device 'cuda:3'"):
        backend.load_on(artifact, 3, 1)
    devices.real_device.cache_clear()


def test_state_stays_on_the_device(tmp_path: Path) -> None:
    module = tmp_path / "counter.mlir"
    module.write_text(counter(), encoding="utf-8")
    session = InferenceSession(module, backend="cuda", target="emulated-sm_80", cache=False)
    for turn in range(1, 4):
        (found,) = session.run(None, {"x": np.ones(4, np.float32)})
        np.testing.assert_array_equal(found, np.full(4, turn, np.float32))


class Behind(Event):
    """What another device does when an event of this one is there: a thread of its own waits for that."""

    def __init__(self, event: Event) -> None:
        self._event = event
        self.is_late = False

    def wait(self) -> None:
        thread = threading.Thread(target=self._event.wait, daemon=True)
        thread.start()
        thread.join(5)
        self.is_late = thread.is_alive()

    @property
    def is_done(self) -> bool:
        return False


def test_who_waits_for_another_device_leaves_this_one_to_it() -> None:
    device = devices.emulated_device(0)
    buffer, numbers = device.allocate(8), np.arange(2, dtype=np.float32)
    behind = Behind(device.upload(buffer, numbers))
    device.upload(buffer, numbers, (behind,))
    assert not behind.is_late
    again = Behind(device.upload(buffer, numbers))
    device.download(buffer, numbers, (again,)).wait()
    assert not again.is_late


class LateLibCuda(FakeLibCuda):
    """A library whose events are there when somebody waits for them, and no earlier."""

    def cuEventQuery(self, event: Any) -> int:
        return NOT_READY


def test_what_a_copy_writes_is_there_when_it_is_copied_on() -> None:
    driver = LibCuda(LateLibCuda({}))
    devices_of_driver = [CudaDevice(driver, number, f"cuda:{number}") for number in range(2)]
    for other in devices_of_driver:
        device, numbers = devices_of_driver[0], np.arange(2, dtype=np.float32)
        there, further = device.allocate(8), other.allocate(8)
        device.upload(there, numbers)
        between, found = np.zeros(2, np.float32), np.zeros(2, np.float32)
        down = device.download(there, between)
        up = other.upload(further, between, (down,))
        other.download(further, found, (up,)).wait()
        np.testing.assert_array_equal(found, numbers)


def without_room(*given: Any) -> int:
    """A launch for which there is no memory."""
    return OUT_OF_MEMORY


def test_a_launch_that_fails_leaves_the_stream_as_it_was() -> None:
    model = residual()
    artifact, library = artifacts(model)
    inputs = random_inputs(model, np.random.default_rng(0))
    entry = entry_of(artifact, library)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeLibCuda, "cuLaunchKernel", without_room)
        with pytest.raises(OutOfMemoryError, match="out of memory"):
            entry.run(inputs)
    (expected,) = InferenceSession(model, cache=False).run(None, inputs)
    (found,) = entry.run(inputs).values()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * float(np.abs(expected).max()))


def test_memory_that_is_kept_makes_room_for_other_sizes() -> None:
    device = CudaDevice(LibCuda(FakeLibCuda({}, room=1 << 20)), 0, "cuda:0")
    device.free(device.allocate(700_000))
    device.allocate(800_000)
    with pytest.raises(OutOfMemoryError, match="out of memory"):
        device.allocate(2 << 20)


def test_memory_of_dropped_buffers_is_used_again() -> None:
    device = devices.emulated_device(0)
    buffer = device.allocate(12_345)
    address = buffer.address
    device.free(buffer)
    device.free(buffer)
    kept = device.allocate(12_345)
    assert kept.address == address
    assert device.allocate(12_345).address != address
    del kept
    assert device.allocate(12_345).address == address
