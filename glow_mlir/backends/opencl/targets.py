"""OpenCL devices as targets of passes and kernels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from glow_mlir.backends.opencl.library import NAME, device_at, device_name, devices, opencl
from glow_mlir.dialects.target import Target, with_fields
from glow_mlir.errors import OptionError
from glow_mlir.runtime.pool_layout import MAX_THREADS

_WIDEST = 256
"""
The widest vectors, in bits. Devices report the vectors of their processor, not those that their compiler uses: PoCL 3.0
splits 512-bit vectors in two on a processor that has them, and spills.
"""

_TRIPLES = {32: "spir-unknown-unknown", 64: "spir64-unknown-unknown"}
"""Address bits → LLVM's triple for OpenCL devices."""

_ANY = Target(
    NAME, triple=_TRIPLES[64], features="+fma,+fp64", vector_bits=_WIDEST, l1_bytes=32 << 10, l2_bytes=1 << 20
)
"""The assumptions for a device that is not present."""

GENERIC = "generic"
"""The name of such a device."""


def targets() -> Mapping[str, Target]:
    """The devices of this machine by name, and a generic one."""
    try:
        count = len(devices())
    except OptionError:
        count = 0
    return {GENERIC: _ANY, **{device_name(number): target_of(device_name(number)) for number in range(count)}}


def about_targets() -> Mapping[str, str]:
    """Readable descriptions of the devices."""
    about = {name: device_at(name).name.strip() for name in targets() if name != GENERIC}
    return {GENERIC: "a device with fused products and floats of 64 bits", **about}


@cache
def target_of(name: str) -> Target:
    """A device of this machine as a target, with a task for each of its compute units."""
    device = device_at(name)
    found = Target(
        NAME,
        triple=_TRIPLES[device.address_bits],
        cpu=name,
        features=",".join(f"+{feature}" for feature in features_of(device)),
        vector_bits=min(_WIDEST, 32 * max(1, device.native_vector_width_float)) if _is_vector(device) else 0,
        vector_registers=16,
        line_bytes=max(64, device.global_mem_cacheline_size),
        l1_bytes=_ANY.l1_bytes,
        l2_bytes=_ANY.l2_bytes,
        l3_bytes=device.global_mem_cache_size,
        pointer_bits=device.address_bits,
    )
    return with_fields(found, {"threads": max(1, min(device.max_compute_units, MAX_THREADS))})


def _is_vector(device: Any) -> bool:
    """Whether a work item computes with vectors."""
    return device.native_vector_width_float > 1


def features_of(device: Any) -> list[str]:
    """The optional features of a device: fused multiply-add, 64-bit floats."""
    config = opencl().device_fp_config
    found = ["fma"] if device.single_fp_config & config.FMA else []
    return found + (["fp64"] if "cl_khr_fp64" in device.extensions.split() else [])
