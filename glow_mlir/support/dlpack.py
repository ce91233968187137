"""
Arrays to and from DLPack capsules, without a copy, of all dtypes: numpy itself exchanges none of those of `ml_dtypes`.

What numpy lacks goes through its exchange as integers of the same width, and the capsule says what they are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.support.array_addresses import array_at
from glow_mlir.support.dtypes import named_dtype

CPU = (1, 0)
"""The DLPack device of all arrays: type CPU, number 0."""

CUDA = 2
"""The type of CUDA's devices."""

ON_HOST = (CPU[0], 3, 11)
"""The device types in host memory, including memory pinned by CUDA and ROCm."""

FOREIGN = {
    "bfloat16": (4, 16),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}
"""Dtype that numpy lacks → its DLPack code and bits."""

_UNSIGNED = 1
"""The code of unsigned integers."""


class _Tensor(ctypes.Structure):
    """DLPack's `DLTensor`, up to its element type."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


OLD = b"dltensor"
"""The name of unversioned capsules."""

_OFFSETS = {OLD: 0, b"dltensor_versioned": 32}
"""Name of a capsule → the offset of its tensor: 0, or after version, context, deleter and flags."""

_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.argtypes, _name_of.restype = (ctypes.py_object,), ctypes.c_char_p
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def to_capsule(array: np.ndarray, **options: Any) -> object:
    """
    A capsule that shares the memory of an array, and keeps it alive; `options` are the protocol's (`max_version`).

    Raises `InputError` for a dtype without DLPack code.
    """
    name = array.dtype.name
    code, bits = FOREIGN.get(name, (None, 0))
    known = array if code is None else array.view(f"uint{bits}")
    try:
        capsule = known.__dlpack__(**options)
    except (BufferError, TypeError, ValueError) as error:
        raise InputError(f"an array of {name} cannot be given by DLPack: {error}") from error
    if code is not None:
        _tensor_in(capsule).code = code
    return capsule


def from_capsule(source: Any) -> np.ndarray:
    """
    The memory of an object with `__dlpack__`, or of a capsule, as an array.

    It is writable unless the capsule says otherwise; unversioned capsules cannot, but are not made from read-only
    memory. Raises `InputError` for anything but a CPU tensor.
    """
    capsule = _capsule_of(source)
    kind, number = device_in(capsule)
    if kind not in ON_HOST:
        reason = f"a tensor is on the device {kind}:{number} of DLPack, and not on the CPU"
        raise InputError(reason, hint="copy it to the CPU first")
    tensor = _tensor_in(capsule)
    tensor.device_type, tensor.device_id = CPU
    return _array_of(capsule)


def device_in(capsule: object) -> tuple[int, int]:
    """The type and number of the device that the tensor of a capsule is on; raises `InputError` for anything else."""
    tensor = _tensor_in(capsule)
    return tensor.device_type, tensor.device_id


def is_uint8(capsule: object) -> bool:
    """
    Whether the tensor of a capsule has byte elements, once used for booleans; raises `InputError` for anything else.
    """
    tensor = _tensor_in(capsule)
    return (tensor.code, tensor.bits) == (_UNSIGNED, 8)


def to_device_capsule(
    address: int, dtype: np.dtype[Any], shape: Sequence[int], device: tuple[int, int], owner: object, **options: Any
) -> object:
    """
    A capsule for memory of a device (type and number), valid while `owner` lives; the capsule keeps it alive.

    Raises `InputError` as `to_capsule`.
    """
    # The elements of this array are never accessed, although numpy takes it for a host array.
    capsule = to_capsule(array_at(address, dtype, shape, owner), **options)
    tensor = _tensor_in(capsule)
    tensor.device_type, tensor.device_id = device
    return capsule


def from_device_capsule(source: Any, stream: int | None = None) -> np.ndarray:
    """
    The device memory of an object with `__dlpack__`, or of a capsule, as an array with its address and shape; its
    elements must not be accessed.

    `stream` is the address of the stream that will read it. Raises `InputError` for anything but a tensor.
    """
    capsule = _capsule_of(source, {} if stream is None else {"stream": stream})
    tensor = _tensor_in(capsule)
    tensor.device_type, tensor.device_id = CPU
    return _array_of(capsule)


def _array_of(capsule: object) -> np.ndarray:
    """The memory that a capsule of the CPU holds, as an array."""
    tensor, is_old = _tensor_in(capsule), _name_of(capsule) == OLD
    kinds = {kind: name for name, kind in FOREIGN.items()}
    code = tensor.code
    name = kinds.get((code, tensor.bits))
    if name is not None:
        tensor.code = _UNSIGNED
    try:
        array = np.from_dlpack(_Given(capsule))
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        if _name_of(capsule) in _OFFSETS:  # It is not consumed, and may be used again.
            tensor.code = code
        raise InputError(f"a tensor of DLPack cannot be taken: {error}", hint="convert it to an array first") from error
    if is_old and not array.flags.writeable and array.flags.c_contiguous:
        array = array_at(array.ctypes.data, array.dtype, array.shape, array)
    return array if name is None else array.view(named_dtype(name))


class _Given:
    """A capsule as an object that has it, as numpy wants it."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, *, stream: Any = None, **options: object) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def _capsule_of(source: Any, options: Mapping[str, Any] = MappingProxyType({})) -> object:
    """The capsule of an object, versioned if supported, or the object itself if it is a capsule."""
    if not hasattr(source, "__dlpack__"):
        return source
    try:
        return source.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # It supports only the old form.
        return source.__dlpack__(**options)
    except BufferError as error:
        raise InputError(f"a tensor cannot be given by DLPack: {error}", hint="give it as an array") from error


def _tensor_in(capsule: object) -> _Tensor:
    """The tensor of a capsule that is not consumed; raises `InputError` for anything else."""
    if type(capsule).__name__ != "PyCapsule":
        reason = f"'{type(capsule).__name__}' gives no memory by DLPack"
        raise InputError(reason, hint="give an array, or what has __dlpack__")
    name = _name_of(capsule)
    if name not in _OFFSETS:
        raise InputError("a capsule of DLPack has been taken already", hint="ask for another one")
    return _Tensor.from_address(_pointer_of(capsule, name) + _OFFSETS[name])
