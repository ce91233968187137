"""
What bundles take: code, constants, activations, stack and executed instructions of four networks on each target, and of
a naive translation to C (`naive_c.py`) that a compiler optimizes with -O3: GCC on Cortex-M, elsewhere clang.

    make emulators
    python benchmarks/bundles.py [--networks digits,mobilenet] [--targets cortex-m4,cortex-m7] [--against-c]

QEMU's Cortex-M boards count instructions to a tick of their clock (`-icount`), traces of its other programs exactly
(`traced.py`), and wasmtime counts operators. Each count is the same on every machine that runs this.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from naive_c import translated
from traced import COUNTING

from glow_mlir.bundle.compile import code_bytes
from glow_mlir.driver.pipelines import INSTRUCTIONS
from glow_mlir.runtime.artifact import Artifact

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / "support")]
from embedded_models import NETWORKS, PRECISIONS, compiled, inputs_of, lowered_to  # noqa: E402
from emulators import GCC, Machine, Qemu, Ran, find_emulator, zig  # noqa: E402

_AARCH64, _RISCV64 = ("-target", "aarch64-linux-none"), ("-target", "riscv64-linux-none")
FOR_CLANG = {
    "sse2": ("-target", "x86_64-linux-none", "-mcpu=x86_64"),
    "avx2": ("-target", "x86_64-linux-none", "-mcpu=x86_64_v3"),
    "neon": (*_AARCH64, "-mcpu=generic"),
    "neon-dotprod": (*_AARCH64, "-mcpu=generic+dotprod"),
    "neon-i8mm": (*_AARCH64, "-mcpu=generic+dotprod+i8mm"),
    "sve-128": (*_AARCH64, "-mcpu=generic+sve", "-msve-vector-bits=128"),
    "sve-256": (*_AARCH64, "-mcpu=generic+sve", "-msve-vector-bits=256"),
    "riscv64": (*_RISCV64, "-mcpu=generic_rv64+m+a+f+d+c"),
    "rvv-128": (*_RISCV64, "-mcpu=generic_rv64+m+a+f+d+c+v"),
    "rvv-256": (*_RISCV64, "-mcpu=generic_rv64+m+a+f+d+c+v+zvl256b"),
    "wasm32": ("-target", "wasm32-freestanding", "-mcpu=generic+simd128"),
}
"""Target → what tells clang of it, as ziglang takes that."""

FLAGS = ("-O3", "-ffreestanding", "-fno-math-errno", "-w", "-c")
CLANG_FLAGS = ("-fno-stack-protector", "-fno-sanitize=all")


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
    parser.add_argument("--targets", default=",".join(COUNTING))
    parser.add_argument("--against-c", action="store_true", help="compare with naive C")
    args = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for network in args.networks.split(","):
        for precision in args.precisions.split(","):
            for target in args.targets.split(","):
                print(f"| {' | '.join(measured(network, precision, target, args.against_c).cells())} |", flush=True)
    return 0


def measured(network: str, precision: str, target: str, against_c: bool) -> Row:
    """One line of the table; fails where results differ."""
    machine = COUNTING[target]
    if missing := machine.missing():
        sys.exit(f"bundles.py: {target} needs {missing}")
    program, inputs = compiled(network, precision, target), inputs_of(network)
    ours = machine.run(program.artifact, inputs)
    theirs = naive(network, precision, target, machine, program.artifact) if against_c else None
    if theirs is not None:
        for name, wanted in ours.outputs.items():
            # Halves are rounded away from zero in C, so that codes may differ by one.
            tolerance = 1e-3 if precision == "float" else 0.1
            np.testing.assert_allclose(
                theirs.outputs[name], wanted, rtol=0, atol=tolerance * float(np.abs(wanted).max()), err_msg=name
            )
    return Row(network, precision, target, ours, program.artifact, theirs)


def naive(network: str, precision: str, target: str, machine: Machine, artifact: Artifact) -> Ran:
    """What the translation to C of a network does, compiled for the same processor."""
    made = translated(lowered_to(network, precision, target, INSTRUCTIONS.name))
    code = compiled_c(made.text, FOR_CLANG.get(target), machine)
    entries = tuple(replace(entry, activations=made.activations) for entry in artifact.manifest.entries)
    manifest = replace(artifact.manifest, entries=entries)
    return machine.run(Artifact((code,), made.constants, manifest), inputs_of(network))


def compiled_c(text: str, for_clang: tuple[str, ...] | None, machine: Machine) -> bytes:
    """The object file of C text, by clang with these options or by GCC for a Cortex-M."""
    with tempfile.TemporaryDirectory() as name:
        source, made = Path(name) / "naive.c", Path(name) / "naive.o"
        source.write_text(text)
        if for_clang:
            zig("cc", *for_clang, *FLAGS, *CLANG_FLAGS, source, "-o", made)
            return made.read_bytes()
        gcc = find_emulator(GCC)
        assert gcc is not None
        assert isinstance(machine, Qemu)
        subprocess.run([gcc, *machine.gcc, *FLAGS, source, "-o", made], check=True)
        return made.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
