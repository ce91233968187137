"""
What bundles of TensorFlow Lite models take on microcontrollers: code, constants, RAM, stack and executed instructions,
and how many instructions the same network executes whose roundings are single (which are not TensorFlow Lite's).

    make emulators
    python benchmarks/tflite_bundles.py [MODEL.tflite …] [--targets cortex-m4,riscv32] [--size]

Without files, the networks are the trained ones of MLPerf Tiny (`make tflite-models`), and one for speech. RAM is
activations, variables, inputs and outputs; the stack comes on top. The arena is that of TensorFlow Lite Micro, if its
package is installed: it runs on this machine, whose pointers have 64 bits. Counting is that of `bundles.py`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Sequence
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
from trained_tflite import TINY, find_trained_model, smooth_inputs  # noqa: E402

TARGETS = ("cortex-m0plus", "cortex-m4", "cortex-m55", "riscv32")

SPEECH = "tflite_micro_speech"

MAX_ARENA = 1 << 24
STDERR = 2

HEAD = (
    "network",
    "target",
    "code",
    "constants",
    "RAM",
    "stack",
    "Micro's arena",
    "instructions",
    "over single roundings",
)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL.tflite")
    parser.add_argument("--targets", default=",".join(TARGETS), help="names, with commas between")
    parser.add_argument("--size", action="store_true", help="make code small")
    args = parser.parse_args()
    models = {Path(name).stem: TfliteModel(Path(name)) for name in args.models}
    models = models or {name: TfliteModel(data) for name in (*TINY, SPEECH) if (data := find_trained_model(name))}
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
    (arrays,) = smooth_inputs(model.file, 1)
    ours, single = (measured(module, arrays, target, is_small) for module in (twice, once))
    sizes = (code_bytes(ours.artifact.code[0]), ours.artifact.constants.nbytes, ours.ram, ours.ran.stack_bytes or 0)
    counts = [item.ran.instructions or 0 for item in (ours, single)]
    ratio = f"{counts[0] / counts[1]:.3f}" if counts[1] else ""
    return [*(f"{size:,}" for size in sizes), arena(model), f"{counts[0]:,}", ratio]


def arena(model: TfliteModel) -> str:
    """The bytes that TensorFlow Lite Micro's interpreter takes of its arena; nothing where its package is missing."""
    try:
        runtime = importlib.import_module("tflite_micro.python.tflite_micro.runtime")
    except ImportError:
        return ""
    content = model.source if isinstance(model.source, bytes) else Path(model.source).read_bytes()
    interpreter = runtime.Interpreter.from_bytes(content, arena_size=MAX_ARENA)
    with tempfile.TemporaryFile() as told:
        kept = os.dup(STDERR)
        os.dup2(told.fileno(), STDERR)
        try:
            interpreter.print_allocations()
        finally:
            os.dup2(kept, STDERR)
            os.close(kept)
        told.seek(0)
        found = re.search(rb"Arena allocation total (\d+) bytes", told.read())
    return f"{int(found[1]):,}" if found else ""


@dataclass(frozen=True)
class Measured:
    """A bundle, and one call of it on random inputs; `ram` in bytes, without the stack."""

    artifact: Artifact
    ran: Ran
    ram: int


def measured(module: ModuleOp, arrays: Sequence[np.ndarray], target: str, is_small: bool) -> Measured:
    """The bundle of a module, and what a call on these inputs takes."""
    machine = COUNTING[target]
    if missing := machine.missing():
        sys.exit(f"tflite_bundles.py: {target} needs {missing}")
    fields = {"optimize": "size"} if is_small else {}
    options = CompileOptions("cpu", target=target, fields={"threads": 1, **fields})
    bundled = bundle_of({"": module}, "model", options).artifact
    artifact = options.compilation(module).artifact()  # Its entry is `main`, which traces find.
    (entry,) = artifact.manifest.entries
    given = [binding.name for binding in entry.bindings if binding.role == "input"]
    inputs = dict(zip(given, arrays, strict=True))
    ran = machine.run(artifact, inputs)
    if ran.status:
        sys.exit(f"tflite_bundles.py: {target} ended with the status {ran.status}")
    return Measured(bundled, ran, entry.activations + sum(binding.nbytes for binding in entry.bindings))


if __name__ == "__main__":
    sys.exit(main())
