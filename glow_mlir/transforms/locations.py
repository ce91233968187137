"""Locations as text."""

from __future__ import annotations

from xdsl.dialects.builtin import FusedLoc, LocationAttr, NameLoc

from glow_mlir.textual import position_of


def location_name(location: LocationAttr) -> str:
    """The ONNX names in a location, joined by `+`; empty where it has none."""
    if isinstance(location, NameLoc):
        return location.desc.data
    if isinstance(location, FusedLoc):
        return "+".join(filter(None, (location_name(part) for part in location.locations.data)))  # pyright: ignore
    return ""


def described(location: LocationAttr) -> str:
    """A location for a message: its names, or else its place in a file."""
    return location_name(location) or position_of(location)
