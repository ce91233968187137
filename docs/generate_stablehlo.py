"""
Writes the tables of docs/stablehlo.md from the dialects and from the importers of their operations.

    python docs/generate_stablehlo.py           # write the tables
    python docs/generate_stablehlo.py --check   # exit with 1 where they are out of date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from xdsl.irdl import OptionalDef, VariadicDef

from glow_mlir.dialects.stablehlo import chlo, table
from glow_mlir.dialects.stablehlo.operation import StablehloOp
from glow_mlir.frontends.stablehlo.importer import importers
from glow_mlir.frontends.stablehlo.operators.elementwise import FUNCTIONS, PAIRS

sys.path.append(str(Path(__file__).parent))

from generated_page import with_tables, write_or_check

PAGE = Path(__file__).with_name("stablehlo.md")

HEAD = "| operation | operands | properties | regions | computed |\n|---|---|---|---|---|\n"


def rows(operations: Sequence[type[StablehloOp]]) -> str:
    """The table: a row for each operation, by name."""
    ordered = sorted(operations, key=lambda kind: kind.name)
    return HEAD + "".join(f"| {' | '.join(cells(kind))} |\n" for kind in ordered if not kind.name.endswith(".return"))


def cells(kind: type[StablehloOp]) -> Iterator[str]:
    """The cells of a row."""
    definition = kind.get_irdl_definition()
    yield f"`{kind.name.partition('.')[2]}`"
    yield _listed(f"{name.rstrip('_')}{_number(item)}" for name, item in definition.operands)
    yield _listed(f"{name}{_number(item)}" for name, item in sorted(definition.properties.items()))
    yield _listed(f"{name.rstrip('_')}{_number(item)}" for name, item in definition.regions)
    importer = importers().get(kind.name)
    plain = {**FUNCTIONS, **PAIRS}.get(kind.name.removeprefix("stablehlo."))
    yield f"`{plain.name}`" if plain else "" if importer is None else _sentence(importer.__doc__ or "")


def _number(item: object) -> str:
    """How many there may be."""
    return (
        "*"
        if isinstance(item, VariadicDef) and not isinstance(item, OptionalDef)
        else "?" * isinstance(item, OptionalDef)
    )


def _listed(words: Iterator[str]) -> str:
    return ", ".join(f"`{word}`" for word in words if not word.startswith("operandSegment"))


def _sentence(text: str) -> str:
    """The first sentence of a description, as text of a cell."""
    first = " ".join(text.split("\n\n")[0].split())
    refused = first.removeprefix("Raise `UnsupportedError`: ")
    return f"refused: {refused}" if refused != first else first.replace("|", "\\|")


def written(page: str) -> str:
    """The page with the tables as they have to be."""
    return with_tables(page, {"stablehlo": rows(table.OPERATIONS), "chlo": rows(chlo.OPERATIONS)})


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, written(PAGE.read_text(encoding="utf-8")), sys.argv[1:]))
