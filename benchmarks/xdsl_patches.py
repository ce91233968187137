"""
What each replacement of a part of xDSL saves: the CPU time of a start without it, beside that of a start with all.

    python benchmarks/xdsl_patches.py                        # MobileNet V2
    python benchmarks/xdsl_patches.py my_network.onnx --rounds 15

A start is a process that imports the compiler, and compiles a network down to machine code. All starts run in turns;
the table has medians, and their quotients by the start with all replacements. `none` is that start once more: what its
quotient differs from 1 is noise.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from contest.machine import machine
from contest.workloads import NotAWorkload, names_of, write_workload
from glow_mlir.tools.arguments.bounded_numbers import count

WITHOUT = {
    "none": "",
    "loader": "loader.install = lambda: None",
    "definitions": "from xdsl.irdl import irdl_op_definition; definitions.op_definition = irdl_op_definition",
    "creation": "creation.created = theirs",
    "append": "creation.append = lambda block, op: block.add_op(op)",
    "readers": "operations._READERS.clear()",
    "defaults": "del operations.LeanOperation.__post_init__",
    "copies": "operations.cloned_region = region_clone; operations.cloned_operation = operation_clone",
}
"""Replacement → what takes it back, before the dialects are imported."""

START = """
import resource, sys
import glow_mlir
from glow_mlir.xdsl_patches import creation, definitions, loader

def theirs(kind, operands=(), result_types=(), properties=None, attributes=None, location=None, *others, **rest):
    from xdsl.ir import Operation
    given = {"properties": properties or {}, "attributes": attributes or {}, **rest}
    given |= {"operands": operands, "result_types": result_types, "location": location or creation.UNKNOWN_LOC}
    given |= dict(zip(("successors", "regions"), others))
    return Operation.create.__func__(kind, **given)

def region_clone(region, values=None):
    return region.clone(values)

def operation_clone(op, copies=None):
    return op.clone({} if copies is None else copies)

if "operations" in sys.argv[1]:
    from glow_mlir.xdsl_patches import operations
exec(sys.argv[1])
loader.install()
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
Compilation(import_model(sys.argv[2])).artifact()
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime)
"""
"""The process that is measured; its arguments are a line of `WITHOUT` and the model."""


def seconds(name: str, model: Path) -> float:
    """The CPU seconds of one start without a replacement."""
    command = [sys.executable, "-c", START, WITHOUT[name], str(model)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="mobilenet_v2", help="a network of the contest, or an ONNX file")
    parser.add_argument("--rounds", type=count, default=9, help="of all starts")
    options = parser.parse_args()
    try:
        (name,) = names_of([options.model])
        with tempfile.TemporaryDirectory() as folder:
            model = write_workload(name, Path(folder)).model
            starts = ["all", *WITHOUT]
            found: dict[str, list[float]] = {start: [] for start in starts}
            for _ in range(options.rounds):
                for start in random.sample(starts, len(starts)):
                    found[start].append(seconds("none" if start == "all" else start, model))
    except NotAWorkload as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{machine()}\n\n| without | CPU seconds | quotient |\n| --- | --- | --- |")
    least = statistics.median(found["all"])
    for start, times in found.items():
        print(f"| {start} | {statistics.median(times):.2f} | {statistics.median(times) / least:.3f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
