"""
Writes the table of docs/targets.md from the machines that the CPU backend knows by name.

    python docs/generate_targets.py           # write the table
    python docs/generate_targets.py --check   # exit with 1 where it is out of date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from glow_mlir.backends.cpu.targets import MACHINES, Machine
from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.kernels.products.tiles import tile_for

sys.path.append(str(Path(__file__).parent))

from generated_page import with_tables, write_or_check

PAGE = Path(__file__).with_name("targets.md")

HEAD = """\
| name | machine | processor, features | vectors | registers | pointers | tile | it can |
|---|---|---|---|---|---|---|---|
"""

CAPABILITIES = ("doubles", "halves", "fma", "rounding", "maxima", "rounding_conversion", "scaling", "masked")
"""Properties of a `Target` that say what its processor can do."""


def table() -> str:
    """The table: a row for each machine."""
    return HEAD + "".join(f"| {' | '.join(cells(name, machine))} |\n" for name, machine in MACHINES.items())


def cells(name: str, machine: Machine) -> Iterator[str]:
    """The cells of a row."""
    target = machine.target
    tile = tile_for(target, f32)
    yield f"`{name}`"
    yield machine.about
    yield f"`{' '.join(filter(None, (target.cpu, target.features)))}`"
    yield str(target.vector_bits or "none")
    yield str(target.vector_registers)
    yield str(target.pointer_bits)
    yield f"{tile.rows}×{tile.vectors}"
    yield ", ".join(word.replace("_", " ") for word in CAPABILITIES if getattr(target, word))


def written(page: str) -> str:
    """The page with the table as it has to be."""
    return with_tables(page, {"table": table()})


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, written(PAGE.read_text(encoding="utf-8")), sys.argv[1:]))
