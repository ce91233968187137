"""The public names of the package are the same to the type checker, to who imports them, and to who lists them."""

from __future__ import annotations

import ast

from checkout import ROOT, run_python

import glow_mlir

HOMES: dict[str, str] = vars(glow_mlir)["_HOMES"]


def typed_names() -> dict[str, str]:
    """Public name → where the type checker finds it, as the package has it for itself."""
    tree = ast.parse((ROOT / "glow_mlir" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    found: dict[str, str] = {}
    for node in block.body:
        if isinstance(node, ast.Assign):
            assert isinstance(node.value, ast.Attribute)
            found |= {ast.unparse(target): f"glow_mlir.errors:{node.value.attr}" for target in node.targets}
            continue
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            if (name := str(alias.asname)).startswith("_"):
                continue
            assert name == alias.name, f"type checkers take '{alias.name}' as public only where it is its own alias"
            found[name] = f"glow_mlir.{name}" if node.module == "glow_mlir" else str(node.module)
    return found


def test_type_checker_finds_names_where_they_are_imported_from() -> None:
    assert typed_names() == HOMES


def test_names_are_sorted() -> None:
    assert list(HOMES) == sorted(HOMES)


def test_each_name_is_there() -> None:
    assert all(getattr(glow_mlir, name) is not None for name in HOMES)
    assert getattr(glow_mlir, "Fail") is glow_mlir.GlowError
    assert glow_mlir.backend.__name__ == "glow_mlir.backend"


def test_star_takes_the_public_names() -> None:
    code = "from glow_mlir import *\nprint(*sorted(name for name in dir() if not name.startswith('__')))"
    assert run_python(code).split() == sorted(HOMES)


def test_completion_has_the_public_names() -> None:
    assert set(dir(glow_mlir)) == {*HOMES, "__version__"}
