"""Devices as onnxruntime names them: here there is the CPU, whose number is 0."""

from __future__ import annotations

from glow_mlir.api.refused_names import Explained
from glow_mlir.errors import OptionError

CPU = "cpu"


def check_device(device_type: object, device_id: object = 0) -> None:
    """Raise `OptionError` for a device other than the CPU."""
    if isinstance(device_type, OrtDevice):
        return
    if str(device_type).lower() != CPU:
        raise OptionError(f"there is no device '{device_type}' here", hint="memory is that of the 'cpu'")
    if device_id != 0:
        raise OptionError(f"there is no CPU with the number {device_id}", hint="device_id=0")


class OrtDevice(Explained):
    """A device: the CPU."""

    def __init__(self, device_type: int = 0, memory_type: int = 0, device_id: int = 0) -> None:
        """The device of that type, memory and number; raises `OptionError` for another one than the CPU."""
        if (device_type, memory_type, device_id) != (0, 0, 0):
            reason = f"there is no device of type {device_type!r}, memory {memory_type!r} and number {device_id!r} here"
            raise OptionError(reason, hint="all three are 0 for the CPU")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrtDevice)

    def __hash__(self) -> int:
        return hash(CPU)

    def __repr__(self) -> str:
        return "OrtDevice()"

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

    @staticmethod
    def cuda() -> int:
        """The number of the type of GPUs, of which none is here."""
        return 1

    @staticmethod
    def dml() -> int:
        """The number of the type of devices of DirectML, of which none is here."""
        return 4

    @staticmethod
    def default_memory() -> int:
        """The number of the kind of memory that a CPU has."""
        return 0


def get_device() -> str:
    """The device that models run on."""
    return "CPU"
