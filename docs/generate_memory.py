"""
Writes docs/memory.md: the bytes that models take, measured.

`python docs/generate_memory.py` compiles the models of the tests for a fixed target and writes the page; it takes a
minute, most of it to make their weights.
"""

from __future__ import annotations

import sys
from pathlib import Path

from xdsl.dialects.builtin import IntegerAttr

from glow_mlir.analysis.activations import program_of
from glow_mlir.analysis.program import child_size_order, peak, topological_order
from glow_mlir.dialects.glow_low.memory import FuncOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.rewriting import high_functions, low_functions

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "memory.md"
MACHINE = "avx2"
"""Kernels take scratch memory that depends on the vector width."""

INTRODUCTION = """# Memory

All activations of a function lie in one region, the arena. Three passes plan the arena: `schedule`,
`shorten-lifetimes` and `allocate`. Other passes reduce it by removing tensors.

- `schedule` orders the operators to minimize peak live memory. It divides the graph at operators that all others
  precede or follow. Only the segments that determine the peak are searched, over the sets of executable operators
  (Ahn et al., MLSys 2020): small segments exactly, larger ones over the most promising sets. The result is never
  worse than Glow's two orders, which the options `order=child-size` and `order=topological` select. It is optimal
  for segments of about 20 operators. `glow_mlir/analysis/activations.py` defines which operators share a buffer.
- `shorten-lifetimes` limits the lifetime of every buffer to its first and last use.
- `allocate` assigns offsets to the buffers, at multiples of 64 bytes. It tries eight placement orders, two of them
  Glow's. If the best one exceeds the lower bound, the most bytes that are live at one instruction, a search
  improves it. The function records both as `activations` and `activations_bound`. `glow-run --stats` prints them
  and their quotient, the efficiency.

## Limits

`--ram-limit BYTES` (256K, 1M; `ram_bytes` of sessions and targets) limits activations, inputs, outputs and state
together; in a bundle, also the stack. `--flash-limit` limits code and constants in a bundle. The functions of a
module share that memory. Each one leaves space for the state of all, and for the inputs and outputs of the function
that has most.

With a limit, `tile-lines` cuts chains of convolutions into blocks of lines until peak live memory is within the
limit, and no further. In each step it cuts the chain that leaves the least memory beyond the limit. The last chain
gets the largest blocks that fit. Each line is computed once. A convolution that is cut uses a kernel that supports
lines, even if another kernel (Winograd's) would be faster. `select` gives a kernel only scratch that fits beside
the buffers that are live at its instruction. If only its stack makes a bundle exceed the limit, the bundle is
compiled again with smaller activations. A model that does not fit is rejected with an error that names the layer
with the peak live memory. No region may be larger than the range of the target's pointers (2 GB for 32 bits).

## Bytes by model

*live* is the peak live memory, in the order of `schedule` and in Glow's two orders, by the model that `schedule`
uses. *arena* is the region that compiled code takes, for the target {machine}. *efficiency* is its lower bound divided
by its size. *graph* is the minimum that the scheduled graph needs, computed by `tests/support/memory_bound.py`,
independently of the compiler; fused operators may need less. `python docs/generate_memory.py` writes this page.

| model | live | child size | topological | arena | efficiency | graph | arena / graph |
|---|---|---|---|---|---|---|---|
"""


def number_of(function: FuncOp, name: str) -> int:
    """A size that `allocate` keeps on a function."""
    attribute = function.properties[name]
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def row(name: str) -> str:
    """The line of one model."""
    from memory_bound import memory_bound
    from models import model_named

    compilation = Compilation(import_model(model_named(name)), target=MACHINE)
    (lowered,) = high_functions(compilation.run("lowered"))
    program = program_of(lowered.block)
    glow = [peak(program, order(program)) for order in (child_size_order, topological_order)]
    (scheduled,) = high_functions(compilation.run("scheduled"))
    needed = memory_bound(scheduled)
    program = program_of(scheduled.block)
    live = peak(program, range(len(program.steps)))
    (function,) = low_functions(compilation.run("allocated"))
    arena, bound = number_of(function, "activations"), number_of(function, "activations_bound")
    sizes = [f"{size:,}" for size in (live, *glow, arena)]
    return f"| {name} | {' | '.join(sizes)} | {bound / arena:.1%} | {needed:,} | {arena / needed:.3f} |"


def main() -> None:
    """Write the page."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from models import BUILT, LIGHT

    rows = [row(name) for name in sorted((*LIGHT, *BUILT))]
    TARGET.write_text(INTRODUCTION.format(machine=MACHINE) + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
