"""Machines that count the instructions of a model: QEMU logs which blocks of code it executes, and what is in them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / "support")]
from emulators import MACHINES, Machine, Qemu, Wasm  # noqa: E402

ENTRY, CALLER = "main", "call_model"
"""The functions of a program that begin and end what counts."""

_INSTRUCTION = re.compile(r"0x([0-9a-f]+):  (?:[0-9a-f]{2,8} )+ +\S")
"""An address, bytes, and what they mean; bytes alone go on with what the line before begins."""

_BLOCK = re.compile(r"(?:Trace \d+:|(Stopped) execution of TB chain before) 0x\w+ \[(?:\w+/)?(\w+)[^]]*\] ?(.*)")


@dataclass(frozen=True)
class Traced(Qemu):
    """A program of QEMU's that counts the instructions between the call of a model and its return."""

    def emulate(self, folder: Path) -> int:
        log = ("-d", "in_asm,exec,nochain")
        with subprocess.Popen(
            self.command(*log), cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            executed = executed_instructions(process.stderr)
        assert process.returncode == 0, f"{self.emulator} ended with {process.returncode}"
        return sum(executed.values())


def executed_instructions(log: Iterable[str]) -> Counter[str]:
    """
    Function → the instructions that were executed of it, in what QEMU logs of the blocks that it translates (`in_asm`)
    and executes (`exec`), from the first block of `ENTRY` until `CALLER` goes on.
    """
    lengths: dict[int, int] = {}
    executed: Counter[str] = Counter()
    block, is_inside = 0, False
    for line in log:
        if line.startswith("IN:"):
            block = 0
        elif found := _INSTRUCTION.match(line):
            block = block or int(found[1], 16)
            lengths[block] = 1 if int(found[1], 16) == block else lengths[block] + 1
        elif found := _BLOCK.match(line):
            stopped, address, function = found.groups()
            is_inside = function == ENTRY or (is_inside and function != CALLER)
            if is_inside:
                executed[function] += lengths[int(address, 16)] * (-1 if stopped else 1)
    return executed


def traced(machine: Qemu) -> Traced:
    """The same machine, but one that counts."""
    return Traced(**{field.name: getattr(machine, field.name) for field in fields(machine)})


def _counting(machines: Sequence[Machine]) -> Machine | None:
    """The machine among these that counts, or one made from them."""
    for machine in machines:
        if isinstance(machine, Qemu):
            return machine if machine.instructions_per_tick else traced(machine)
        if isinstance(machine, Wasm):
            return machine
    return None


_X86 = Traced("qemu-x86_64", ("-cpu", "max"), ("-target", "x86_64-linux-none"))

COUNTING: Mapping[str, Machine] = {
    **{"sse2": _X86, "avx2": _X86},
    **{target: found for target, machines in MACHINES.items() if (found := _counting(machines))},
}
"""Target → the machine that counts what its code executes."""
