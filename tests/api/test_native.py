"""Programs that go past onnxruntime's Python classes: sessions, bindings, tensors and providers of its modules."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from small_models import adding

from glow_mlir import InferenceSession, OrtDevice, OrtValue, RunOptions
from glow_mlir.errors import OptionError

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


@pytest.mark.parametrize("kind", [OrtDevice.cuda(), OrtDevice.dml()])
def test_other_devices_are_not_here(kind: int) -> None:
    with pytest.raises(OptionError, match="no device of type"):
        OrtDevice(kind, OrtDevice.default_memory(), 0)
    assert OrtDevice() == OrtDevice.make("cpu")


def test_names_and_options_of_providers_are_told_apart() -> None:
    collection: Any = import_module("glow_mlir.capi.onnxruntime_inference_collection")
    normalize = collection.check_and_normalize_provider_args
    assert normalize(None, None, []) == ([], [])
    assert normalize([("a", {1: 2}), "b"], None, ["a", "b"]) == (["a", "b"], [{"1": "2"}, {}])
    assert normalize(["a"], [{1: 2}], ["a"]) == (["a"], [{"1": "2"}])
    with pytest.raises(ValueError, match="is no provider"):
        normalize([("a", {1: 2})], [{3: 4}], ["a"])
    assert collection.OrtValue is OrtValue
