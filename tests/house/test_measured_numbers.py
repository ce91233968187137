"""Rooms that all backends share hold no number that was measured of a machine: it belongs to its description."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import glow_mlir

ROOMS = ("analysis", "conversion", "driver", "ir", "transforms")

EFFORT = {
    "FAR",
    "LARGEST_BOUNDED",
    "LARGEST_SPLATS",
    "LOOK_AHEAD",
    "MOST_BUFFERS",
    "MOST_COMPARED",
    "MOST_DISTANCES",
    "MOST_ELEMENTS",
    "MOST_LEVELS",
    "MOST_MEMBERS",
    "MOST_PARTS",
    "WIDTHS",
    "WINDOW",
    "WORK",
    "EXACT_WORK",
}
"""Bounds of how long a compilation takes, and how large it gets."""

FORM = {
    "ALIGNMENT",
    "FIRST",
    "FORMAT",
    "HIDDEN",
    "IMAGE_AXES",
    "LARGEST",
    "MOST_CANCELLED",
    "MOST_GATHERS",
    "MOST_STEPS",
    "ROUNDINGS",
    "SIXTH",
    "WIDEST",
    "WORTH_RAISING",
}
"""Limits of forms, formats and mathematics: the same on every machine."""


def numbers(path: Path) -> Iterator[str]:
    """The names of the constants of a module that are numbers, or tables of numbers alone."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.expr) and is_number(value):
            yield target.id


def is_number(value: ast.expr) -> bool:
    """Whether an expression has numbers, and nothing else but operators and displays, texts as keys included."""
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Dict, ast.operator, ast.unaryop, ast.Load)
    parts = list(ast.walk(value))
    found = [part.value for part in parts if isinstance(part, ast.Constant)]
    return all(isinstance(part, kinds) for part in parts) and any(type(item) in (int, float) for item in found)


def test_shared_rooms_hold_no_measured_number() -> None:
    root = Path(glow_mlir.__file__).parent
    found = {name for room in ROOMS for path in (root / room).rglob("*.py") for name in numbers(path)}
    assert not found - EFFORT - FORM, "say it in dialects/costs.py, with its value in the folder of the backend"
    assert not (EFFORT | FORM) - found, "the lists have names that are gone"
