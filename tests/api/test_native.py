"""Programs that go past onnxruntime's Python classes: sessions, bindings, tensors and providers of its modules."""

from __future__ import annotations

from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import adding

from glow_mlir import InferenceSession, OrtDevice, OrtValue, RunOptions
from glow_mlir.errors import InputError, OptionError

STATE: Any = import_module("glow_mlir.capi._pybind_state")
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def native(session: InferenceSession) -> Any:
    name = "_sess"
    return getattr(session, name)


def test_calls_take_arguments_in_the_order_of_the_native_module() -> None:
    session = native(InferenceSession(adding()))
    value: Any = OrtValue.ortvalue_from_numpy(X)
    found = session.run_with_ort_values({"x": value._get_c_value()}, ["y"], RunOptions())
    assert isinstance(found, STATE.OrtValueVector)
    np.testing.assert_array_equal(found[0].numpy(), X + X)
    np.testing.assert_array_equal(session.run(["y"], {"x": value._ortvalue}, None)[0], X + X)


def test_bindings_take_devices() -> None:
    session = native(InferenceSession(adding((None, 3))))
    device = STATE.OrtDevice(STATE.OrtDevice.cpu(), STATE.OrtDevice.default_memory(), 0)
    value = STATE.OrtValue.ortvalue_from_numpy(X, device)
    binding = STATE.SessionIOBinding(session)
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y", device)
    session.run_with_iobinding(binding, None)
    assert isinstance(binding.get_outputs(), STATE.OrtValueVector)
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), X + X)
    place = np.zeros_like(X)
    binding = STATE.SessionIOBinding(session)
    binding.bind_input("x", device, np.float32, X.shape, value.data_ptr())
    binding.bind_output("y", device, 1, X.shape, place.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(place, X + X)
    binding.bind_input("x", X + 1)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X + X + 2)


@pytest.mark.parametrize(
    "device", [OrtDevice(OrtDevice.dml(), OrtDevice.default_memory(), 0), OrtDevice.make("dml"), OrtDevice(0, 0, 1)]
)
def test_other_devices_have_no_memory_here(device: OrtDevice) -> None:
    binding = STATE.SessionIOBinding(native(InferenceSession(adding())))
    for call in (
        lambda: STATE.OrtValue.ortvalue_from_numpy(X, device),
        lambda: STATE.OrtValue.ortvalue_from_shape_and_type([2], np.float32, device),
        lambda: binding.bind_output("y", device),
        lambda: binding.bind_input("x", device, np.float32, X.shape, X.ctypes.data),
    ):
        with pytest.raises(OptionError, match=r"there is no (OrtDevice|device|CPU)"):
            call()


@pytest.mark.parametrize("name", ["cpu", "cuda", "dml", "cann", "gpu", "npu", "webgpu"])
def test_devices_say_what_they_would_be(name: str) -> None:
    ours, theirs = (import_module(package).OrtDevice.make(name, 1) for package in ("glow_mlir", "onnxruntime"))
    for word in ("device_type", "device_id", "device_mem_type", "device_vendor_id"):
        assert getattr(ours, word)() == getattr(theirs, word)(), word


def test_devices_are_known_by_what_they_are() -> None:
    assert OrtDevice() == OrtDevice.make("cpu")
    assert OrtDevice.make("cuda") != OrtDevice()
    assert OrtDevice.make("gpu", 0, 0x10DE) == OrtDevice.make("cuda")
    with pytest.raises(OptionError, match="'toaster' is no kind of device"):
        OrtDevice.make("toaster")


def test_names_and_options_of_providers_are_told_apart() -> None:
    collection: Any = import_module("glow_mlir.capi.onnxruntime_inference_collection")
    normalize = collection.check_and_normalize_provider_args
    assert normalize(None, None, []) == ([], [])
    assert normalize([("a", {1: 2}), "b"], None, ["a", "b"]) == (["a", "b"], [{"1": "2"}, {}])
    assert normalize(["a"], [{1: 2}], ["a"]) == (["a"], [{"1": "2"}])
    with pytest.raises(ValueError, match="is no provider"):
        normalize([("a", {1: 2})], [{3: 4}], ["a"])
    assert collection.OrtValue is OrtValue


def test_tensors_are_given_as_capsules() -> None:
    given = OrtValue.ortvalue_from_numpy(X)
    native_value: Any = getattr(given, "_ortvalue")
    taken = STATE.OrtValue.from_dlpack(native_value.to_dlpack())
    assert taken.data_ptr() == given.data_ptr()
    np.testing.assert_array_equal(taken.numpy(), X)
    truths = np.array([[0, 1, 1]], np.uint8)
    assert STATE.OrtValue.from_dlpack(truths.__dlpack__(), False).data_type() == "tensor(uint8)"
    taken = STATE.OrtValue.from_dlpack(truths.__dlpack__(), True)
    np.testing.assert_array_equal(taken.numpy(), truths.astype(bool))
    with pytest.raises(InputError, match="no truth values in elements of float32"):
        STATE.OrtValue.from_dlpack(X, True)


def test_programs_find_the_path_of_a_model(tmp_path: Path) -> None:
    name = "_model_path"
    (tmp_path / "model.onnx").write_bytes(adding())
    for path in (tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        session = InferenceSession(path)
        assert getattr(session, name) == str(path)
        setattr(session, name, "elsewhere.onnx")  # As some programs do.
        assert getattr(session, name) == "elsewhere.onnx"
    assert getattr(InferenceSession(adding()), name) is None


def test_native_bindings_are_copied() -> None:
    binding = STATE.SessionIOBinding(getattr(InferenceSession(adding()), "_sess"))
    assert copy(binding).binding is binding.binding
    with pytest.raises(AttributeError, match="nothing"):
        binding.nothing


def test_native_forms_are_found_in_bindings_and_devices() -> None:
    binding: Any = InferenceSession(adding()).io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y", getattr(OrtDevice.make("cpu"), "_get_c_device")())
    binding.session.run_with_iobinding(binding)
    np.testing.assert_array_equal(getattr(binding, "_iobinding").get_outputs()[0].numpy(), X + X)
