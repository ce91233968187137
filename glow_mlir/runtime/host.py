"""Properties of this machine that machine code depends on."""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from glow_mlir.runtime.tile_permission import may_use_tiles


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


_ALWAYS = frozenset({"neon", "sse2"})
"""Features that every machine of their architecture has; LLVM does not always list them."""


_TILES = "amx-"
"""Prefix of the features that need permission to use tiles."""


@functools.cache
def _processor_features() -> dict[str, bool]:
    """Feature in LLVM's naming → whether the processor has it."""
    import llvmlite.binding as llvm

    return cast("dict[str, bool]", llvm.get_host_cpu_features())


@functools.cache
def llvm_features() -> dict[str, bool]:
    """Processor feature in LLVM's naming → whether this process may use it."""
    found = _processor_features()
    tiles = {name for name, is_there in found.items() if is_there and name.startswith(_TILES)}
    return {**found, **dict.fromkeys(tiles, may_use_tiles())} if tiles else found


@functools.cache
def llvm_triple() -> str:
    """The triple of this process."""
    import llvmlite.binding as llvm

    return llvm.get_process_triple()


def lacks(triple: str, features: Iterable[str]) -> str:
    """
    The requirements of code that this machine lacks, as text; empty if it lacks none.

    Code for another system has other calling conventions and system calls, and would crash this process.
    """
    if not (missing := lacks_instructions(triple, features)):
        import llvmlite.binding as llvm

        wanted, own = llvm.get_triple_parts(triple), llvm.get_triple_parts(llvm_triple())
        if wanted.OS != own.OS:
            return f"the system {wanted.OS}"
        if wanted.ObjectFormat != own.ObjectFormat:
            return f"the object format {wanted.ObjectFormat}"
    return missing


def lacks_instructions(triple: str, features: Iterable[str]) -> str:
    """The features that the processor of this machine lacks, in words; empty if it lacks none."""
    import llvmlite.binding as llvm

    architecture: str = llvm.get_triple_parts(triple).Arch
    if architecture != llvm.get_triple_parts(llvm_triple()).Arch:
        return f"the architecture {architecture}"
    found = {name for name, is_there in llvm_features().items() if is_there}
    missing = sorted(set(features) - found - _ALWAYS)
    refused = any(_processor_features().get(name) for name in missing)
    return ", ".join(missing) + (", which the system disables" if refused else "")
