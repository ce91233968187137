"""Devices by name, and tensors of other libraries in the memory of devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from glow_mlir.dialects.packages import loader_of, packages
from glow_mlir.errors import InputError, OptionError
from glow_mlir.options.placement import devices_named
from glow_mlir.runtime.device_array import DeviceArray, Tensor
from glow_mlir.runtime.devices import Device
from glow_mlir.support import dlpack
from glow_mlir.support.array_addresses import array_at


def device_named(kind: str, number: int = 0) -> Device:
    """The device of a kind, such as `opencl`, and number; raises `OptionError` for a missing one."""
    kinds = _devices("DEVICES")
    if kind not in kinds:
        raise OptionError(f"there is no device '{kind}' here", hint=f"there are {', '.join(kinds)}")
    return kinds[kind](number)


def check_present(backend: str, devices: str, target: str) -> None:
    """
    Raise `OptionError` if a device for a model is missing (one of the listed `devices`, or else the `backend`'s device
    for a `target`), and for an unknown backend.
    """
    listed = devices_named(devices) if devices else [(backend, 0, [f"target={target}"])]
    for name, number, fields in listed:
        if (loader := loader_of(name)) is None:
            from glow_mlir.backends.interface import get_backend

            get_backend(name)
        kinds: Mapping[str, Callable[[int], Device]] = getattr(loader, "DEVICES", {})
        wanted = next((field.removeprefix("target=") for field in fields if field.startswith("target=")), "")
        of, _, position = wanted.partition(":")
        kind = f"{wanted.partition('-')[0]}-{name}"  # For example emulated-cuda for emulated-sm_80.
        if (found := kinds.get(kind) or kinds.get(name)) is not None:
            found(int(position) if of == name and position.isdecimal() else number)


def _devices(table: str) -> dict[Any, Callable[[int], Device]]:
    """Kind → function that returns the device of a number, from the tables of that name in all loaders."""
    found: dict[Any, Callable[[int], Device]] = {}
    for backend in dict.fromkeys(name for _, package in packages() for name in package.loaders):
        found |= getattr(loader_of(backend), table, {})
    return found


def _device_shared(kind: int, number: int) -> Device:
    """The device for DLPack's device type and number; raises `OptionError` for a missing one."""
    kinds = _devices("DLPACK_DEVICES")
    if kind not in kinds:
        reason = f"there is no device {kind}:{number} of DLPack here"
        raise OptionError(reason, hint="copy the tensor to the CPU first")
    return kinds[kind](number)


def on_device(value: Any) -> DeviceArray | None:
    """
    The tensor in device memory, if the value is in device memory; otherwise `None`.

    The value may be a `DeviceArray`, have a `device_array`, or be a CUDA tensor of another library, such as PyTorch or
    CuPy. Raises `InputError` unless it is C-contiguous, and `OptionError` if this process has no such device.
    """
    if isinstance(value, DeviceArray):
        return value
    if isinstance(found := getattr(value, "device_array", None), DeviceArray):
        return found
    index = getattr(value, "__dlpack_device__", None)
    if index is not None and (where := index())[0] not in dlpack.ON_HOST:
        return _given(value, *where)
    described = getattr(value, "__cuda_array_interface__", None)
    return None if described is None else _described(described, value)


def from_dlpack(source: Any) -> Tensor:
    """
    The tensor that an object exports by DLPack, or that a capsule holds, sharing its memory on the CPU or a device.

    Raises `InputError` for anything else and for tensors that are not C-contiguous, and `OptionError` if this process
    has no such device.
    """
    if (found := on_device(source)) is not None:
        return found
    if not hasattr(source, "__dlpack__") and (where := dlpack.device_in(source))[0] not in dlpack.ON_HOST:
        return _given(source, *where)
    array = dlpack.from_capsule(source)
    _check_layout(array)
    return array


def _given(source: Any, kind: int, number: int) -> DeviceArray:
    """The device tensor exported by DLPack, once the stream of the device may read it."""
    device = _device_shared(kind, number)
    return _shared(dlpack.from_device_capsule(source, device.stream_address), device)


def at_address(device: Device, address: int, dtype: np.dtype[Any], shape: Sequence[int]) -> DeviceArray:
    """The tensor at a device address, which must stay valid; raises `OptionError` for a device without addresses."""
    return _shared(array_at(address, dtype, shape), device)


class _Described:
    """The `__cuda_array_interface__` of an object in the form of numpy's own interface, so that numpy can parse it."""

    def __init__(self, given: Mapping[str, Any], owner: object) -> None:
        self.owner = owner
        self.__array_interface__ = {name: given.get(name) for name in ("shape", "typestr", "data", "strides")}
        self.__array_interface__["version"] = 3


def _described(given: Mapping[str, Any], owner: object) -> DeviceArray:
    """The tensor described by `__cuda_array_interface__`, once the stream that writes it is synchronized."""
    try:
        handle = np.asarray(_Described(given, owner))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"invalid description of a CUDA tensor: {error}", hint="give it by DLPack") from error
    return _shared(handle, _device_shared(dlpack.CUDA, 0), given.get("stream"))


def _shared(handle: np.ndarray, device: Device, stream: int | None = None) -> DeviceArray:
    """The device tensor at the address of an array, whose elements are not accessed."""
    _check_layout(handle)
    buffer = device.shared(handle.ctypes.data, handle.nbytes, handle, stream)
    return DeviceArray(device, buffer, handle.shape, handle.dtype)


def _check_layout(array: np.ndarray) -> None:
    if not array.flags.c_contiguous:
        raise InputError("a tensor is not contiguous", hint="copy it first, as torch's contiguous() does")
