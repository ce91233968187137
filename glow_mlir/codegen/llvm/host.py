"""Properties of the machine that this process runs on, from LLVM and the system."""

from __future__ import annotations

import functools
from pathlib import Path

from glow_mlir.runtime.host import llvm_features, llvm_triple
from glow_mlir.support.dataclass import dataclass


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
    """Return the host; cache sizes are 0 if the system does not report them."""
    import llvmlite.binding as llvm

    features = llvm_features()
    listed = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    return Host(
        triple=llvm_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=listed,
        enabled=frozenset(name for name, on in features.items() if on),
        l1_bytes=_cache_bytes(1),
        l2_bytes=_cache_bytes(2),
        l3_bytes=_cache_bytes(3),
    )


def _cache_bytes(level: int) -> int:
    """Return the size of the data cache of a level as Linux reports it, or 0."""
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
