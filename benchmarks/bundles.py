"""
What bundles take: code, constants, activations, stack and executed instructions of four networks on each target, and of
a naive translation to C (`naive_c.py`) that GCC compiles with -O3.

    make emulators
    python benchmarks/bundles.py [--networks digits,mobilenet] [--targets cortex-m4,cortex-m7] [--against-c]

Instructions and stack are counted by QEMU's Cortex-M boards (`-icount`), to 40 instructions and four bytes; the other
machines do not tell. Each count is exact and the same on every machine that runs this.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from naive_c import translated

from glow_mlir.bundle.compile import code_bytes
from glow_mlir.driver.pipelines import INSTRUCTIONS
from glow_mlir.runtime.artifact import Artifact

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / "support")]
from embedded_models import NETWORKS, PRECISIONS, compiled, inputs_of, lowered_to  # noqa: E402
from emulators import MACHINES, Machine, Ran, find_emulator  # noqa: E402

GCC = "arm-none-eabi-gcc"
PROCESSORS = {
    "cortex-m4": ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16"),
    "cortex-m7": ("-mcpu=cortex-m7", "-mfpu=fpv5-sp-d16"),
    "cortex-m55": ("-mcpu=cortex-m55",),
}
"""Target → what tells GCC the same."""

FLAGS = ("-O3", "-mthumb", "-mfloat-abi=hard", "-ffreestanding", "-fno-math-errno", "-w", "-c")


@dataclass(frozen=True)
class Row:
    """One line of the table, in bytes and executed instructions."""

    network: str
    precision: str
    target: str
    ours: Ran
    artifact: Artifact
    theirs: Ran | None

    def cells(self) -> list[str]:
        """The line as text."""
        (entry,) = self.artifact.manifest.entries
        bound = sum(binding.nbytes for binding in entry.bindings)
        counted = self.ours.instructions
        ratio = counted / self.theirs.instructions if counted and self.theirs and self.theirs.instructions else None
        sizes = (code_bytes(self.artifact.code[0]), self.artifact.constants.nbytes, entry.activations, bound)
        return [
            *(f"{self.network} {self.precision}", self.target),
            *(f"{size:,}" for size in sizes),
            "" if self.ours.stack_bytes is None else f"{self.ours.stack_bytes:,}",
            "" if counted is None else f"{counted:,}",
            "" if self.theirs is None else f"{self.theirs.instructions or 0:,}",
            "" if ratio is None else f"{ratio:.2f}",
        ]


HEAD = [
    "network",
    "target",
    "code",
    "constants",
    "activations",
    "bindings",
    "stack",
    "instructions",
    "naive C",
    "ratio",
]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join(NETWORKS), help="names, with commas between")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--targets", default=",".join(MACHINES))
    parser.add_argument("--against-c", action="store_true", help="compare with naive C on Cortex-M")
    args = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for network in args.networks.split(","):
        for precision in args.precisions.split(","):
            for target in args.targets.split(","):
                print(f"| {' | '.join(measured(network, precision, target, args.against_c).cells())} |", flush=True)
    return 0


def measured(network: str, precision: str, target: str, against_c: bool) -> Row:
    """One line of the table; fails where results differ."""
    machine = next(machine for machine in MACHINES[target] if not machine.missing())
    program, inputs = compiled(network, precision, target), inputs_of(network)
    ours = machine.run(program.artifact, inputs)
    theirs = (
        naive(network, precision, target, machine, program.artifact) if against_c and target in PROCESSORS else None
    )
    if theirs is not None:
        for name, wanted in ours.outputs.items():
            # Halves are rounded away from zero in C, so that codes may differ by one.
            tolerance = 1e-3 if precision == "float" else 0.1
            np.testing.assert_allclose(
                theirs.outputs[name], wanted, rtol=0, atol=tolerance * float(np.abs(wanted).max()), err_msg=name
            )
    return Row(network, precision, target, ours, program.artifact, theirs)


def naive(network: str, precision: str, target: str, machine: Machine, artifact: Artifact) -> Ran:
    """What the translation to C of a network does, which GCC has compiled for the same processor."""
    made = translated(lowered_to(network, precision, target, INSTRUCTIONS.name))
    code = _compiled(made.text, PROCESSORS[target])
    entries = tuple(replace(entry, activations=made.activations) for entry in artifact.manifest.entries)
    manifest = replace(artifact.manifest, entries=entries)
    return machine.run(Artifact((code,), made.constants, manifest), inputs_of(network))


@cache
def _compiled(text: str, processor: tuple[str, ...]) -> bytes:
    """The object file of C text."""
    gcc = find_emulator(GCC)
    if gcc is None:
        sys.exit(f"bundles.py: there is no {GCC}: 'make emulators' unpacks it")
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "naive.c", Path(name) / "naive.o"
        source.write_text(text)
        subprocess.run([gcc, *processor, *FLAGS, source, "-o", target], check=True)
        return target.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
