"""The dialect `glow_high`: all operators of all packages, and the ops of storage and functions."""

from __future__ import annotations

import inspect
from typing import TypeGuard

from xdsl.ir import Dialect, Operation

from glow_mlir.dialects.packages import load_part
from glow_mlir.errors import PackageError


def _is_operation(member: object) -> TypeGuard[type[Operation]]:
    return inspect.isclass(member) and issubclass(member, Operation)


def _operations() -> list[type[Operation]]:
    """Every op class with a name that the operator modules define; raises `PackageError` where two share a name."""
    found: dict[str, type[Operation]] = {}
    for module in load_part("operators"):
        for _, member in inspect.getmembers(module, _is_operation):
            if member.__module__ != module.__name__ or "name" not in vars(member):
                continue
            if not member.name.startswith("glow_high."):
                raise PackageError(f"operator '{member.name}' of {module.__name__} is not named 'glow_high.…'")
            other = found.setdefault(member.name, member)
            if other is not member:
                places = f"in {other.__module__} and in {member.__module__}"
                raise PackageError(f"operator '{member.name}' is defined twice, {places}")
    return [found[name] for name in sorted(found)]


GLOW_HIGH = Dialect("glow_high", _operations(), [])
"""The paper's high-level IR: a graph of strongly typed operators."""
