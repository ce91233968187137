"""Devices under onnxruntime's names: the CPU, with number 0, and devices whose memory can hold tensors."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Self

from glow_mlir.api.device_tensors import device_named
from glow_mlir.errors import OptionError
from glow_mlir.runtime.devices import Device
from glow_mlir.support.arguments import whole_number

CPU = "cpu"


class OrtDeviceVendorId(IntEnum):
    """The vendor of a device; `NONE` for CPUs."""

    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtDeviceMemoryType(IntEnum):
    """Kinds of memory of a device; a CPU has the first."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(IntEnum):
    """Kinds of devices; the first is available."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


KINDS: Mapping[str, tuple[int, OrtDeviceVendorId]] = {
    CPU: (0, OrtDeviceVendorId.NONE),
    "cuda": (1, OrtDeviceVendorId.NVIDIA),
    "dml": (1, OrtDeviceVendorId.MICROSOFT),
    "gpu": (1, OrtDeviceVendorId.NONE),
    "webgpu": (1, OrtDeviceVendorId.NONE),
    "cann": (3, OrtDeviceVendorId.HUAWEI),
    "npu": (3, OrtDeviceVendorId.NONE),
}
"""Name → the number of the device type, and the vendor."""


def device_of(device_type: object, device_id: object = 0) -> Device | None:
    """
    The device of a kind and number, `None` for the CPU; raises `OptionError` for a missing device.

    Besides onnxruntime's `cpu` and `cuda`, each kind of a backend is known, such as `opencl`.
    """
    if isinstance(device_type, OrtDevice):
        return _device_of_numbers(device_type)
    kind, number = str(device_type).lower(), whole_number(device_id)
    if number is None or number < 0:
        raise OptionError(f"{device_id!r} is no number of a device", hint="device_id=0")
    if kind != CPU:
        return device_named(kind, number)
    if number:
        raise OptionError(f"there is no CPU with the number {device_id}", hint="device_id=0")
    return None


def _device_of_numbers(device: OrtDevice) -> Device | None:
    """The device for onnxruntime's numbers."""
    if device == OrtDevice():
        return None
    kind = (device.device_type(), device.device_vendor_id())
    name = next((name for name, known in KINDS.items() if known == kind), "")
    if not name or device.device_mem_type():
        raise OptionError(f"there is no {device!r} here", hint="memory is that of the 'cpu', or of 'cuda'")
    return device_of(name, device.device_id())


class OrtDevice:
    """A device by the numbers of its type, memory kind and position, whether or not it exists here."""

    def __init__(self, device_type: int = 0, memory_type: int = 0, device_id: int = 0, *, vendor_id: int = 0) -> None:
        self._numbers = (device_type, memory_type, device_id, vendor_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrtDevice) and self._numbers == other._numbers

    def __hash__(self) -> int:
        return hash(self._numbers)

    def __repr__(self) -> str:
        kind, memory, number, vendor = self._numbers
        return f"OrtDevice({kind}, {memory}, {number}{f', vendor_id={vendor}' if vendor else ''})"

    @staticmethod
    def make(ort_device_name: str, device_id: int = 0, vendor_id: int = -1) -> OrtDevice:
        """The device of that name, whether or not it exists here; raises `OptionError` for an unknown name."""
        name = str(ort_device_name).lower()
        if name not in KINDS:
            raise OptionError(f"'{ort_device_name}' is no kind of device", hint=f"there are {', '.join(KINDS)}")
        numbers = [whole_number(given) for given in (device_id, vendor_id)]
        if None in numbers:
            raise OptionError(f"{device_id!r} and {vendor_id!r} are no numbers of a device and of who makes it")
        kind, vendor = KINDS[name]
        return OrtDevice(kind, 0, device_id, vendor_id=vendor if vendor_id < 0 else vendor_id)

    def _get_c_device(self) -> Self:
        """The device itself, for programs that bypass onnxruntime's Python class."""
        return self

    def device_id(self) -> int:
        """Its number."""
        return self._numbers[2]

    def device_type(self) -> int:
        """The number of its type."""
        return self._numbers[0]

    def device_mem_type(self) -> int:
        """The number of the kind of its memory."""
        return self._numbers[1]

    def device_vendor_id(self) -> int:
        """The vendor number, as in `OrtDeviceVendorId`; 0 for CPUs."""
        return self._numbers[3]

    @staticmethod
    def cpu() -> int:
        """The number of the type of CPUs."""
        return 0

    @staticmethod
    def cuda() -> int:
        """The number of the type of GPUs."""
        return 1

    @staticmethod
    def dml() -> int:
        """The number of DirectML's device type, which is not available."""
        return 4

    @staticmethod
    def default_memory() -> int:
        """The number of the kind of memory that a CPU has."""
        return 0


def get_device() -> str:
    """The device that models run on."""
    return "CPU"
