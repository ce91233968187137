"""
What bundles of TensorFlow Lite models take on microcontrollers: code, constants, RAM, stack and executed instructions,
and how many instructions the same network executes whose roundings are single (which are not TensorFlow Lite's).

    make emulators
    python benchmarks/tflite_bundles.py [MODEL.tflite …] [--targets cortex-m4,riscv32] [--size]

Without files, the networks are those of the shapes of MLPerf Tiny, with random weights. RAM is activations, variables,
inputs and outputs; the stack comes on top. Counting is that of `bundles.py`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from traced import COUNTING
from xdsl.dialects.builtin import ModuleOp, StringAttr

from glow_mlir.api.bundles import bundle_of
from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.bundle.compile import code_bytes
from glow_mlir.dialects.glow_high.quantization import ONCE, IntegerRescaleOp
from glow_mlir.frontends.tflite.model import TfliteModel
from glow_mlir.runtime.artifact import Artifact

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / "support")]
from emulators import Ran  # noqa: E402
from tiny_models import TASKS, tiny_model  # noqa: E402

TARGETS = ("cortex-m0plus", "cortex-m4", "cortex-m55", "riscv32")

HEAD = ("network", "target", "code", "constants", "RAM", "stack", "instructions", "over single roundings")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL.tflite")
    parser.add_argument("--targets", default=",".join(TARGETS), help="names, with commas between")
    parser.add_argument("--size", action="store_true", help="make code small")
    args = parser.parse_args()
    models = {Path(name).stem: TfliteModel(Path(name)) for name in args.models}
    models = models or {task: TfliteModel(tiny_model(task)) for task in TASKS}
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for name, model in models.items():
        for target in args.targets.split(","):
            print(f"| {' | '.join([name, target, *cells(model, target, args.size)])} |", flush=True)
    return 0


def cells(model: TfliteModel, target: str, is_small: bool) -> list[str]:
    """The numbers of one line."""
    twice, once = model.module({}), model.module({})
    for op in once.walk():
        if isinstance(op, IntegerRescaleOp):
            op.properties["rounding"] = StringAttr(ONCE)
    ours, single = measured(twice, target, is_small), measured(once, target, is_small)
    sizes = (code_bytes(ours.artifact.code[0]), ours.artifact.constants.nbytes, ours.ram, ours.ran.stack_bytes or 0)
    counts = [item.ran.instructions or 0 for item in (ours, single)]
    return [*(f"{size:,}" for size in (*sizes, counts[0])), f"{counts[0] / counts[1]:.3f}" if counts[1] else ""]


@dataclass(frozen=True)
class Measured:
    """A bundle, and one call of it on random inputs; `ram` in bytes, without the stack."""

    artifact: Artifact
    ran: Ran
    ram: int


def measured(module: ModuleOp, target: str, is_small: bool) -> Measured:
    """The bundle of a module, and what a call takes."""
    machine = COUNTING[target]
    if missing := machine.missing():
        sys.exit(f"tflite_bundles.py: {target} needs {missing}")
    fields = {"optimize": "size"} if is_small else {}
    options = CompileOptions("cpu", target=target, fields={"threads": 1, **fields})
    bundled = bundle_of({"": module}, "model", options).artifact
    artifact = options.compilation(module).artifact()  # Its entry is `main`, which traces find.
    (entry,) = artifact.manifest.entries
    random = np.random.default_rng(0)
    given = [binding for binding in entry.bindings if binding.role == "input"]
    inputs = {binding.name: random.integers(-128, 128, binding.shape, np.int8) for binding in given}
    ran = machine.run(artifact, inputs)
    if ran.status:
        sys.exit(f"tflite_bundles.py: {target} ended with the status {ran.status}")
    return Measured(bundled, ran, entry.activations + sum(binding.nbytes for binding in entry.bindings))


if __name__ == "__main__":
    sys.exit(main())
