"""Devices as onnxruntime names them: here there is the CPU, whose number is 0."""

from __future__ import annotations

from dataclasses import dataclass

from glow_mlir.api.refused_names import Explained
from glow_mlir.errors import OptionError

CPU = "cpu"


def check_device(device_type: object, device_id: object = 0) -> None:
    """Raise `OptionError` for a device other than the CPU."""
    if str(device_type).lower() != CPU:
        raise OptionError(f"there is no device '{device_type}' here", hint="memory is that of the 'cpu'")
    if device_id != 0:
        raise OptionError(f"there is no CPU with the number {device_id}", hint="device_id=0")


@dataclass(frozen=True)
class OrtDevice(Explained):
    """A device: the CPU."""

    @staticmethod
    def make(ort_device_name: str, device_id: int = 0, vendor_id: int = -1) -> OrtDevice:
        """The device of that name; raises `OptionError` for another one than the CPU."""
        check_device(ort_device_name, device_id)
        return OrtDevice()

    def device_id(self) -> int:
        """Its number."""
        return 0

    def device_type(self) -> int:
        """The number of its type, which is that of CPUs."""
        return 0

    @staticmethod
    def cpu() -> int:
        """The number of the type of CPUs."""
        return 0


def get_device() -> str:
    """The device that models run on."""
    return "CPU"
