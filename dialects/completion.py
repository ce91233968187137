"""How a dialect of xDSL becomes a completed one: with upstream operations that it lacks or restricts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xdsl.ir import Dialect, Operation


def completed(dialect: Dialect, added: Sequence[type[Operation]]) -> Dialect:
    """
    A dialect extended by those operations, which replace its own ones of the same name.

    Attributes and interfaces stay the dialect's; without its interfaces, xDSL's passes would silently skip it.
    """
    operations = {op.name: op for op in (*dialect.operations, *added)}
    private: dict[str, Any] = {"_operations": [operations[name] for name in sorted(operations)]}
    return replace(dialect, **private)
