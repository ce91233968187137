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

All activations of a function lie in one region, the arena. Three passes decide how large it is; every other pass
helps by not making tensors at all.

- `schedule` orders the operators so that least memory is live at once. The graph falls apart at operators that all
  others come before or after; of the segments in between only those that decide the peak are searched, over the sets
  of operators that can be done (Ahn et al., MLSys 2020): exactly while they are small, else over the most promising
  sets. The result is never worse than Glow's two orders, which the options `order=child-size` and `order=topological`
  give, and it is the best there is for segments of about 20 operators. `glow_mlir/analysis/activations.py` states
  which operators share a buffer.
- `shorten-lifetimes` lets every buffer live from its first to its last use.
- `allocate` places the buffers at multiples of 64 bytes. It tries eight orders of placement, two of them Glow's, and
  improves the best one by search where it is above the lower bound: the most bytes that are live at one instruction.
  The function keeps both as `activations` and `activations_bound`; `glow-run --stats` prints them, and their
  quotient, the efficiency.

## Limits

`--ram-limit BYTES` (256K, 1M; `ram_bytes` of sessions and targets) is what activations, inputs, outputs and state may
take together; in a bundle, the stack as well, and `--flash-limit` is for code and constants. The functions of a module
share that memory: each leaves room for the state of all, and for inputs and outputs of the one that has most.

`tile-lines` then cuts chains of convolutions into blocks of lines until most that lives at once is within the limit,
and no further: each time the chain that leaves least beyond it, at the end with the largest blocks that there is room
for. Each line is computed once; a convolution that is cut is computed by a kernel that can do lines, also where one
that cannot (Winograd's) would be faster. `select` gives a kernel only scratch that fits beside the buffers that live
where it runs. A bundle whose stack alone is too much is compiled again with activations that make room for it. Whatever
does not fit is an error in one line, which names the layer at which most is live. No region may be larger than pointers
of the target span (2 GB of 32 bits).

## Bytes by model

*live* is the most that is live at once, in the order of `schedule` and in Glow's two, by the model that `schedule`
uses. *arena* is the region that compiled code takes, for the target {machine}; *efficiency* is its lower
bound divided by its size. *graph* is what the scheduled graph needs at least, counted by
`tests/support/memory_bound.py`, which knows nothing of the compiler; fused operators may need less. This page is
written by `python docs/generate_memory.py`.

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
