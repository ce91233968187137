"""Buffers, events, state and entries on a device of OpenCL."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from checkout import ROOT
from opencl_devices import opencl_device

from glow_mlir import InferenceSession, OrtValue
from glow_mlir.backends.interface import get_backend
from glow_mlir.backends.opencl.device import OpenCLEvent
from glow_mlir.backends.opencl.library import device_at, opencl
from glow_mlir.backends.opencl.programs import Binary, ProgramCache
from glow_mlir.errors import ExecutionError, OptionError, OutOfMemoryError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.runtime.device_entry import DeviceEntry
from glow_mlir.runtime.host_device import HostDevice

pytestmark = pytest.mark.extra

DIGITS = ROOT / "examples" / "digits.onnx"

COUNTER = """
glow_high.placeholder @step : tensor<3xf32> {input}
glow_high.placeholder @total : tensor<3xf32> {state}
glow_high.placeholder @y : tensor<3xf32> {output}
glow_high.func @main(@step, @total, @y) {
  %step = glow_high.get @step : tensor<3xf32>
  %total = glow_high.get @total {mutable} : tensor<3xf32>
  %0 = glow_high.add %total, %step : tensor<3xf32>
  glow_high.save %0, @total
  glow_high.save %0, @y
}
"""


def test_what_goes_up_comes_down() -> None:
    device = opencl_device()
    given = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    buffer = device.allocate(given.nbytes)
    up = device.upload(buffer, given)
    found = np.empty_like(given)
    down = device.download(buffer, found, (up,))
    down.wait()
    assert up.is_done
    assert down.is_done
    np.testing.assert_array_equal(found, given)
    device.free(buffer)


def test_nothing_is_moved_for_an_empty_array() -> None:
    device = opencl_device()
    buffer = device.allocate(0)
    device.upload(buffer, np.empty((0, 3), np.float32)).wait()
    assert device.download(buffer, np.empty(0, np.float32)).is_done


def test_entries_run_on_buffers_of_the_device() -> None:
    device = opencl_device()
    entry = InferenceSession(DIGITS, backend="opencl", cache=False, dimensions={"N": 1}).executable.entry()
    assert isinstance(entry, DeviceEntry)
    given, place = entry.passed
    image = np.random.default_rng(0).random(given.shape, np.float32)
    buffers = [device.allocate(binding.nbytes) for binding in (given, place)]
    done = entry.enqueue(buffers, (device.upload(buffers[0], image),))
    assert isinstance(done, OpenCLEvent)
    found = np.empty(place.shape, np.float32)
    device.download(buffers[1], found, (done,)).wait()
    np.testing.assert_array_equal(found, entry.run({given.name: image})[place.name])


def waited(gate: threading.Event) -> None:
    """Return when a gate is open."""
    gate.wait()


def test_the_queue_waits_for_other_devices_while_the_caller_goes_on() -> None:
    device, host, gate = opencl_device(), HostDevice("host:0"), threading.Event()
    buffer, given, found = device.allocate(8), np.arange(2, dtype=np.float32), np.zeros(2, np.float32)
    opened = host.put(lambda: waited(gate))
    up = device.upload(buffer, given, (opened,))
    down = device.download(buffer, found, (up,))
    assert not down.is_done
    gate.set()
    down.wait()
    np.testing.assert_array_equal(found, given)


def test_events_that_nobody_has_let_other_threads_run() -> None:
    device, host = opencl_device(), HostDevice("host:0")
    buffer, given, found = device.allocate(8), np.arange(2, dtype=np.float32), np.zeros(2, np.float32)
    for _ in range(20):
        device.upload(buffer, given, (host.put(lambda: time.sleep(0.01)),))
    device.download(buffer, found).wait()
    np.testing.assert_array_equal(found, given)


def test_what_comes_behind_a_failure_fails() -> None:
    device, host = opencl_device(), HostDevice("host:0")

    def fail() -> None:
        raise ExecutionError("a device failed")

    buffer = device.allocate(8)
    up = device.upload(buffer, np.zeros(2, np.float32), (host.put(fail),))
    with pytest.raises(ExecutionError, match="a device failed"):
        device.download(buffer, np.zeros(2, np.float32), (up,)).wait()


def test_state_stays_on_the_device_until_somebody_looks() -> None:
    session = InferenceSession(parse_module(COUNTER, new_context(), "counter.mlir"), backend="opencl", cache=False)
    for _ in range(3):
        session.run(None, {"step": np.ones(3, np.float32)})
    np.testing.assert_array_equal(session.get_state()["total"], np.full(3, 3, np.float32))
    session.set_state({"total": np.arange(3, dtype=np.float32)})
    np.testing.assert_array_equal(session.run(None, {"step": np.ones(3, np.float32)})[0], [1, 2, 3])


def test_threads_share_a_session() -> None:
    session = InferenceSession(DIGITS, backend="opencl", cache=False, dimensions={"N": 1})
    (argument,) = session.get_inputs()
    images = np.random.default_rng(0).random((8, *argument.shape), np.float32)
    expected = [session.run(None, {argument.name: image})[0] for image in images]
    found: dict[int, np.ndarray] = {}

    def run(number: int) -> None:
        for _ in range(20):
            found[number] = session.run(None, {argument.name: images[number]})[0]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(images))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, wanted in enumerate(expected):
        np.testing.assert_array_equal(found[number], wanted)


def test_a_second_start_builds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path))
    first = InferenceSession(DIGITS, backend="opencl", dimensions={"N": 1})
    image = {first.get_inputs()[0].name: np.zeros(first.get_inputs()[0].shape, np.float32)}
    expected = first.run(None, image)
    (folder,) = tmp_path.glob("opencl-v*")
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setattr("glow_mlir.backends.opencl.programs._built", None)
    again = InferenceSession(DIGITS, backend="opencl", dimensions={"N": 1})
    np.testing.assert_array_equal(again.run(None, image)[0], expected[0])


def test_a_binary_is_complete_when_all_entries_have_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path))
    second = COUNTER.replace("glow_high.placeholder", "//").replace("@main", "@again")
    module = parse_module(COUNTER + second, new_context(), "counter.mlir")
    session = InferenceSession(module, backend="opencl", cache=False)
    step = {"step": np.ones(3, np.float32)}
    session.run(None, step)
    (path,) = tmp_path.glob("opencl-v*/*")
    first = path.read_bytes()
    session.executable.entry("again").run(step)
    assert path.read_bytes() != first
    assert ProgramCache().load(path.stem) == Binary(ANY, frozenset({"main", "again"}))


def test_a_damaged_binary_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path))
    cache = ProgramCache()
    binary = Binary(b"\n\0binary\n", frozenset({"main", "train"}))
    cache.store("key", binary)
    assert cache.load("key") == binary
    (path,) = tmp_path.glob("opencl-v*/key.bin")
    path.write_bytes(path.read_bytes()[:-1])
    assert cache.load("key") is None
    assert cache.load("other") is None


def test_a_binary_that_the_driver_refuses_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path))
    step = {"step": np.ones(3, np.float32)}
    module = parse_module(COUNTER, new_context(), "counter.mlir")
    InferenceSession(module.clone(), backend="opencl", cache=False).run(None, step)
    (path,) = tmp_path.glob("opencl-v*/*")
    entries = frozenset({"main"})
    ProgramCache().store(path.stem, Binary(b"of another driver", entries))
    InferenceSession(module, backend="opencl", cache=False).run(None, step)
    found = ProgramCache().load(path.stem)
    assert found is not None
    assert found.entries == entries
    assert found.content != b"of another driver"


class FullQueue:
    """A queue of a driver that finds out late that there is no memory."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        raise opencl().RuntimeError("enqueue failed: OUT_OF_RESOURCES")


def test_memory_that_lacks_when_it_is_used_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    session = InferenceSession(DIGITS, backend="opencl", cache=False, dimensions={"N": 1})
    (argument,) = session.get_inputs()
    device = opencl_device()
    monkeypatch.setattr(opencl(), "enqueue_copy", FullQueue())
    with pytest.raises(OutOfMemoryError, match="there is too little memory on opencl:0 for a copy of 8 bytes"):
        device.upload(device.allocate(8), np.zeros(2, np.float32))
    with pytest.raises(OutOfMemoryError, match="there is too little memory on opencl:0 for"):
        session.run(None, {argument.name: np.zeros(argument.shape, np.float32)})


def test_devices_are_targets() -> None:
    backend, device = get_backend("opencl"), opencl_device()
    target = backend.target(device.name)
    assert target == backend.host()
    assert target.policy.threads == device.handle.max_compute_units
    assert backend.memory(target).alignment * 8 == device.handle.mem_base_addr_align
    assert not backend.lacks(target)
    with pytest.raises(OptionError, match=r"there is no device 'opencl:999'"):
        device_at("opencl:999")


def test_tensors_on_the_device_are_read_and_written_there(monkeypatch: pytest.MonkeyPatch) -> None:
    device, image = opencl_device(), np.ones((1, 1, 8, 8), np.float32)
    session = InferenceSession(DIGITS, backend="opencl", dimensions={"N": 1})
    binding = session.io_binding()
    binding.bind_ortvalue_input("image", OrtValue.ortvalue_from_numpy(image, "opencl"))
    binding.bind_output("probabilities", "opencl")
    session.run_with_iobinding(binding)

    def never(*arguments: object) -> None:
        raise AssertionError("something is copied")

    with monkeypatch.context() as patch:
        patch.setattr(device, "upload", never)
        patch.setattr(device, "download", never)
        session.run_with_iobinding(binding)
    (found,) = binding.get_outputs()
    assert found.device_name() == "opencl"
    np.testing.assert_array_equal(found.numpy(), session.run(None, {"image": image})[0])
    with pytest.raises(OptionError, match="the memory of opencl:0 has no addresses"):
        found.data_ptr()
    with pytest.raises(OptionError, match="the memory of opencl:0 cannot be shared"):
        np.from_dlpack(found)
