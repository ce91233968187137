"""Names of SSA values derived from arbitrary names."""

from __future__ import annotations

import re
from functools import lru_cache

_ILLEGAL = re.compile(r"[^A-Za-z0-9_$.-]+")


@lru_cache(1 << 10)
def value_name(text: str) -> str | None:
    """
    Convert `text` to the name of an SSA value, in MLIR's characters; `None` if nothing of it is left.

    It begins with no digit, and does not end in `_` and a number: printers append these to distinguish values of one
    name.
    """
    name = _ILLEGAL.sub(" ", text).strip().replace(" ", "_")
    start, bar, end = name.rpartition("_")
    while bar and end.isdigit():
        name = start
        start, bar, end = name.rpartition("_")
    return f"v{name}" if name[:1].isdigit() else name or None
