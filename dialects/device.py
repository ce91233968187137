"""The devices that functions of a module are compiled for, side by side: a value, and the attribute that holds it."""

from __future__ import annotations

import json
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from glow_mlir.dialects.target import Target, TargetAttr
from glow_mlir.support.dataclass import dataclass

DEVICES = "glow.devices"
"""The attribute of a module that lists the devices its functions are placed on."""

DEVICE = "glow.device"
"""The attribute of an operator that names the device it is placed on, before functions are."""


@dataclass(frozen=True)
class DeviceSpec:
    """
    A device that functions are placed on: its name, such as `opencl:0`, and its machine.

    `memory_bytes` is the capacity for constants and buffers together; 0 means all of its memory. With `own_memory`, its
    memory is not the host's, so that values have to be transferred.
    """

    name: str
    target: Target
    memory_bytes: int = 0
    own_memory: bool = False


@irdl_attr_definition
class DeviceAttr(Data[DeviceSpec]):
    """
    One of the devices of a module.

    ```mlir
    #glow.device<"opencl:0", #glow.target<backend = "opencl">, memory_bytes = 1073741824, own_memory>
    ```
    """

    name = "glow.device"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> DeviceSpec:
        with parser.in_angle_brackets():
            name = parser.parse_str_literal()
            parser.parse_punctuation(",")
            target = parser.parse_attribute()
            if not isinstance(target, TargetAttr):
                parser.raise_error("a device has a target, #glow.target<…>")
            memory, own = 0, False
            while parser.parse_optional_punctuation(","):
                if parser.parse_optional_keyword("own_memory"):
                    own = True
                    continue
                parser.parse_keyword("memory_bytes")
                parser.parse_punctuation("=")
                memory = parser.parse_integer(allow_negative=False)
        return DeviceSpec(name, target.data, memory, own)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{json.dumps(self.data.name)}, ")
            printer.print_attribute(TargetAttr(self.data.target))
            if self.data.memory_bytes:
                printer.print_string(f", memory_bytes = {self.data.memory_bytes}")
            if self.data.own_memory:
                printer.print_string(", own_memory")


def devices_of(module: ModuleOp) -> list[DeviceSpec]:
    """The devices that the functions of a module are placed on, in order; none for a module for a single machine."""
    listed = module.attributes.get(DEVICES)
    items = cast("ArrayAttr[Attribute]", listed).data if isinstance(listed, ArrayAttr) else ()
    return [item.data for item in items if isinstance(item, DeviceAttr)]
