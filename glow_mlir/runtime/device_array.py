"""Tensors in device memory, which calls read and write in place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from glow_mlir.errors import InputError, OptionError
from glow_mlir.support import dlpack

if TYPE_CHECKING:
    from glow_mlir.runtime.devices import Buffer, Device


class DeviceArray:
    """
    A C-contiguous tensor in device memory; its contents are always complete.

    Its memory is freed with the last reference to its buffer. Other libraries can access it by DLPack, and for CUDA by
    `__cuda_array_interface__` (version 3).
    """

    def __init__(self, device: Device, buffer: Buffer, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        """The tensor at the start of a buffer."""
        self.device = device
        self.buffer = buffer
        self.shape = tuple(shape)
        self.dtype = dtype

    @staticmethod
    def empty(device: Device, shape: Sequence[int], dtype: np.dtype[Any]) -> DeviceArray:
        """A new tensor, uninitialised; raises `OutOfMemoryError`."""
        return DeviceArray(device, device.allocate(math.prod(shape) * dtype.itemsize), shape, dtype)

    @staticmethod
    def of(device: Device, array: np.ndarray) -> DeviceArray:
        """A copy of a host array."""
        made = DeviceArray.empty(device, array.shape, array.dtype)
        made.assign(array)
        return made

    def overlaps(self, other: DeviceArray) -> bool:
        """Whether both share memory."""
        if self.buffer is other.buffer:
            return True
        if self.device is not other.device or self.device.dlpack_device is None:
            return False
        return self.address < other.address + other.nbytes and other.address < self.address + self.nbytes

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def view(self, dtype: np.dtype[Any]) -> DeviceArray:
        """The same memory as elements of another type of the same width."""
        return DeviceArray(self.device, self.buffer, self.shape, dtype)

    def numpy(self) -> np.ndarray:
        """A copy in host memory."""
        found = np.empty(self.shape, self.dtype)
        self.device.download(self.buffer, found).wait()
        return found

    def assign(self, value: np.ndarray | DeviceArray) -> None:
        """Overwrite it; raises `InputError` for a value of another element type or shape."""
        if value.dtype != self.dtype or value.shape != self.shape:
            wanted, found = (f"{item.dtype.name}{list(item.shape)}" for item in (self, value))
            raise InputError(f"the value is {wanted}, and cannot be updated with {found}")
        array = value.numpy() if isinstance(value, DeviceArray) else np.asarray(value, order="C")
        self.device.upload(self.buffer, array).wait()

    @property
    def address(self) -> int:
        """The address in the memory of the device; raises `OptionError` if the device has no addresses."""
        return self.device.address(self.buffer)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        kind, _ = self.device.dlpack_device or (0, 0)
        if kind != dlpack.CUDA:
            raise AttributeError(f"a tensor on {self.device.name} is not in the memory of CUDA")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "stream": None,  # All writes are complete.
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.device.dlpack_device is None:
            reason = f"the memory of {self.device.name} cannot be shared"
            raise OptionError(reason, hint="numpy() gives a copy on the host")
        return self.device.dlpack_device

    def __dlpack__(self, *, stream: Any = None, dl_device: Any = None, **options: Any) -> object:
        where = self.__dlpack_device__()
        if dl_device not in (None, where):
            raise InputError(f"a tensor of DLPack's device {where} is not given as one of {dl_device}")
        return dlpack.to_device_capsule(self.address, self.dtype, self.shape, where, self, **options)

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype.name}{list(self.shape)} on {self.device.name}>"


Tensor = np.ndarray | DeviceArray
"""A tensor of the host, or of a device."""

OutputTarget: TypeAlias = "np.ndarray | DeviceArray | Device"
"""The destination of a result: an existing tensor, or a device on which a new one is allocated."""


def on_host(value: Tensor) -> np.ndarray:
    """The tensor in host memory: a host array itself, or a copy."""
    return value.numpy() if isinstance(value, DeviceArray) else value


def on_target(name: str, array: np.ndarray, target: OutputTarget | None) -> Tensor:
    """
    An output from the host, delivered to its target, or itself without one.

    Raises `InputError` for a target of another shape.
    """
    if target is None:
        return array
    if not isinstance(target, np.ndarray | DeviceArray):
        return DeviceArray.of(target, array)
    check_target_shape(name, target.shape, array.shape)
    if isinstance(target, DeviceArray):
        target.assign(array)
    else:
        target[...] = array
    return target


def check_target_shape(name: str, given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raise `InputError` for a target of another shape than its output."""
    if given != wanted:
        raise InputError(f"output '{name}' has shape {list(wanted)}, but its buffer has shape {list(given)}")


def all_on_targets(found: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]) -> dict[str, Tensor]:
    """Deliver outputs to their targets; outputs on devices are already there. Raises errors as `on_target` does."""
    return {
        name: value if isinstance(value, DeviceArray) else on_target(name, value, targets.get(name))
        for name, value in found.items()
    }


def is_apart(target: DeviceArray, others: Iterable[object]) -> bool:
    """Whether a tensor shares no memory with the others, so that it may be written while they are read."""
    return not any(isinstance(other, DeviceArray) and target.overlaps(other) for other in others)
