"""Tensors on devices as inputs and outputs: emulated devices of CUDA, whose memory is that of this process."""

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import threading
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from fake_libcuda import FakeLibCuda
from onnx import TensorProto, helper
from small_models import counter

from glow_mlir import InferenceSession, OrtDevice, OrtValue
from glow_mlir.api.device_tensors import device_named, on_device
from glow_mlir.api.onnxruntime.native import NativeSession, SessionIOBinding
from glow_mlir.backends.cuda import devices
from glow_mlir.backends.cuda.device import CudaBuffer
from glow_mlir.backends.cuda.libcuda import LibCuda
from glow_mlir.errors import InputError, OptionError
from glow_mlir.runtime.device_array import DeviceArray
from glow_mlir.runtime.devices import Device
from glow_mlir.runtime.host_device import HostDevice
from glow_mlir.runtime.partitions import PartitionedExecutable
from glow_mlir.support import dlpack

KIND = "emulated-cuda"
X = np.arange(12, dtype=np.float32).reshape(3, 4)
TARGET = "target=emulated-sm_80"

WAYS: Mapping[str, Mapping[str, Any]] = {
    "one device": {"backend": "cuda", "target": "emulated-sm_80"},
    "one of several": {"devices": f"cuda,{TARGET}"},
    "two devices": {
        "devices": f"cuda,{TARGET},cuda,{TARGET}",
        "placement": {"cuda:0": ["first"], "cuda:1": ["second"]},
    },
    "device first": {"devices": f"cuda,{TARGET},cpu", "placement": {"cuda:0": ["first"], "cpu:0": ["second"]}},
    "host first": {"devices": f"cuda,{TARGET},cpu", "placement": {"cpu:0": ["first"], "cuda:0": ["second"]}},
    "host": {"backend": "cpu"},
    "free size": {"backend": "cuda", "target": "emulated-sm_80", "rows": "N"},
    "free size on the host": {"backend": "cpu", "rows": "N", "dimensions": {"N": (1, 8)}},
}
"""How a model runs whose inputs and outputs are on devices, or not."""


def model(rows: int | str = 3, outputs: Sequence[str] = ("y", "z", "same")) -> onnx.ModelProto:
    """Two operators behind one another, of whose values both are outputs, and an output that is the input."""
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], "first"),
        helper.make_node("Exp", ["y"], ["z"], "second"),
        helper.make_node("Identity", ["x"], ["same"], "third"),
    ]
    given, made = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, 4]) for name in names]
        for names in ("x", outputs)
    )
    return helper.make_model(helper.make_graph(nodes, "graph", given, made), ir_version=9)


def session_of(way: str, folder: Path, outputs: Sequence[str] = ("y", "z", "same")) -> InferenceSession:
    """A session of the model."""
    said = dict(WAYS[way])
    if "placement" in said:
        place = folder / "placement.json"
        place.write_text(json.dumps(said["placement"]), encoding="utf-8")
        said["placement"] = str(place)
    return InferenceSession(model(said.pop("rows", 3), outputs), cache=False, **said)


def expected(x: np.ndarray) -> dict[str, np.ndarray]:
    """What the model gives."""
    return {"y": np.maximum(x, 0), "z": np.exp(np.maximum(x, 0)), "same": x}


def check(found: Mapping[str, Any], x: np.ndarray = X) -> None:
    """Fail where outputs are not what the model gives."""
    for name, value in found.items():
        np.testing.assert_allclose(np.asarray(value), expected(x)[name], rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_inputs_and_outputs_on_devices(way: str, tmp_path: Path) -> None:
    session, names = session_of(way, tmp_path), ("y", "z", "same")
    value = OrtValue.ortvalue_from_numpy(X, KIND)
    check(dict(zip(names, session.run(None, {"x": value}), strict=True)))
    assert [item.device_name() for item in session.run_with_ort_values(["z"], {"x": value})] == ["cpu"]
    for places in itertools.product(("cpu", KIND, "bound"), repeat=3):
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", value)
        bound = {name: OrtValue.ortvalue_from_shape_and_type(X.shape, np.float32, KIND) for name in names}
        for name, place in zip(names, places, strict=True):
            if place == "bound":
                binding.bind_ortvalue_output(name, bound[name])
            else:
                binding.bind_output(name, place)
        for factor in (1, -2):
            value.update_inplace(X * factor)
            session.run_with_iobinding(binding)
            found = dict(zip(names, binding.get_outputs(), strict=True))
            assert [found[name].device_name() for name in names] == [KIND if p == "bound" else p for p in places]
            check(found, X * factor)
            check(dict(zip(names, binding.copy_outputs_to_cpu(), strict=True)), X * factor)
            for name, place in zip(names, places, strict=True):
                assert (found[name].tensor is bound[name].tensor) == (place == "bound")


def counted(device: Device, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many bytes a device is asked to copy from now on, by direction."""
    found = Counter[str]()
    for name in ("upload", "download"):

        def counting(
            buffer: Any, array: np.ndarray, *rest: Any, name: str = name, copy: Any = getattr(device, name)
        ) -> Any:
            found[name] += array.nbytes
            return copy(buffer, array, *rest)

        monkeypatch.setattr(device, name, counting)
    return found


@pytest.mark.parametrize(
    ("way", "moved"),
    [
        ("one device", {}),
        ("one of several", {}),
        ("two devices", {"upload": X.nbytes, "download": X.nbytes}),
        ("device first", {"upload": X.nbytes, "download": X.nbytes}),
        ("host first", {"upload": 2 * X.nbytes, "download": X.nbytes}),
    ],
)
def test_what_is_on_the_device_is_not_copied(
    way: str, moved: Mapping[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, value = session_of(way, tmp_path, ("y", "z")), OrtValue.ortvalue_from_numpy(X, KIND)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    for name in ("y", "z"):
        binding.bind_output(name, KIND)
    session.run_with_iobinding(binding)
    found = counted(device_named(KIND), monkeypatch)
    session.run_with_iobinding(binding)
    assert found == moved
    check(dict(zip(("y", "z"), binding.get_outputs(), strict=True)))


@pytest.mark.parametrize("way", WAYS)
def test_an_output_may_be_in_the_place_of_an_input(way: str, tmp_path: Path) -> None:
    session, value = session_of(way, tmp_path), OrtValue.ortvalue_from_numpy(X, KIND)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output("z", value)
    binding.bind_output("same", KIND)
    session.run_with_iobinding(binding)
    check({"z": value, "same": binding.get_outputs()[1]})


def test_state_stays_while_inputs_are_on_the_device(tmp_path: Path) -> None:
    module = tmp_path / "counter.mlir"
    module.write_text(counter(), encoding="utf-8")
    session = InferenceSession(module, devices=f"cuda,{TARGET}")
    value = OrtValue.ortvalue_from_numpy(np.ones(4, np.float32), KIND)
    for turn in range(1, 4):
        np.testing.assert_array_equal(session.run(None, {"x": value})[0], np.full(4, turn, np.float32))
    done, found = threading.Semaphore(0), list[float]()

    def callback(results: Any, data: Any, error: str) -> None:
        assert not error
        found.append(float(results[0][0]))
        done.release()

    for _ in range(8):
        session.run_async(None, {"x": value}, callback)
    for _ in range(8):
        assert done.acquire(timeout=60)
    assert sorted(found) == list(range(4, 12))


def test_calls_beside_the_caller_are_in_the_queues_at_once(tmp_path: Path) -> None:
    """More of them than there are threads that wait for their ends."""
    session, gate, done = session_of("device first", tmp_path), threading.Event(), threading.Semaphore(0)
    executable = session.executable
    assert isinstance(executable, PartitionedExecutable)
    (host,) = (device for device in executable.devices.values() if isinstance(device, HostDevice))

    def hold() -> None:
        gate.wait()

    host.put(hold)
    found: list[tuple[int, str]] = []

    def callback(results: Any, data: int, error: str) -> None:
        check(dict(zip(("y", "z", "same"), results, strict=True)), X - data)
        found.append((data, error))
        done.release()

    for number in range(40):
        session.run_async(None, {"x": X - number}, callback, number)
    assert not found
    gate.set()
    for _ in range(40):
        assert done.acquire(timeout=60)
    assert sorted(found) == [(number, "") for number in range(40)]


def test_what_does_not_fit_beside_the_caller_is_told_the_callback(tmp_path: Path) -> None:
    told, done = list[str](), threading.Semaphore(0)

    def callback(results: Any, data: Any, error: str) -> None:
        told.append(error)
        done.release()

    session = session_of("one device", tmp_path)
    session.run_async(None, {"x": X[:2]}, callback)
    session.run_async(["w"], {"x": X}, callback)
    for _ in range(2):
        assert done.acquire(timeout=60)
    assert [text.partition("(")[0].strip() for text in sorted(told)] == [
        "input 'x' must be float32[3, 4], not float32[2, 4]",
        "there is no output 'w'",
    ]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Generator[FakeLibCuda]:
    """A driver of CUDA whose memory is that of this process."""
    library = FakeLibCuda({})
    devices.real_device.cache_clear()
    made = LibCuda(library)
    monkeypatch.setattr(devices, "driver", lambda: made)
    yield library
    devices.real_device.cache_clear()


class Described:
    """A tensor of another library that says where in the memory of CUDA it is."""

    def __init__(self, array: np.ndarray, stream: int | None = None) -> None:
        self.array = array
        said = array.__array_interface__
        self.__cuda_array_interface__ = {name: said[name] for name in ("shape", "typestr", "data", "strides")}
        self.__cuda_array_interface__ |= {"version": 3, "stream": stream}


@pytest.mark.usefixtures("driver")
def test_memory_of_cuda_is_shared_by_dlpack() -> None:
    value = OrtValue.ortvalue_from_numpy(X, "cuda")
    assert value.__dlpack_device__() == (2, 0)
    for given in (value, value.to_dlpack(), value.__dlpack__(max_version=(1, 0)), value.tensor):
        again = OrtValue.from_dlpack(given)
        assert again.data_ptr() == value.data_ptr()
        assert again.device_name() == "cuda"
        np.testing.assert_array_equal(again.numpy(), X)
    with pytest.raises(InputError, match="device 2:0 of DLPack, and not on the CPU"):
        dlpack.from_capsule(value.to_dlpack())


def test_memory_of_cuda_lives_as_long_as_who_has_it(driver: FakeLibCuda) -> None:
    value = OrtValue.ortvalue_from_numpy(X, "cuda")
    again = OrtValue.from_dlpack(value)
    del value
    gc.collect()
    others = [OrtValue.ortvalue_from_numpy(X + 1, "cuda") for _ in range(3)]
    np.testing.assert_array_equal(again.numpy(), X)
    kept = driver.calls["cuMemAlloc_v2"]
    del again, others
    gc.collect()
    for _ in range(9):
        OrtValue.ortvalue_from_numpy(X, "cuda")
    assert driver.calls["cuMemAlloc_v2"] == kept


def test_memory_of_cuda_is_shared_by_its_array_interface(driver: FakeLibCuda) -> None:
    value = OrtValue.ortvalue_from_numpy(X, "cuda")
    described: Any = value.__cuda_array_interface__
    assert described["data"] == (value.data_ptr(), False)
    assert (described["shape"], described["typestr"], described["version"]) == ((3, 4), "<f4", 3)
    for stream in (None, device_named("cuda").stream_address):
        found = on_device(Described(X, stream))
        assert found is not None
        assert found.address == X.ctypes.data
        np.testing.assert_array_equal(found.numpy(), X)
    assert driver.calls["cuStreamSynchronize"] == 1
    with pytest.raises(InputError, match="not contiguous"):
        on_device(Described(X.T))
    with pytest.raises(AttributeError):
        OrtValue(X).__cuda_array_interface__
    with pytest.raises(AttributeError):
        OrtValue.ortvalue_from_numpy(X, KIND).__cuda_array_interface__


def test_memory_of_another_device_is_refused(driver: FakeLibCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(self: LibCuda, address: int) -> int:
        return 1

    monkeypatch.setattr(LibCuda, "device_at", elsewhere)
    with pytest.raises(OptionError, match="is that of the device 1 of CUDA, and not of cuda:0"):
        on_device(Described(X))
    with pytest.raises(OptionError, match="there is no device 'cuda:7'"):
        OrtValue.ortvalue_from_numpy(X, "cuda", 7)


@pytest.mark.usefixtures("driver")
def test_devices_by_their_numbers() -> None:
    session, device = NativeSession(InferenceSession(model(), cache=False)), OrtDevice.make("cuda")
    value = OrtValue.ortvalue_from_shape_and_type(X.shape, np.float32, "cuda", 0)
    value.update_inplace(X)
    binding = SessionIOBinding(session)
    binding.bind_input("x", device, np.float32, X.shape, value.data_ptr())
    binding.bind_output("y", device)
    binding.bind_output("z", device, np.float32, X.shape, value.data_ptr())
    session.run_with_iobinding(binding)
    found, place = binding.get_outputs()
    assert found.device_name() == "cuda"
    assert place.data_ptr() == value.data_ptr()
    check({"y": found, "z": value})


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    value, session = OrtValue.ortvalue_from_numpy(X, KIND), InferenceSession(model(), cache=False)
    cases: list[tuple[Any, str]] = [
        (lambda: session.run(None, {"x": OrtValue.ortvalue_from_numpy(X[:2], KIND)}), r"must be float32\[3, 4\]"),
        (lambda: session.run(None, {"x": OrtValue.ortvalue_from_numpy(X.astype(int), KIND)}), "not int64"),
        (
            lambda: session.io_binding().bind_ortvalue_output("y", OrtValue.ortvalue_from_numpy(X[0], KIND)),
            "bind other",
        ),
        (lambda: session.io_binding().bind_output("y", "npu"), "there is no device 'npu'"),
        (lambda: OrtValue.ortvalue_from_numpy(X, KIND, -1), "-1 is no number of a device"),
        (lambda: value.update_inplace(X[0]), "cannot be updated with"),
        (lambda: value.__dlpack__(dl_device=(2, 0)), "is not given as one of"),
    ]
    for call, reason in cases:
        with pytest.raises((InputError, OptionError), match=reason) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert isinstance(value.tensor, DeviceArray)
    assert isinstance(value.tensor.buffer, CudaBuffer)
    assert repr(value.tensor) == f"<DeviceArray float32[3, 4] on {KIND}:0>"
    assert ctypes.c_float.from_address(value.data_ptr()).value == X.flat[0]
