"""onnxruntime's allocator and thread-pool settings, which have no effect here."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, cast

from glow_mlir.api.onnxruntime.devices import OrtDeviceMemoryType, OrtDeviceVendorId, OrtMemoryInfoDeviceType
from glow_mlir.api.onnxruntime.settings import number
from glow_mlir.errors import OptionError
from glow_mlir.support.activity import caution
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.dataclass import dataclass

_PLANNED = "the memory of a session is planned at compile time"
_SHARED = "sessions share the threads of the largest thread count: threads=N"


_GLOBAL_POOLS: list[tuple[int, int]] = []
"""The sizes given to `set_global_thread_pool_sizes`, if it was called."""


class OrtAllocatorType(IntEnum):
    """Kinds of allocators."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(IntEnum):
    """Kinds of memory; all of them are CPU memory."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


@dataclass(frozen=True)
class OrtMemoryInfo:
    """The memory of an allocator."""

    name: str
    allocator_type: OrtAllocatorType
    device_id: int
    mem_type: OrtMemType
    device_mem_type: OrtDeviceMemoryType = OrtDeviceMemoryType.DEFAULT
    device_vendor_id: int = OrtDeviceVendorId.NONE

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:
        """The memory of a device; raises `OptionError` for devices other than the CPU."""
        if device_type != OrtMemoryInfoDeviceType.CPU:
            kind = getattr(device_type, "name", device_type)
            raise OptionError(f"there is no device of the type {kind} here", hint="OrtMemoryInfoDeviceType.CPU")
        return OrtMemoryInfo(name, allocator_type, device_id, OrtMemType.DEFAULT, mem_type, vendor_id)


CPU_MEMORY = OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)
"""The memory of all inputs and outputs."""


class OrtArenaCfg:
    """Growth of an arena: four numbers in this order, or some of them and others by name; -1 is the default."""

    NAMES = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk")
    MORE = ("initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes")

    def __init__(self, *given: int | Mapping[str, int]) -> None:
        """Raises `OptionError` for unknown names and for values that are no numbers."""
        by_name = len(given) == 1 and isinstance(given[0], Mapping)
        pairs: Mapping[str, Any] = (
            cast("Mapping[str, Any]", given[0]) if by_name else dict(zip(self.NAMES, given, strict=False))
        )
        known = (*self.NAMES, *self.MORE)
        is_whole = by_name or len(given) == len(self.NAMES)
        if not is_whole or any(name not in known or whole_number(value) is None for name, value in pairs.items()):
            raise OptionError(f"{given!r} is not an arena configuration", hint=f"numbers for {', '.join(known)}")
        self.settings = {name: int(pairs.get(name, -1)) for name in known}

    def __getattr__(self, name: str) -> int:
        if name in (*self.NAMES, *self.MORE):
            return self.settings[name]
        raise AttributeError(f"'OrtArenaCfg' has no attribute '{name}'")


def create_and_register_allocator(mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None) -> None:
    """Only warn; raises `OptionError` for arguments of other types."""
    if not isinstance(cast("object", mem_info), OrtMemoryInfo):
        raise OptionError(f"a '{type(mem_info).__name__}' is not a memory description", hint="an OrtMemoryInfo")
    if arena_cfg is not None and not isinstance(cast("object", arena_cfg), OrtArenaCfg):
        reason = f"a '{type(arena_cfg).__name__}' is not an arena configuration"
        raise OptionError(reason, hint="an OrtArenaCfg, or None")
    caution(OptionError("registered allocators have no effect", hint=_PLANNED))


def create_and_register_allocator_v2(
    provider_type: str, mem_info: OrtMemoryInfo, options: Mapping[str, str], arena_cfg: OrtArenaCfg | None
) -> None:
    """As `create_and_register_allocator`; all providers are the CPU."""
    create_and_register_allocator(mem_info, arena_cfg)


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """
    Require sessions to pass `use_per_session_threads=False`, as onnxruntime does; warn that the sizes have no effect.

    Raises `OptionError` for an invalid number of threads.
    """
    for given in (intra_op_num_threads, inter_op_num_threads):
        if number(given) is None:
            raise OptionError(f"{given!r} is no number of threads", hint="0 for as many as there are cores")
    _GLOBAL_POOLS.append((intra_op_num_threads, inter_op_num_threads))
    caution(OptionError("thread pool sizes have no effect", hint=_SHARED))


def check_global_threads(use_per_session_threads: bool) -> None:
    """
    Raise `OptionError`, as onnxruntime does, for a session that wants to share global thread pools that do not exist,
    or wants its own threads although global pools exist.
    """
    if not use_per_session_threads and not _GLOBAL_POOLS:
        reason = "use_per_session_threads=False needs global thread pools"
        raise OptionError(reason, hint="call set_global_thread_pool_sizes first")
    if use_per_session_threads and _GLOBAL_POOLS:
        reason = "use_per_session_threads=True conflicts with global thread pools"
        raise OptionError(reason, hint="SessionOptions.use_per_session_threads = False")
