"""What a program costs on Arm's Ethos-U NPUs, by their compiler `vela`."""

from __future__ import annotations

import csv
import re
import tempfile
from pathlib import Path

from glow_mlir.errors import ExecutionError
from glow_mlir.support.dataclass import dataclass
from tosa_backend.tools import VELA, run

ACCELERATOR = "ethos-u85-256"
"""The NPU that is asked about by default: 256 multiply-adds in a cycle."""

_KIB = 1024
_MEMORIES = ("sram", "dram", "on_chip_flash", "off_chip_flash")
_OPERATORS = re.compile(r"^(CPU|NPU) operators = (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Estimate:
    """What `vela` says of a program: cycles of an inference at a clock in Hz, bytes by memory, and what runs where."""

    accelerator: str
    cycles: int
    clock: float
    memory: dict[str, int]
    multiply_adds: int
    on_npu: int
    on_cpu: int

    @property
    def seconds(self) -> float:
        """The time of an inference."""
        return self.cycles / self.clock

    def __str__(self) -> str:
        used = ", ".join(f"{name} {nbytes // _KIB} KiB" for name, nbytes in self.memory.items() if nbytes)
        share = 100 * self.on_npu / max(1, self.on_npu + self.on_cpu)
        return (
            f"{self.accelerator}: {self.cycles} cycles, {1e3 * self.seconds:.3f} ms; {used}; "
            f"{self.multiply_adds} multiply-adds; {share:.0f} % of {self.on_npu + self.on_cpu} operators on the NPU"
        )


def estimate(file: Path, accelerator: str = ACCELERATOR) -> Estimate:
    """
    What a program in a `.tosa` file costs.

    Raises `ExecutionError` where `vela` does not compile it, as where there are floats, and `OptionError` where it is
    not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        options = ["--accelerator-config", accelerator, "--output-format", "raw", "--output-dir", folder]
        printed = run(VELA, [file, *options])
        tables = list(Path(folder).glob("*_summary_*.csv"))
        if not tables:
            raise ExecutionError(f"{VELA} does not compile {file.name}: {_refused(printed)}")
        with tables[0].open(encoding="utf-8", newline="") as table:
            (row,) = csv.DictReader(table)
    counts = {place: int(count) for place, count in _OPERATORS.findall(printed)}
    return Estimate(
        accelerator,
        int(float(row["cycles_total"])),
        float(row["core_clock"]),
        {name: int(float(row[f"{name}_memory_used"]) * _KIB) for name in _MEMORIES},
        int(float(row["nn_macs"])),
        counts["NPU"],
        counts["CPU"],
    )


def _refused(printed: str) -> str:
    """The first operator that the NPU lacks, and why."""
    lines = [line.strip(" -:") for line in printed.splitlines() if line.strip() and "Warning" not in line]
    return ", ".join(lines[:3]) or "no reason given"
