"""`cse` does what xDSL's pass of this name does."""

from __future__ import annotations

from pathlib import Path

import pytest
from filecheck_runner import filecheck_tests
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from glow_mlir.errors import GlowError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import module_text, parse_unverified
from glow_mlir.transforms.graph.cse import CsePass

FILES = [path for path in filecheck_tests() if "invalid" not in path.name and "error" not in path.name]


def modules_of(path_text: str) -> list[str]:
    """The modules of a test that can be read."""
    found: list[str] = []
    for text in path_text.split("// -----\n"):
        try:
            parse_unverified(text, new_context())
        except GlowError:  # What the test is about.
            continue
        found.append(text)
    return found


def test_most_modules_are_compared() -> None:
    assert sum(len(modules_of(path.read_text("utf-8"))) for path in FILES) > 400


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_a_module_becomes_what_it_is_by_xdsl(path: Path) -> None:
    for text in modules_of(path.read_text("utf-8")):
        context = new_context()
        own, other = (parse_unverified(text, context) for _ in range(2))
        CsePass().apply(context, own)
        CommonSubexpressionElimination().apply(context, other)
        assert module_text(own, generic=True) == module_text(other, generic=True)
