"""Device lists in user syntax: `opencl:0,cpu,threads=2`."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.backends.interface import HOST, get_backend
from glow_mlir.dialects.device import DeviceSpec
from glow_mlir.dialects.packages import SEVERAL_BACKENDS
from glow_mlir.errors import OptionError
from glow_mlir.options.placement import devices_named

MEMORY = "memory_bytes"
"""The field for the bytes of memory of a device."""
OWN = "own_memory"
"""The field for whether a device has memory of its own, 0 or 1."""


def named_devices(text: str, common: str = "") -> list[DeviceSpec]:
    """
    Parse the devices in a string such as `opencl:0,cpu,threads=2,memory_bytes=1000000,cpu`.

    Each is a backend, with the number of its device, by default the next one, followed by fields of its target.
    `target=avx2` names the target; by default it is this machine, or its attached device. `memory_bytes` limits the
    memory used, by default to all of a device's own memory; `own_memory=1` forces transfers to a device that could
    share memory. `common` are fields, such as `accuracy=strict`, of all devices that do not override them.

    Raises `OptionError` for an unknown device, for one that is listed twice, and for invalid field values.
    """
    found: list[DeviceSpec] = []
    for backend, number, fields in devices_named(text):
        keys = [_key(field) for field in fields]
        shared = [field for field in filter(None, common.split(",")) if _key(field) not in keys]
        device = _device(f"{backend}:{number}", backend, [*shared, *fields])
        if device.name in (other.name for other in found):
            raise OptionError(f"the device {device.name} is listed twice")
        found.append(device)
    return found


def _key(field: str) -> str:
    return field.partition("=")[0]


def _device(name: str, backend: str, fields: Sequence[str]) -> DeviceSpec:
    """A device of a backend with the given fields."""
    numbers, target, rest = {MEMORY: 0, OWN: 0}, HOST, list[str]()
    for field in fields:
        key, _, value = field.partition("=")
        if key in numbers:
            if not value.isdecimal():
                raise OptionError(f"{field} of the device {name} is no number")
            numbers[key] = int(value)
        elif key == "target":
            target = value
        else:
            rest.append(field)
    if numbers[OWN] > 1:
        raise OptionError(f"{OWN}={numbers[OWN]} of the device {name} is neither 0 nor 1")
    if backend == SEVERAL_BACKENDS:
        raise OptionError(f"'{backend}' is several devices, and none of them", hint="cpu,opencl:0")
    of = get_backend(backend)
    if target == HOST and name in of.targets():  # A backend may name its devices this way.
        target = name
    made = of.target(",".join((target, *rest)))
    of.check_target(made)
    memory = of.memory(made)
    most = numbers[MEMORY] or (0 if memory.is_host else memory.nbytes)
    return DeviceSpec(name, made, most, bool(numbers[OWN]) or not memory.is_host)
