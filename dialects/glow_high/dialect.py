"""The dialect `glow_high`: all operators of all packages, and the ops of storage and functions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import ModuleType

from xdsl.ir import Dialect, Operation

from glow_mlir.dialects.packages import load_part
from glow_mlir.errors import PackageError


def _defined(module: ModuleType) -> Iterator[type[Operation]]:
    """The op classes with a name that a module defines itself."""
    for member in vars(module).values():
        # Last, since a class that is no op is compared with all op classes.
        if isinstance(member, type) and member.__module__ == module.__name__ and "name" in vars(member):
            if issubclass(member, Operation):
                yield member


@cache
def operators() -> tuple[type[Operation], ...]:
    """Every op class with a name that the operator modules define; raises `PackageError` where two share a name."""
    found: dict[str, type[Operation]] = {}
    for module in load_part("operators"):
        for member in _defined(module):
            if not member.name.startswith("glow_high."):
                raise PackageError(f"operator '{member.name}' of {module.__name__} is not named 'glow_high.…'")
            other = found.setdefault(member.name, member)
            if other is not member:
                modules = f"in {other.__module__} and in {member.__module__}"
                raise PackageError(f"operator '{member.name}' is defined twice, {modules}")
    return tuple([found[name] for name in sorted(found)])


GLOW_HIGH = Dialect("glow_high", [*operators()], [])
"""The paper's high-level IR: a graph of strongly typed operators."""
