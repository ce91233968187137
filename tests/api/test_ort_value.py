"""`OrtValue`: tensors in the memory of arrays, with DLPack both ways, also for types that numpy lacks."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from small_models import adding

from glow_mlir import InferenceSession, InvalidArgument, OrtValue, copy_tensors
from glow_mlir.errors import OptionError, OutOfMemoryError
from glow_mlir.support.dlpack import FOREIGN
from glow_mlir.support.dtypes import ONNX_NUMBERS, named_dtype

onnxruntime: Any = import_module("onnxruntime")
"""It has annotations, but gaps in them."""

EXCHANGED = [name for name in ONNX_NUMBERS if "int4" not in name and "int2" not in name and "float4" not in name]
"""The types that DLPack has codes for."""


def test_numbers_of_types_are_those_of_onnx() -> None:
    for name, number in ONNX_NUMBERS.items():
        assert onnx.helper.tensor_dtype_to_np_dtype(number) == named_dtype(name)


@pytest.mark.parametrize("name", ONNX_NUMBERS)
def test_types_are_called_as_onnxruntime_calls_them(name: str) -> None:
    value = OrtValue.ortvalue_from_shape_and_type([2, 3], ONNX_NUMBERS[name])
    assert (value.shape(), value.element_type(), value.numpy().dtype.name) == ([2, 3], ONNX_NUMBERS[name], name)
    if ONNX_NUMBERS[name] <= TensorProto.FLOAT8E5M2FNUZ:  # onnxruntime makes no arrays of narrower ones.
        other = onnxruntime.OrtValue.ortvalue_from_shape_and_type([2, 3], ONNX_NUMBERS[name])
        assert (value.data_type(), value.element_type()) == (other.data_type(), other.element_type())


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(EXCHANGED), st.lists(st.integers(0, 4), max_size=3), st.booleans())
def test_dlpack_shares_memory_both_ways(name: str, shape: list[int], is_new: bool) -> None:
    value = OrtValue(np.zeros(shape, named_dtype(name)))
    capsule = value.__dlpack__(max_version=(1, 0)) if is_new else value
    other = OrtValue.from_dlpack(capsule)
    assert (other.data_type(), other.shape()) == (value.data_type(), shape)
    other.numpy()[...] = 1
    assert (value.numpy() == np.ones(shape, named_dtype(name))).all()


@pytest.mark.parametrize("name", ["float32", "bool", "int64", *FOREIGN])
def test_dlpack_to_and_from_another_engine(name: str) -> None:
    if name == "float8_e8m0fnu":
        pytest.skip("onnxruntime does not exchange it")
    value = OrtValue(np.zeros((2, 3), named_dtype(name)))
    theirs = onnxruntime.OrtValue.from_dlpack(value)
    assert (theirs.data_ptr(), theirs.element_type()) == (value.data_ptr(), value.element_type())
    ours = OrtValue.from_dlpack(theirs)
    assert (ours.data_ptr(), ours.element_type()) == (value.data_ptr(), value.element_type())
    ours.numpy()[...] = 1
    assert value.numpy().astype(np.float32).sum() == 6


def test_memory_outlives_who_gave_it() -> None:
    theirs = onnxruntime.OrtValue.ortvalue_from_shape_and_type([100_000], np.float32)
    theirs.update_inplace(np.full(100_000, 7.0, np.float32))
    ours = OrtValue.from_dlpack(theirs)
    del theirs
    assert (ours.numpy() == 7).all()
    array = np.from_dlpack(OrtValue(np.full(100_000, 7.0, np.float32)))
    assert (array == 7).all()


def test_arrays_and_values_share_memory() -> None:
    array = np.zeros((2, 3), np.float32)
    value = OrtValue.ortvalue_from_numpy(array)
    assert value.data_ptr() == array.ctypes.data
    for other in (value.numpy(), np.asarray(value), np.from_dlpack(value), OrtValue.from_dlpack(array).numpy()):
        assert np.shares_memory(other, array)
    assert not np.shares_memory(np.array(value), array)
    assert np.asarray(value, np.float64).dtype == np.float64


def test_values_are_inputs_and_outputs_of_types_that_numpy_lacks() -> None:
    session = InferenceSession(adding((4,), TensorProto.BFLOAT16))
    x = OrtValue(np.arange(4, dtype=np.float32).astype(ml_dtypes.bfloat16))
    y = OrtValue.ortvalue_from_shape_and_type([4], TensorProto.BFLOAT16)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_output("y", "cpu", 0, TensorProto.BFLOAT16, [4], y.data_ptr())
    session.run_with_iobinding(binding)
    assert y.numpy().astype(np.float32).tolist() == [0, 2, 4, 6]
    (found,) = session.run_with_ort_values(None, {"x": x})
    assert found.numpy().tobytes() == y.numpy().tobytes()


def test_values_are_updated_in_place() -> None:
    value, other = (OrtValue(np.full((2, 3), number, np.float32)) for number in (1, 2))
    address = value.data_ptr()
    value.update_inplace(np.full((3, 2), 5, np.float32).T)
    assert (value.data_ptr(), value.numpy().sum()) == (address, 30)
    copy_tensors([other], [value])
    assert value.numpy().sum() == 12


def test_bits_have_the_type_that_onnx_says() -> None:
    value = OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3F80], np.uint16), TensorProto.BFLOAT16)
    assert (value.data_type(), float(value.numpy()[0])) == ("tensor(bfloat16)", 1.0)


READ_ONLY = np.ones(3, np.float32)
READ_ONLY.flags.writeable = False
TAKEN = np.ones(3).__dlpack__()
OrtValue.from_dlpack(TAKEN)

REFUSED: dict[str, tuple[str, Any]] = {
    "no array": ("is no array", lambda: OrtValue.ortvalue_from_numpy([1.0])),  # pyright: ignore[reportArgumentType]
    "type": ("no tensors of", lambda: OrtValue.ortvalue_from_numpy(np.array(["a"]))),
    "number": ("no arrays of the data type 8", lambda: OrtValue.ortvalue_from_shape_and_type([1], 8)),
    "word": ("no element type", lambda: OrtValue.ortvalue_from_shape_and_type([1], "float33")),
    "width": (
        "differ in size",
        lambda: OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(1, np.int8), TensorProto.BFLOAT16),
    ),
    "device": ("no device 'dml'", lambda: OrtValue.ortvalue_from_numpy(READ_ONLY, "dml")),
    "update type": ("cannot be updated", lambda: OrtValue(np.zeros(3)).update_inplace(READ_ONLY)),
    "update shape": ("cannot be updated", lambda: OrtValue(np.zeros(3)).update_inplace(np.zeros(2))),
    "update read-only": ("only be read", lambda: OrtValue(READ_ONLY).update_inplace(np.zeros(3, np.float32))),
    "no capsule": ("gives no memory", lambda: OrtValue.from_dlpack(5)),
    "taken": ("taken already", lambda: OrtValue.from_dlpack(TAKEN)),
    "strides": ("not contiguous", lambda: OrtValue.from_dlpack(np.zeros((3, 2)).T)),
    "lengths": ("1 tensors cannot be copied to 0", lambda: copy_tensors([OrtValue(READ_ONLY)], [])),
    "sparse": ("dense", lambda: getattr(OrtValue(READ_ONLY), "as_sparse_tensor")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_one_line(case: str) -> None:
    expected, ask = REFUSED[case]
    with pytest.raises(Exception, match=expected) as caught:
        ask()
    assert type(caught.value).__module__.startswith("glow_mlir")
    assert "\n" not in str(caught.value)


class Elsewhere:
    """A tensor that says it is on a device of that type of DLPack, and is in the memory of this process."""

    def __init__(self, kind: int) -> None:
        self._kind = kind

    def __dlpack__(self, **options: object) -> object:
        capsule = np.ones(3).__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
        ctypes.c_int32.from_address(pointer(capsule, b"dltensor") + 8).value = self._kind
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._kind, 0


@pytest.mark.parametrize("is_capsule", [False, True])
def test_a_tensor_on_another_device_is_refused(is_capsule: bool) -> None:
    tensor: Any = Elsewhere(8)
    with pytest.raises(OptionError, match="there is no device 8:0 of DLPack here"):
        OrtValue.from_dlpack(tensor.__dlpack__() if is_capsule else tensor)


@pytest.mark.parametrize("is_capsule", [False, True])
def test_pinned_memory_is_memory_of_the_host(is_capsule: bool) -> None:
    tensor: Any = Elsewhere(3)
    found = OrtValue.from_dlpack(tensor.__dlpack__() if is_capsule else tensor)
    assert found.device_name() == "cpu"
    np.testing.assert_array_equal(found.numpy(), np.ones(3))


@pytest.mark.parametrize("array", [np.zeros((2, 3), np.float32).T, np.zeros(2, ">f4"), [1.0], np.zeros(1, object)])
def test_memory_of_another_form_is_no_value(array: Any) -> None:
    """What is written through its address would be lost."""
    with pytest.raises(InvalidArgument):
        OrtValue(array)


@pytest.mark.parametrize("shape", [[-1], [1.5], None, "ab", 3])
def test_what_is_no_shape_is_refused(shape: Any) -> None:
    with pytest.raises(InvalidArgument, match="is no shape"):
        OrtValue.ortvalue_from_shape_and_type(shape)


@pytest.mark.parametrize("shape", [[1 << 55], [1 << 40, 1 << 40], [1 << 70]])
def test_a_value_larger_than_memory_is_refused(shape: list[int]) -> None:
    with pytest.raises(OutOfMemoryError, match="too little memory for float32"):
        OrtValue.ortvalue_from_shape_and_type(shape)


@pytest.mark.parametrize("name", ["float32", *FOREIGN])
def test_what_dlpack_cannot_give_is_told_in_one_line(name: str) -> None:
    array = np.zeros(3, named_dtype(name))
    with pytest.raises(InvalidArgument, match=f"{name} cannot be given by DLPack"):
        OrtValue(array).__dlpack__(dl_device=(2, 0))
    array.flags.writeable = False
    with pytest.raises(InvalidArgument, match=f"{name} cannot be given by DLPack"):
        OrtValue(array).__dlpack__()


@pytest.mark.parametrize("is_new", [False, True])
def test_a_capsule_that_is_refused_stays_as_it_is(is_new: bool) -> None:
    options = {"max_version": (1, 0)} if is_new else {}
    capsule = OrtValue(np.zeros(3, ml_dtypes.bfloat16)).__dlpack__(**options)
    place = ctypes.pythonapi.PyCapsule_GetPointer
    place.argtypes, place.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    address = place(capsule, b"dltensor_versioned" if is_new else b"dltensor") + (32 if is_new else 0)
    element = (ctypes.c_uint8 * 4).from_address(address + 20)  # Code, bits, and two bytes of lanes.
    element[2] = 2
    with pytest.raises(InvalidArgument, match="cannot be taken"):
        OrtValue.from_dlpack(capsule)
    assert list(element) == [*FOREIGN["bfloat16"], 2, 0]
    element[2] = 1
    assert OrtValue.from_dlpack(capsule).data_type() == "tensor(bfloat16)"
