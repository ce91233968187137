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
"""The device of all arrays: the type CPU, and its number."""

CUDA = 2
"""The type of CUDA's devices."""

ON_HOST = (CPU[0], 3, 11)
"""The types of what is in the memory of the host, pinned by CUDA and ROCm among them."""

FOREIGN = {
    "bfloat16": (4, 16),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}
"""Dtype that numpy lacks → its code and bits in DLPack."""

_UNSIGNED = 1
"""The code of unsigned integers."""


class _Tensor(ctypes.Structure):
    """DLPack's `DLTensor`, as far as its element type."""

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
"""The name of a capsule of the form without versions."""

_OFFSETS = {OLD: 0, b"dltensor_versioned": 32}
"""Name of a capsule → where its tensor is: first, or behind version, context, deleter and flags."""

_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.argtypes, _name_of.restype = (ctypes.py_object,), ctypes.c_char_p
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def to_capsule(array: np.ndarray, **options: Any) -> object:
    """
    A capsule with the memory of an array, which lives as long; `options` are those of the protocol (`max_version`).

    Raises `InputError` for a dtype that DLPack has no code for.
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
    The memory that an object has or a capsule holds, as an array.

    It may be written unless the capsule says otherwise, which old ones cannot: nobody makes them of memory that is only
    read. Raises `InputError` for what is no tensor of a CPU.
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
    """Whether the tensor of a capsule is of bytes, as truth values were once; raises `InputError` for anything else."""
    tensor = _tensor_in(capsule)
    return (tensor.code, tensor.bits) == (_UNSIGNED, 8)


def to_device_capsule(
    address: int, dtype: np.dtype[Any], shape: Sequence[int], device: tuple[int, int], owner: object, **options: Any
) -> object:
    """
    A capsule with memory of a device, type and number, which is valid as long as `owner` lives, as that does with it.

    Raises `InputError` as `to_capsule`.
    """
    # Nobody reads the elements of this array, which numpy takes for one of the host.
    capsule = to_capsule(array_at(address, dtype, shape, owner), **options)
    tensor = _tensor_in(capsule)
    tensor.device_type, tensor.device_id = device
    return capsule


def from_device_capsule(source: Any, stream: int | None = None) -> np.ndarray:
    """
    The memory of a device that an object has or a capsule holds, as an array that says where and of what shape it is,
    and whose elements nobody may look at.

    `stream` is the address of the one that will read it. Raises `InputError` for what is no tensor.
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
        if _name_of(capsule) in _OFFSETS:  # Nobody has taken it, and another one may.
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
    """The capsule that an object gives, in the new form where it knows that, or the object itself if it is one."""
    if not hasattr(source, "__dlpack__"):
        return source
    try:
        return source.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # It knows the old form only.
        return source.__dlpack__(**options)
    except BufferError as error:
        raise InputError(f"a tensor cannot be given by DLPack: {error}", hint="give it as an array") from error


def _tensor_in(capsule: object) -> _Tensor:
    """The tensor of a capsule that nobody has taken; raises `InputError` for anything else."""
    if type(capsule).__name__ != "PyCapsule":
        reason = f"'{type(capsule).__name__}' gives no memory by DLPack"
        raise InputError(reason, hint="give an array, or what has __dlpack__")
    name = _name_of(capsule)
    if name not in _OFFSETS:
        raise InputError("a capsule of DLPack has been taken already", hint="ask for another one")
    return _Tensor.from_address(_pointer_of(capsule, name) + _OFFSETS[name])
