"""Shared rooms ask operators through their interface (`HighOp`), so that a new operator needs no edit there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from checkout import ROOT, files

from glow_mlir.dialects.packages import BUILTIN

STRUCTURE = frozenset(
    {f"glow_mlir.dialects.glow_high.{name}" for name in ("control_flow", "data_movement", "storage")},
)
"""Modules whose ops only say where elements are, or what runs when: they become views, copies, branches and loops."""

OPERATORS = frozenset(BUILTIN.operators) - STRUCTURE

ROOMS = {
    *(("glow_mlir", room) for room in ("analysis", "api", "backends", "constants", "conversion", "driver", "ir")),
    *(("glow_mlir", room) for room in ("pictures", "runtime")),
    *(("glow_mlir", "codegen", part) for part in ("builder", "llvm", "math", "selection")),
    ("tools",),
}
"""Rooms that no operator needs an edit in: docs/add-an-operator.md lists the others."""


def in_rooms(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    direct = parts[:2] == ("glow_mlir", "codegen") and len(parts) == 3
    return direct or any(parts[: len(room)] == room for room in ROOMS)


def named_operators(path: Path) -> list[str]:
    """The operators that a file imports by name."""
    return [
        f"{path.name}:{node.lineno}: {alias.name}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module in OPERATORS
        for alias in node.names
        if alias.name.endswith("Op")
    ]


@pytest.mark.parametrize("path", [*filter(in_rooms, files(".py"))], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_shared_rooms_name_no_operators(path: Path) -> None:
    assert not named_operators(path), "say it by a method of HighOp, in dialects/glow_high/base.py"


def test_the_check_finds_a_name(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from glow_mlir.dialects.glow_high.convolution import ConvOp\n")
    assert named_operators(tmp_path / "a.py")
