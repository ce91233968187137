"""Operators that users keep as they are: by names of ONNX nodes or by kind, with wildcards."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from glow_mlir.errors import OptionError
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import operations


def kept_operators(module: ModuleOp, patterns: Sequence[str]) -> set[Operation]:
    """The operators of those nodes or kinds; raises `OptionError` for a pattern that none fits."""
    unused, found = set(patterns), set[Operation]()
    for function in high_functions(module):
        for op in operations(function):
            names = (op.name.partition(".")[2], *location_names(op.location))
            fitting = {pattern for pattern in patterns if any(fnmatchcase(name, pattern) for name in names)}
            if fitting:
                found.add(op)
            unused -= fitting
    if unused:
        listed = ", ".join(sorted(f"'{pattern}'" for pattern in unused))
        hint = "names of ONNX nodes, or kinds of operators such as conv"
        raise OptionError(f"no node to keep is called {listed}", hint=hint)
    return found
