"""
What bundles of networks of floats take on Cortex-M, and what the C takes that `emx-onnx-cgen` generates for embedded
systems, compiled by GCC with -O3: flash, RAM and executed instructions, as `bundles.py` counts them.

    make emulators
    pip install emx-onnx-cgen
    python benchmarks/onnx_to_c.py [--targets cortex-m4,cortex-m7] [--networks digits]
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import naive_c
import numpy as np
import onnx
from bundles import compiled_c

from glow_mlir.bundle.compile import code_bytes
from glow_mlir.runtime.artifact import Artifact

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / "support")]
from embedded_models import NETWORKS, compiled, inputs_of, network  # noqa: E402
from emulators import Qemu, cortex_m  # noqa: E402

GENERATOR = "emx-onnx-cgen"

MATH = """
static float fmaxf(float a, float b) { return a > b ? a : b; }
static float fminf(float a, float b) { return a < b ? a : b; }
#define INFINITY __builtin_inff()
"""
"""What its code takes of <math.h> besides what the naive translation has."""


def generated(model: onnx.ModelProto) -> str:
    """The C of a model: all layers after another, weights in constants, intermediate values on the stack."""
    generator = shutil.which(GENERATOR)
    if generator is None:
        sys.exit(f"onnx_to_c.py: there is no {GENERATOR}: pip install {GENERATOR}")
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "model.onnx", Path(name) / "model.c"
        onnx.save(model, source)
        options = ("--large-temp-threshold", "0", "--large-weight-threshold", "0", "--restrict-arrays")
        subprocess.run([generator, "compile", *options, source, target], check=True, capture_output=True)
        text = re.sub(r"#include <(math|string)\.h>", "", target.read_text())
    count = len(model.graph.input) + len(model.graph.output)
    arguments = ", ".join(f"bindings[{number}]" for number in range(count))
    entry = "int main(const void *constants, void *const *bindings, void *activations, const void *parallel)"
    return f"{naive_c.HEADER}{MATH}{text}\n{entry} {{\n  model({arguments});\n  return 0;\n}}\n"


_STACK = 7 << 20
BOARDS: Mapping[str, Qemu] = {
    "cortex-m4": cortex_m("mps2-an386", "cortex_m4", 0x21000000, 0x22000000, "fpv4-sp-d16", _STACK, 8 << 20),
    "cortex-m7": cortex_m("mps2-an500", "cortex_m7", 0x60000000, 0x61000000, "fpv5-sp-d16", _STACK, 8 << 20),
}
"""Target → a board with room for large stacks, on which generated code has all values."""

HEAD = ("network", "target", "flash", "RAM", "instructions", f"{GENERATOR}: flash", "RAM", "instructions", "ratio")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join(NETWORKS), help="names, with commas between")
    parser.add_argument("--targets", default=",".join(BOARDS))
    args = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for name in args.networks.split(","):
        for target in args.targets.split(","):
            print(f"| {name} | {target} | {' | '.join(compared(name, target))} |", flush=True)
    return 0


def compared(name: str, target: str) -> list[str]:
    """One line of the table, from the flash of ours on; fails where results differ. RAM has no inputs and outputs."""
    board, artifact, inputs = BOARDS[target], compiled(name, "float", target).artifact, inputs_of(name)
    (entry,) = artifact.manifest.entries
    ours = board.run(artifact, inputs)
    code = compiled_c(generated(network(name)), None, board)
    nothing = np.zeros(0, np.uint8)
    manifest = replace(artifact.manifest, entries=(replace(entry, activations=0),))
    theirs = board.run(Artifact((code,), nothing, manifest), inputs)
    for output, wanted in ours.outputs.items():
        atol = 1e-3 * float(np.abs(wanted).max())
        np.testing.assert_allclose(theirs.outputs[output], wanted, rtol=0, atol=atol, err_msg=output)
    assert ours.instructions
    assert theirs.instructions
    return [
        f"{code_bytes(artifact.code[0]) + artifact.constants.nbytes:,}",
        f"{entry.activations + (ours.stack_bytes or 0):,}",
        f"{ours.instructions:,}",
        f"{code_bytes(code):,}",
        f"{theirs.stack_bytes or 0:,}",
        f"{theirs.instructions:,}",
        f"{ours.instructions / theirs.instructions:.2f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
