"""What ptxas, the assembler of PTX, says of device functions: whether it takes them, and what they need."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

REGISTERS = 1 << 16
"""Registers of a multiprocessor."""

UNIT = 256
"""Registers that a warp gets at once."""

WARP = 32


@dataclass(frozen=True)
class Multiprocessor:
    """What a multiprocessor of a generation has: threads and blocks at most, and bytes of shared memory."""

    threads: int
    blocks: int
    shared: int


MULTIPROCESSORS = {
    "sm_75": Multiprocessor(1024, 16, 64 << 10),
    "sm_80": Multiprocessor(2048, 32, 164 << 10),
    "sm_90": Multiprocessor(2048, 32, 228 << 10),
    "sm_100": Multiprocessor(2048, 32, 228 << 10),
}


@dataclass(frozen=True)
class Kernel:
    """An entry of PTX: registers of a thread, threads of a block, bytes of shared memory, and bytes spilled."""

    name: str
    registers: int
    threads: int
    shared: int
    spilled: int

    def occupancy(self, target: str) -> float:
        """Which part of a multiprocessor's threads can be at hand."""
        has = MULTIPROCESSORS[target]
        warps = -(-self.threads // WARP)
        registers = -(-self.registers * WARP // UNIT) * UNIT * warps
        blocks = min(REGISTERS // registers, has.blocks, has.threads // self.threads)
        if self.shared:
            blocks = min(blocks, has.shared // (self.shared + 1024))
        return blocks * self.threads / has.threads


@cache
def ptxas() -> Path:
    """The assembler: that of PyPI's `nvidia-cuda-nvcc`, or the system's; skips the test where there is none."""
    spec = find_spec("nvidia")
    folders: Sequence[str] = [] if spec is None else list(spec.submodule_search_locations or ())
    found = [path for folder in folders for path in Path(folder).glob("*/bin/ptxas")]
    system = which("ptxas")
    if not found and system is None:
        pytest.skip("pip install nvidia-cuda-nvcc")
    return found[0] if found else Path(str(system))


def assembled(ptx: str, target: str, folder: Path) -> list[Kernel]:
    """The entries of PTX as ptxas assembles them; fails where it does not."""
    source = folder / "module.ptx"
    source.write_text(ptx, encoding="utf-8")
    command = [str(ptxas()), "-v", "-arch", target, "-o", str(folder / "module.cubin"), str(source)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr[:2000]
    threads = {name: int(size) for name, size in _ENTRY.findall(ptx)}
    found: list[Kernel] = []
    for part in said.stderr.split("Compiling entry function ")[1:]:
        name = part.split("'")[1]
        spilled, registers = _SPILLED.search(part), _REGISTERS.search(part)
        assert spilled is not None
        assert registers is not None
        shared = _SHARED.search(part)
        found.append(Kernel(name, int(registers[1]), threads[name], int(shared[1]) if shared else 0, int(spilled[1])))
    assert len(found) == len(threads)
    return found


_ENTRY = re.compile(r"\.entry (\w+)\([^)]*\)\s*\.maxntid (\d+)")
_SPILLED = re.compile(r"(\d+) bytes spill stores")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
