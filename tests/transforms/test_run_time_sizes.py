"""Passes on sizes that are known at run time only: they keep the meaning for all of them, or say what they miss."""

from __future__ import annotations

from pathlib import Path

import pytest
from symbolic_modules import SYMBOLIC_MODULES, VALUES, inputs_of
from validation import Results, assert_same_results, assert_text_round_trips, run_all
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.pipelines import parse_pipeline
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.run_time_sizes import apply_pass
from glow_mlir.ir.text import parse_module, verify_module
from glow_mlir.ir.universe import PASSES
from glow_mlir.tools.glow_opt import main

OF_XDSL = ("canonicalize", "cse", "dce")
LOW = (
    "allocate",
    "decompose-data-movement",
    "eliminate-copies",
    "eliminate-dead-stores",
    "fuse-epilogues",
    "fuse-prologues",
    "glow-low-to-llvm",
    "select",
    "share-buffers",
    "shorten-lifetimes",
    "stack",
    "tile-lines",
    "verify-allocated",
    "verify-low",
    "verify-selected",
)
"""Passes that only concern instructions."""

REFUSING = ("glow-high-to-glow-low",)
"""Passes that need numbers for all sizes."""

HIGH = [name for name in (*PASSES, *OF_XDSL) if name not in (*LOW, *REFUSING)]

SPELLED = {
    "apply-patterns": "apply-patterns{name=cancel-transposes}",
    "assign-target": "assign-target{override=true target=neon}",
    "verify-lowered": "lower,verify-lowered",
}
"""Pass → how it is run, where that is not by its name alone."""


def parsed(given: str, context: Context) -> ModuleOp:
    """One of the modules, for a machine."""
    module = parse_module(SYMBOLIC_MODULES[given], context, f"{given}.mlir")
    run(module, "assign-target{target=avx2}", context)
    return module


def run(module: ModuleOp, passes: str, context: Context) -> None:
    """Run passes, and check after each that the module is valid."""
    for item in parse_pipeline(passes).passes:
        apply_pass(item, context, module)
        verify_module(module)


def results(module: ModuleOp) -> list[Results]:
    """What a module computes for each choice of the symbols."""
    return [run_all(module, inputs_of(module, symbols)) for symbols in VALUES]


def assert_same(module: ModuleOp, expected: list[Results]) -> None:
    """Check that a module computes what is expected, but for the rounding of passes that reassociate."""
    for found, wanted in zip(results(module), expected, strict=True):
        assert_same_results(found, wanted, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("given", SYMBOLIC_MODULES)
@pytest.mark.parametrize("name", HIGH)
def test_a_pass_on_graphs_keeps_the_meaning_for_all_sizes(name: str, given: str) -> None:
    context = new_context()
    module = parsed(given, context)
    expected = results(module)
    run(module, SPELLED.get(name, name), context)
    assert_text_round_trips(module, context)
    assert_same(module, expected)


@pytest.mark.parametrize("given", SYMBOLIC_MODULES)
def test_the_ladder_of_a_backend_keeps_the_meaning_for_all_sizes(given: str) -> None:
    context = new_context()
    module = parsed(given, context)
    expected = results(module)
    run(module, str(get_backend("cpu").pipeline().until("scheduled")), context)
    assert_same(module, expected)


@pytest.mark.parametrize("name", REFUSING)
def test_a_pass_that_needs_numbers_says_where_it_misses_one(name: str) -> None:
    context = new_context()
    module = parsed("perceptron", context)
    with pytest.raises(UnsupportedError, match=f"^perceptron.mlir:4:1: pass '{name}' needs numbers"):
        run(module, name, context)


def test_glow_opt_names_file_and_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "perceptron.mlir"
    path.write_text(SYMBOLIC_MODULES["perceptron"])
    assert main([str(path), "-p", "assign-target{target=avx2},glow-high-to-glow-low"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{path}:")
    assert "pass 'glow-high-to-glow-low' needs numbers, and the size batch is known at run time only" in line
