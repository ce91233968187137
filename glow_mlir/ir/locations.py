"""Locations as text."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FusedLoc, LocationAttr, NameLoc

from glow_mlir.ir.text import position_of


def location_names(location: LocationAttr) -> tuple[str, ...]:
    """The ONNX names in a location, without repetition."""
    if isinstance(location, NameLoc):
        return (location.desc.data,)
    if isinstance(location, FusedLoc):
        parts = cast("ArrayAttr[LocationAttr]", location.locations).data
        return tuple(dict.fromkeys(name for part in parts for name in location_names(part) if name))
    return ()


def location_name(location: LocationAttr) -> str:
    """The ONNX names in a location, joined by `+`; empty where it has none."""
    return "+".join(location_names(location))


def described(location: LocationAttr) -> str:
    """A location for a message: its names, or else its place in a file."""
    return location_name(location) or position_of(location)
