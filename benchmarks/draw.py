"""
Draws the pictures of the documentation from the figures that its pages have: `make pictures`.

    python benchmarks/draw.py           # write them
    python benchmarks/draw.py --check   # exit with 1 where one is out of date
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from contest.picture import pictures_of

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures, or compare them; 1 where one is out of date, or no table has its figures."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the documentation.")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where a picture is out of date")
    options = parser.parse_args(arguments)
    page = PAGE.read_text(encoding="utf-8")
    pictures = pictures_of(page, PAGE.stem)
    if missing := [name for name in re.findall(r"\]\(([\w-]+\.svg)\)", page) if name not in pictures]:
        print(f"docs/{PAGE.name}: no table has the figures of {', '.join(missing)}", file=sys.stderr)
        return 1
    old = {name: text for name, text in pictures.items() if not _is_fresh(PAGE.with_name(name), text)}
    for name, text in old.items():
        if options.check:
            print(f"docs/{name} is out of date (hint: make pictures)", file=sys.stderr)
        else:
            PAGE.with_name(name).write_text(text, encoding="utf-8")
    return int(options.check and bool(old))


def _is_fresh(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
