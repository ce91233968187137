"""Passes on sizes that are known at run time only: they keep the meaning for all of them, or say what they miss."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from emitted import TARGETS
from symbolic_modules import SYMBOLIC_MODULES, VALUES, at_largest, inputs_of, t
from validation import Results, assert_same_results, assert_text_round_trips, run_all
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.backends.interface import get_backend
from glow_mlir.codegen.build import build_artifact
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.driver.pipelines import parse_pipeline
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.run_time_sizes import apply_pass
from glow_mlir.ir.text import parse_module, verify_module
from glow_mlir.ir.universe import PASSES
from glow_mlir.runtime import machine_code
from glow_mlir.tools.glow_opt import main

OF_XDSL = ("canonicalize", "cse", "dce")
LOW = (
    "allocate",
    "decompose-data-movement",
    "eliminate-copies",
    "eliminate-dead-stores",
    "fuse-epilogues",
    "fuse-prologues",
    "share-buffers",
    "shorten-lifetimes",
    "stack",
    "tile-lines",
    "verify-allocated",
    "verify-low",
)
"""Passes that only concern instructions."""

SELECTED = (
    "check-races",
    "glow-low-to-scf",
    "raise-alignments",
    "scf-to-llvm",
    "select",
    "verify-selected",
    "verify-structured",
)
"""Passes that have to do with kernels, which take numbers alone, and with the code that these become."""

OF_FILES = ("quantize",)
"""Passes that need a file about one graph, whose sizes are numbers."""

OF_DEVICES = (
    "assign-devices",
    "insert-events",
    "insert-transfers",
    "partition",
    "place-operators",
    "verify-host-program",
    "verify-partitioned",
)
"""Passes of modules for several devices, whose sizes are numbers."""

HIGH = [name for name in (*PASSES, *OF_XDSL) if name not in (*LOW, *SELECTED, *OF_FILES, *OF_DEVICES)]

REASSOCIATING = {"rtol": 2e-4, "atol": 2e-4}
NARROW = {"rtol": 2e-2, "atol": 1e-1}
TOLERANCES = {"convert-precision": NARROW}
"""Pass → how far results may be off, where that is more than what passes that reassociate do."""

SPELLED = {
    "apply-patterns": "apply-patterns{name=cancel-transposes}",
    "assign-target": "assign-target{override=true target=neon}",
    "verify-allocated": "allocate,verify-allocated",
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


def assert_same(module: ModuleOp, expected: list[Results], name: str = "") -> None:
    """Check that a module computes what is expected, but for the rounding of the pass of that name."""
    for found, wanted in zip(results(module), expected, strict=True):
        assert_same_results(found, wanted, **TOLERANCES.get(name, REASSOCIATING))


@pytest.mark.parametrize("given", SYMBOLIC_MODULES)
@pytest.mark.parametrize("name", HIGH)
def test_a_pass_on_graphs_keeps_the_meaning_for_all_sizes(name: str, given: str) -> None:
    context = new_context()
    module = parsed(given, context)
    expected = results(module)
    run(module, SPELLED.get(name, name), context)
    assert_text_round_trips(module, context)
    assert_same(module, expected, name)


@pytest.mark.parametrize("given", SYMBOLIC_MODULES)
def test_the_ladder_of_a_backend_keeps_the_meaning_for_all_sizes(given: str) -> None:
    context = new_context()
    module = parsed(given, context)
    expected = results(module)
    run(module, str(get_backend("cpu").pipeline().until("scheduled")), context)
    assert_same(module, expected)


@pytest.mark.parametrize("given", SYMBOLIC_MODULES)
@pytest.mark.parametrize("name", [*LOW, *OF_XDSL])
def test_a_pass_on_instructions_keeps_the_meaning_for_all_sizes(name: str, given: str) -> None:
    context = new_context()
    module = parsed(given, context)
    expected = results(module)
    run(module, "lower,schedule,glow-high-to-glow-low,verify-low", context)
    run(module, SPELLED.get(name, name), context)
    assert_text_round_trips(module, context)
    assert_same(module, expected)


@pytest.mark.parametrize("given", SYMBOLIC_MODULES)
def test_the_ladder_down_to_memory_keeps_the_meaning_for_all_sizes(given: str) -> None:
    context = new_context()
    module = parsed(given, context)
    expected = results(module)
    run(module, str(get_backend("cpu").pipeline().until("stacked")), context)
    run(module, "shorten-lifetimes,verify-low,allocate,verify-allocated", context)
    assert_same(module, expected)


def test_activations_take_what_they_do_where_symbols_are_largest() -> None:
    context = new_context()
    largest = parse_module(at_largest(SYMBOLIC_MODULES["sequences"]), context)
    run(largest, "assign-target{target=avx2}", context)
    sizes: list[int] = []
    for module in (parsed("sequences", context), largest):
        run(module, "lower,schedule,glow-high-to-glow-low,share-buffers,shorten-lifetimes,allocate", context)
        (function,) = low_functions(module)
        sizes.append(integer(function.properties["activations"]))
    assert sizes[0] == sizes[1] > 0


def test_what_makes_code_names_the_instruction_that_it_does_not_take() -> None:
    context = new_context()
    module = parse_module(WITHOUT_KERNEL, context, "given.mlir")
    run(module, "assign-target{target=avx2},glow-high-to-glow-low,allocate", context)
    place = r"^given\.mlir:3:3: no kernel takes .* as glow_low\.batch_normalization has"
    with pytest.raises(UnsupportedError, match=place):
        run(module, "select", context)


WITHOUT_KERNEL = f"""
glow_high.func @main(%x: {t("batch", 4)}, %s: {t(4)}) -> {t("batch", 4)} {{
  %0 = glow_high.batch_normalization %x, %s, %s, %s, %s : {t("batch", 4)}
  glow_high.return %0
}}
"""
"""An operator that no kernel takes before it is lowered."""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("given", SYMBOLIC_MODULES)
def test_machine_code_computes_for_all_sizes(given: str, target: str) -> None:
    context = new_context()
    module = parse_module(SYMBOLIC_MODULES[given], context, f"{given}.mlir")
    run(module, f"assign-target{{target={target}}}", context)
    expected = results(module)
    run(module, str(get_backend("cpu").pipeline().until("allocated")), context)
    inputs = [inputs_of(module, symbols) for symbols in VALUES]
    entry = machine_code.load(build_artifact(module, context), 1).entry()
    for arrays, wanted in zip(inputs, expected, strict=True):
        found = entry.run({name.removeprefix("main."): array for name, array in arrays.items()})
        named = {f"main.{name}": array for name, array in found.items()}
        assert_same_results({"main": named}, wanted, **REASSOCIATING)


def test_a_pass_that_needs_numbers_says_where_it_misses_one() -> None:
    context = new_context()
    module = parsed("perceptron", context)
    with pytest.raises(UnsupportedError, match=r"^perceptron\.mlir:4:1: pass 'tune' needs numbers, and the size batch"):
        apply_pass(NeedsNumbers(), context, module)


@dataclass(frozen=True)
class NeedsNumbers(ModulePass):
    """A pass that asks for the shapes of all values."""

    name = "tune"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            list(map(shape_of, inner.results))


def test_glow_opt_climbs_as_far_as_stages_take_symbols(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "perceptron.mlir"
    path.write_text(SYMBOLIC_MODULES["perceptron"])
    assert main([str(path), "--target", "avx2", "--stop-after", "stacked"]) == 0
    assert "glow_low.alloc : memref<?x8xf32, #glow.sizes<[batch], batch = 1 to 8>>" in capsys.readouterr().out
