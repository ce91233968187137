"""Memories of a multi-device module, and the devices that can access each."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from glow_mlir.dialects.device import devices_of
from glow_mlir.dialects.glow_low.memory import AllocOp, root_of

HOST_MEMORY = ""
"""The host memory, in place of a device name."""


class BufferMemories:
    """The memories of buffers in host programs of a module."""

    def __init__(self, module: ModuleOp) -> None:
        self._shared = {device.name: not device.own_memory for device in devices_of(module)}

    def of(self, value: SSAValue) -> str:
        """The device in whose memory a buffer is; `HOST_MEMORY` for buffers of callers."""
        owner = root_of(value).owner
        return owner.device.data if isinstance(owner, AllocOp) and owner.device is not None else HOST_MEMORY

    def is_host(self, held_in: str) -> bool:
        """Whether a device uses host memory."""
        return held_in == HOST_MEMORY or self._shared.get(held_in, False)

    def is_usable(self, held_in: str, device: str) -> bool:
        """Whether a device can access buffers in the memory `held_in`."""
        return held_in == device or (self.is_host(held_in) and self.is_host(device))
