"""How a dialect of xDSL becomes a completed one: with upstream operations that it lacks or restricts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xdsl.ir import Dialect, Operation


def completed(dialect: Dialect, added: Sequence[type[Operation]]) -> Dialect:
    """
    A dialect with those operations besides its own, by name, or in place of those of the same name.

    All else is the dialect's: its attributes, and its interfaces, without which passes of xDSL pass it over in silence.
    """
    operations = {op.name: op for op in (*dialect.operations, *added)}
    private: dict[str, Any] = {"_operations": [operations[name] for name in sorted(operations)]}
    return replace(dialect, **private)
