"""Names of SSA values: what the text of a module can call a value that goes by any name outside."""

from __future__ import annotations

import re
from functools import lru_cache

_ILLEGAL = re.compile(r"[^A-Za-z0-9_$.-]+")


@lru_cache(1 << 10)
def value_name(text: str) -> str | None:
    """
    `text` as the name of an SSA value, in MLIR's characters; `None` where nothing of it is left.

    It begins with no digit, and does not end in `_` and a number: printers tell values of one name apart by these.
    """
    name = _ILLEGAL.sub(" ", text).strip().replace(" ", "_")
    start, bar, end = name.rpartition("_")
    while bar and end.isdigit():
        name = start
        start, bar, end = name.rpartition("_")
    return f"v{name}" if name[:1].isdigit() else name or None
