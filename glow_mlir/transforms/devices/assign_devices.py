"""`assign-devices`: assign devices to a module."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.dialects.device import DEVICES, DeviceAttr, devices_of
from glow_mlir.dialects.target import named_fields, with_fields
from glow_mlir.errors import OptionError
from glow_mlir.ir import statistics
from glow_mlir.partitioning.device_names import named_devices
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class AssignDevicesPass(ModulePass):
    """
    Assign the `devices` of a string such as `opencl:0,cpu,threads=2` to a module, each with its target on this machine.

    `fields` such as `accuracy=strict` apply to every device unless the string overrides them. Devices that the module
    declares take precedence. Raises `OptionError` for options that contradict these, and if neither names a device.
    """

    name = "assign-devices"

    devices: str = ""
    fields: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        declared, wanted = devices_of(op), named_devices(self.devices, self.fields) if self.devices else []
        if declared and wanted and declared != wanted:
            names = ", ".join(device.name for device in declared)
            raise OptionError(f"the module has other devices than '{self.devices}'", hint=f"it has {names}")
        if not declared and not wanted:
            raise OptionError("the module has no devices to run on", hint="devices=cpu,interpreter")
        for device in declared:
            if with_fields(device.target, named_fields(f",{self.fields}")[1] if self.fields else {}) != device.target:
                raise OptionError(f"the module says otherwise of {device.name} than '{self.fields}'")
        if not declared:
            op.attributes[DEVICES] = ArrayAttr([DeviceAttr(device) for device in wanted])
            statistics.count("devices assigned", len(wanted))
