"""Functions are walked in one way: whoever lists the operations of a block by himself forgets those in regions."""

from __future__ import annotations

import ast
from pathlib import Path

from checkout import ROOT, files, offenders, tree_of

ROOMS = (
    "analysis",
    "backends",
    "codegen",
    "conversion",
    "driver",
    "interpreter",
    "ir",
    "pictures",
    "rewriting",
    "transforms",
)
"""Rooms that work on functions."""

SCALAR_BODIES = "lists the scalar operations of an instruction, which are not part of the program"
GRAPHS = "asks for the dialect of the operations in one block, which are no function of ours"
LLVM_CODE = "lists the functions of machine code, or their instructions, which have no regions"

EXEMPT = {
    "glow_mlir/ir/graph_regions.py": GRAPHS,
    "glow_mlir/codegen/selection/acceptance.py": SCALAR_BODIES,
    "glow_mlir/codegen/glow_low_to_scf.py": LLVM_CODE,
    "glow_mlir/codegen/kernels/elements/elementwise.py": SCALAR_BODIES,
    "glow_mlir/codegen/kernels/recurrences/recurrent.py": SCALAR_BODIES,
    "glow_mlir/codegen/llvm/emit.py": LLVM_CODE,
    "glow_mlir/codegen/scalar_body.py": SCALAR_BODIES,
}
"""File → why it may list operations itself."""

PATHS = [path for path in files(".py") if path.relative_to(ROOT).parts[:2] in {("glow_mlir", room) for room in ROOMS}]


def listed_blocks(path: Path) -> list[str]:
    """Where a file lists the operations of a block of its own accord: `block.ops`, `op.block.ops`, `op.body.walk()`."""
    found: list[str] = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute) and node.attr in ("ops", "walk"):
            owner = ast.unparse(node.value)
            of_block = owner.rpartition(".")[2] in ("block", "body", "function", "func")
            # The operations of a module are storage and functions, and have no order.
            if of_block and owner not in ("module.body.block", "self.module.body.block", "op.body.block", "body"):
                found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    return found


def test_functions_are_walked_by_the_helper() -> None:
    found = offenders(PATHS, listed_blocks)
    assert not {name: blocks for name, blocks in found.items() if name not in EXEMPT}, "use glow_mlir.ir.traversal"
    assert not EXEMPT.keys() - found.keys(), "these need no exemption"


def test_the_check_finds_a_walk(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("for op in function.block.ops: pass\nfor op in function.walk(): pass\n")
    assert len(listed_blocks(tmp_path / "a.py")) == 2
