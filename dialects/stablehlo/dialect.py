"""The dialects `stablehlo` and `chlo` with their operations, attributes and types."""

from __future__ import annotations

from xdsl.ir import Attribute, Dialect

from glow_mlir.dialects.stablehlo import attributes, chlo, table


def _attributes(dialect: str) -> list[type[Attribute]]:
    """The attributes and types of a dialect."""
    members = [member for member in vars(attributes).values() if isinstance(member, type) and "name" in vars(member)]
    return [member for member in members if issubclass(member, Attribute) and member.name.startswith(f"{dialect}.")]


STABLEHLO = Dialect("stablehlo", [*table.OPERATIONS], _attributes("stablehlo"))
"""OpenXLA's portable operations, between frameworks and compilers."""

CHLO = Dialect("chlo", [*chlo.OPERATIONS], _attributes("chlo"))
"""The functions of mathematics that clients use beside StableHLO."""
