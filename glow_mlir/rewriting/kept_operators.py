"""Operators that users exclude from a rewrite: by names of ONNX nodes or by kind, with wildcards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from xdsl.ir import Operation

from glow_mlir.errors import OptionError
from glow_mlir.ir.locations import location_names


def kept_operators(ops: Iterable[Operation], patterns: Sequence[str], purpose: str = "to keep") -> set[Operation]:
    """
    The operators whose node names or kinds match a pattern.

    Raises `OptionError` for a pattern without a match, about a node that is there for a `purpose`.
    """
    unused, found = set(patterns), set[Operation]()
    for op in ops:
        names = (op.name.partition(".")[2], *location_names(op.location))
        fitting = {pattern for pattern in patterns if any(fnmatchcase(name, pattern) for name in names)}
        if fitting:
            found.add(op)
        unused -= fitting
    if unused:
        listed = ", ".join(sorted(f"'{pattern}'" for pattern in unused))
        hint = "names of ONNX nodes, or kinds of operators such as conv"
        raise OptionError(f"no node {purpose} is called {listed}", hint=hint)
    return found
