"""Tables on stdout: aligned text, or rich's tables on a terminal if it is installed."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Literal

from glow_mlir.tools.command_line import has_colour

Alignment = Literal["left", "right"]

WIDEST = 48
"""The maximum width of a cell in characters; names of fused operators can be very long."""


def shortened(text: str, limit: int = WIDEST) -> str:
    """The text, shortened in the middle if it is longer than `limit`."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def print_table(
    title: str,
    columns: Mapping[str, Alignment],
    rows: Sequence[Sequence[str]],
    alarming: Collection[int] = (),
) -> None:
    """Print a table; `columns` maps titles to alignments, and rows listed in `alarming` are highlighted."""
    cells = [[shortened(cell) for cell in row] for row in rows]
    if has_colour(sys.stdout) and find_spec("rich") is not None:
        _print_rich(title, columns, cells, alarming)
    else:
        print(plain_table(title, columns, cells))


def plain_table(title: str, columns: Mapping[str, Alignment], rows: Sequence[Sequence[str]]) -> str:
    """The table as aligned text."""
    table = [list(columns), *rows]
    widths = [max(len(row[index]) for row in table) for index in range(len(columns))]
    lines = [title]
    for row in table:
        aligned = [
            cell.ljust(width) if alignment == "left" else cell.rjust(width)
            for cell, width, alignment in zip(row, widths, columns.values(), strict=True)
        ]
        lines.append(f"  {'  '.join(aligned)}".rstrip())
    return "\n".join(lines)


def _print_rich(
    title: str, columns: Mapping[str, Alignment], rows: Sequence[Sequence[str]], alarming: Collection[int]
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="bold")
    for name, alignment in columns.items():
        table.add_column(name, justify=alignment, overflow="fold")
    for number, row in enumerate(rows):
        style = "bold red" if number in alarming else ""
        table.add_row(*(Text(cell, style) for cell in row))
    Console(highlight=False).print(table)
