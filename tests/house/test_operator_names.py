"""Shared rooms ask operators through their interface (`HighOp`), so that a new operator needs no edit there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from checkout import ROOT, files, offenders, tree_of

from glow_mlir.dialects.packages import BUILTIN

STRUCTURE = frozenset(
    {
        f"glow_mlir.dialects.glow_high.{name}"
        for name in ("call", "control_flow", "data_movement", "loop", "returns", "sizes", "storage")
    },
)
"""Modules whose ops only say where elements are, how many, or what runs when: they become views, copies, loops."""

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
    """The operators, and the modules of operators, that a file imports, by whatever name."""
    found: list[str] = []
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name in OPERATORS]
        else:
            of_module = node.module in OPERATORS
            names = [
                alias.name
                for alias in node.names
                if (of_module and alias.name.endswith("Op")) or f"{node.module}.{alias.name}" in OPERATORS
            ]
        found += [f"{path.name}:{node.lineno}: {name}" for name in names]
    return found


def test_shared_rooms_name_no_operators() -> None:
    found = offenders(filter(in_rooms, files(".py")), named_operators)
    assert not found, "say it by a method of HighOp, in dialects/glow_high/base.py"


@pytest.mark.parametrize(
    "statement",
    [
        "from glow_mlir.dialects.glow_high.convolution import ConvOp",
        "from glow_mlir.dialects.glow_high.convolution import ConvOp as Other",
        "from glow_mlir.dialects.glow_high import activations",
        "from glow_mlir.dialects.glow_high import storage, elementwise_binary as binary",
        "import glow_mlir.dialects.glow_high.pooling",
        "import glow_mlir.dialects.glow_high.pooling as pools",
    ],
)
def test_the_check_finds_a_name(tmp_path: Path, statement: str) -> None:
    (tmp_path / "a.py").write_text(f"{statement}\n")
    assert len(named_operators(tmp_path / "a.py")) == 1
