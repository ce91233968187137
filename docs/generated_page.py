"""What the generators of pages share: tables between their marks, and writing a page or checking it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """A page with tables between their marks, by name: `<!-- NAME: begin -->` and `<!-- NAME: end -->`."""
    for name, text in tables.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        front, _, rest = page.partition(begin)
        _, _, back = rest.partition(end)
        page = "".join((front, begin, text, end, back))
    return page


def write_or_check(page: Path, text: str, arguments: Sequence[str]) -> int:
    """Write a page, or with `--check` say whether it is up to date; the exit code."""
    if "--check" not in arguments:
        page.write_text(text, encoding="utf-8")
        return 0
    if page.exists() and page.read_text(encoding="utf-8") == text:
        return 0
    print(f"{page.name} is out of date: python docs/{Path(sys.argv[0]).name}", file=sys.stderr)
    return 1
