"""
Writes the tables of docs/options.md from what is declared of options.

    python docs/generate_options.py           # write the tables
    python docs/generate_options.py --check   # exit with 1 where they are out of date
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.api.onnxruntime.model_configuration import CarriedOptions
from glow_mlir.api.onnxruntime.session_arguments import FACADE_KEYWORDS
from glow_mlir.api.session_keywords import SessionRules
from glow_mlir.dialects.target import FIELDS
from glow_mlir.options.declaration import Declared, declared
from glow_mlir.options.quantization import Quantization

sys.path.append(str(Path(__file__).parent))

from generated_page import with_tables, write_or_check

PAGE = Path(__file__).with_name("options.md")

HEAD = "| option | values | default | flag | keyword | |\n|---|---|---|---|---|---|\n"

OPTIONS = [
    *FIELDS.values(),
    *(
        item
        for kind in (CompileOptions, SessionRules, CarriedOptions, Quantization)
        for item in declared(kind).values()
        if item.option.is_keyword or item.option.flag or item.option.within
    ),
]
"""All that is declared, and that users say."""


def tables() -> dict[str, str]:
    """Kind of options → table, a row for each."""
    rows: dict[str, str] = {}
    for item in OPTIONS:
        rows[item.group] = rows.get(item.group, HEAD) + f"| {' | '.join(cells(item))} |\n"
    return rows


def cells(item: Declared) -> Iterator[str]:
    """The cells of a row."""
    told = item.option
    yield f"`{item.name}`"
    yield str(told.domain) if told.domain is not None else item.kind.words
    yield "" if item.default in (dataclasses.MISSING, None, "", (), {}) else f"`{item.default}`"
    flag = told.within if told.flag is None else told.flag.name
    yield f"`{flag}`" if flag else ""
    yield f"`{item.name}`" if item.name in FACADE_KEYWORDS and FACADE_KEYWORDS[item.name].owner is item.owner else ""
    yield told.help


def written(page: str) -> str:
    """The page with the tables as they have to be."""
    return with_tables(page, tables())


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, written(PAGE.read_text(encoding="utf-8")), sys.argv[1:]))
