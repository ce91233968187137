"""Backends are known by name alone: the words for those that come with the project stand where they are defined."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from checkout import ROOT, files

ALLOWED = (
    "glow_mlir/backends/cpu",
    "glow_mlir/backends/interpreter",
    "dialects/packages.py",  # The list of what comes with the project, and the defaults.
    "glow_mlir/api/onnxruntime/devices.py",  # What onnxruntime calls the device that has the memory.
    "glow_mlir/runtime/cores.py",  # What Linux calls its controller of time.
    "glow_mlir/codegen/selection/tables.py",  # The tables of the kernels of that room.
)
"""Where the names may stand."""

NAMES = {"cpu", "interpreter"}
ROOMS = ("glow_mlir", "dialects", "tools")


def named(path: Path) -> list[int]:
    """The lines of a file in which a text is the name of a backend."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [node.lineno for node in found if node.value in NAMES]


@pytest.mark.parametrize("room", ROOMS)
def test_no_code_asks_for_a_backend_by_its_name(room: str) -> None:
    paths = {path.relative_to(ROOT).as_posix(): path for path in files(".py")}
    chosen = {name: path for name, path in paths.items() if name.startswith(f"{room}/")}
    assert chosen
    wrong = {name: named(path) for name, path in chosen.items() if not name.startswith(ALLOWED)}
    assert not {name: lines for name, lines in wrong.items() if lines}
