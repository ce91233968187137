"""The pass of this distribution, which xDSL finds by the entry point that `pyproject.toml` declares."""

from __future__ import annotations

from xdsl.passes import ModulePass
from xdsl.universe import Universe


def _convert_to_tosa() -> type[ModulePass]:
    from tosa_backend.convert import ConvertToTosaPass

    return ConvertToTosaPass


UNIVERSE = Universe(all_passes={"convert-to-tosa": _convert_to_tosa})
"""What this distribution adds to xDSL's."""
