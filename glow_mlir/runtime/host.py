"""What this machine is, as far as machine code depends on it."""

from __future__ import annotations

import functools
import hashlib
import platform
from pathlib import Path


@functools.cache
def host_name() -> str:
    """A name for this kind of processor: architecture, model and features, without loading LLVM."""
    text = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        first = info.read_text().split("\n\n", 1)[0]
        kept = [
            line
            for line in first.splitlines()
            if line.startswith(("vendor_id", "model", "cpu family", "flags", "Features"))
        ]
        text += "\n".join(sorted(kept))
    else:
        text += platform.processor() + platform.system()
    return hashlib.sha256(text.encode()).hexdigest()
