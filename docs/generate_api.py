"""
Writes the tables of docs/api.md from those that the API works by.

    python docs/generate_api.py           # write the tables
    python docs/generate_api.py --check   # exit with 1 where they are out of date
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from glow_mlir.api.onnxruntime.providers import PROVIDER_OPTIONS
from glow_mlir.api.onnxruntime.refused_names import REFUSED
from glow_mlir.api.onnxruntime.run_options import RUN_METHODS, RunOptions
from glow_mlir.api.onnxruntime.session_options import METHODS, SessionOptions
from glow_mlir.api.onnxruntime.settings import Effect, Key, Treatment

sys.path.append(str(Path(__file__).parent))

from generated_page import with_tables, write_or_check

PAGE = Path(__file__).with_name("api.md")


def options(settings: Iterable[Treatment], methods: Iterable[Treatment], refused: Mapping[str, str]) -> str:
    """A row for each attribute and method, refused ones last."""
    rows = [*settings, *methods, *(Treatment(name, Effect.REFUSED, reason) for name, reason in refused.items())]
    head = "| option | here | |\n|---|---|---|\n"
    return head + "".join(f"| `{row.name}` | {row.effect.value} | {row.reason} |\n" for row in rows)


def keys(known: Mapping[str, Key]) -> str:
    """A row for each key."""
    head = "| key | values | here | |\n|---|---|---|---|\n"
    return head + "".join(
        f"| `{key}` | {values(item)} | {item.treatment.effect.value} | {item.treatment.reason} |\n"
        for key, item in known.items()
    )


def values(item: Key) -> str:
    """The values that a key takes."""
    if not item.is_known:
        return "none"
    return ", ".join(f"`{value}`" for value in item.only if value) or "any"


def missing() -> str:
    """A row for each name that there is not, but for those of options."""
    head = "| of | name | in its place, or why |\n|---|---|---|\n"
    owners = {owner: names for owner, names in REFUSED.items() if owner not in ("SessionOptions", "RunOptions")}
    return head + "".join(
        f"| `{owner}` | `{name}` | {reason} |\n" for owner, names in owners.items() for name, reason in names.items()
    )


def tables() -> dict[str, str]:
    """Name → table."""
    return {
        "session options": options(SessionOptions.settings(), METHODS, REFUSED["SessionOptions"]),
        "session keys": keys(SessionOptions.KEYS),
        "run options": options(RunOptions.settings(), RUN_METHODS, REFUSED["RunOptions"]),
        "run keys": keys(RunOptions.KEYS),
        "provider options": ", ".join(f"`{name}`" for name in PROVIDER_OPTIONS) + ".\n",
        "missing names": missing(),
    }


def written(page: str) -> str:
    """The page with the tables as they have to be."""
    return with_tables(page, tables())


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, written(PAGE.read_text(encoding="utf-8")), sys.argv[1:]))
