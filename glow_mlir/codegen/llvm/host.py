"""What LLVM and the system say about the machine this process runs on."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from glow_mlir.dialects.target import Target

_ARM_64 = frozenset({"aarch64", "arm64"})
"""Names of one architecture."""

_ALWAYS = frozenset({"neon", "sse2"})
"""Features without which there is no machine of their architecture; LLVM does not always list them."""


@dataclass(frozen=True)
class Host:
    """Names as LLVM uses them; `features` is the string for a target machine, `enabled` the set behind it."""

    triple: str
    cpu: str
    features: str
    enabled: frozenset[str]
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int


@functools.cache
def detect_host() -> Host:
    """Return the host; cache sizes are 0 where the system does not tell."""
    import llvmlite.binding as llvm

    features = cast("dict[str, bool]", llvm.get_host_cpu_features())
    listed = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    return Host(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=listed,
        enabled=frozenset(name for name, on in features.items() if on),
        l1_bytes=_cache_bytes(1),
        l2_bytes=_cache_bytes(2),
        l3_bytes=_cache_bytes(3),
    )


def lacks(target: Target) -> str:
    """What this machine lacks to run code for a target, in words; empty where it lacks nothing."""
    host = detect_host()
    same = {target.architecture, host.triple.split("-", maxsplit=1)[0]}
    if len(same) > 1 and not same <= _ARM_64:
        return f"the architecture {target.architecture}"
    return ", ".join(sorted(target.enabled - host.enabled - _ALWAYS))


def _cache_bytes(level: int) -> int:
    """Return the size of the data cache of a level, as Linux tells it, or 0."""
    units = {"K": 1 << 10, "M": 1 << 20}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            of_level = int((index / "level").read_text()) == level
            if of_level and (index / "type").read_text().strip() in ("Data", "Unified"):
                size = (index / "size").read_text().strip()
                return int(size[:-1]) * units[size[-1]]
        except (OSError, ValueError, KeyError):
            continue
    return 0
