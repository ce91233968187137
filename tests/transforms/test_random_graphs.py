"""Every pass keeps the meaning of random graphs: the interpreter runs the module before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from breadth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layout_steps import (
    LAYOUT_STEPS,
    TRANSPOSE_STEPS,
    step_casts,
    step_clipped_window,
    step_dealt_conv,
    step_gather,
    step_limits,
    step_moved_cast,
    step_moved_clip,
    step_padded_window,
    step_parts,
    step_reshaped,
    step_splats,
)
from quantized_steps import QUANTIZED_STEPS
from random_graphs import (
    STEPS,
    Graph,
    Step,
    graphs,
    step_activation,
    step_arithmetic,
    step_attention,
    step_batch_norm,
    step_conv_of_volumes,
    step_exponentials,
    step_linear_conv,
    step_linear_matmul,
    step_normalize,
    step_padded_summands,
    step_power,
    step_projections,
    step_range,
    step_rows,
    step_sandwich,
    step_small_conv,
    step_standardize,
    step_transpose,
    step_twice,
)
from validation import assert_text_round_trips, validate

import glow_mlir.constants.weights
from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.pipelines import ALLOCATED
from glow_mlir.ir.context import new_context
from glow_mlir.ir.universe import PASSES

SLOW: dict[str, Any] = {"suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
ROUNDING = {"rtol": 2e-4, "atol": 2e-4}
"""For passes that reassociate or compute in other steps; the others change no bit."""

EXACT_HIGH = (
    "assign-target",
    "canonicalize",
    "cse",
    "dce",
    "deduplicate",
    "equalize-channels",
    "fold-constants",
    "fold-quantization",
    "gather-to-slice",
    "lower-quantization",
    "merge-pads",
    "merge-reductions",
    "raise-clips",
    "raise-gathers",
    "rematerialize",
    "remove-identity-clips",
    "remove-unused-storage",
    "schedule",
    "shrink-splats",
    "sink-clips",
    "sink-conversions",
    "sink-reshapes",
    "sink-transposes",
)
ROUNDING_HIGH = (
    "expand-powers",
    "flatten-convolutions",
    "fold-dilated-convolutions",
    "fold-into-weights",
    "fold-transposes-into-matmul",
    "fold-transposes-into-pools",
    "lower",
    "merge-arithmetic",
    "merge-matmuls",
    "recognize-activations",
    "recognize-attention",
    "recognize-grouped-products",
    "recognize-normalization",
    "recognize-softmax",
    "simplify-convolutions",
    "split-windows",
)
LOW = (
    "decompose-data-movement",
    "eliminate-copies",
    "eliminate-dead-stores",
    "share-buffers",
    "stack",
    "fuse-epilogues",
    "fuse-prologues",
    "tile-lines",
    "shorten-lifetimes",
    "remove-unused-storage",
    "select",
    "parameterize-scalars",
    "canonicalize",
    "cse",
)
CONVERT = "glow-high-to-glow-low,verify-low"
ALLOCATE = "shorten-lifetimes,verify-low,allocate,verify-allocated"
ELSEWHERE = {
    "bin-trees",  # test_kernels_trees.py
    "check-races",  # test_cuda_operators.py
    "fold-into-trees",  # test_fold_into_trees.py
    "apply-patterns",
    "assign-devices",
    "collapse-layers",  # test_equal_layers.py
    "count-trips",
    "convert-precision",
    "differentiate",
    "expand-layers",  # test_equal_layers.py
    "glow-low-to-scf",
    "hoist-from-loops",
    "instrument-debug",
    "insert-events",
    "insert-transfers",
    "instrument-profile",
    "partition",
    "place-operators",
    "quantize",
    "raise-alignments",
    "scf-to-llvm",
    "quantize-weights",
    "shard-tables",
    "simplify-control-flow",
    "sink-from-loops",
    "split-batch",
    "split-products",
    "unroll-loops",
    "verify-host-program",
    "verify-lowered",
    "verify-partitioned",
    "verify-selected",
    "verify-structured",
}
"""
Passes whose result the interpreter does not run, that change nothing and need a backend's support, that add outputs or
round and have their own test, or that concern branches and loops, which test_random_regions.py has, or devices, which
tests/partitioning/test_random_partitions.py has.
"""

OF_INTEGERS = ("fold-quantization", "lower-quantization")
"""Passes on codes, which change no bit where the numbers that codes stand for are exact."""

FAVOURITES: dict[str, tuple[Step, ...]] = {
    "canonicalize": (step_limits, step_casts, step_parts, step_gather),
    "deduplicate": (step_twice,),
    "expand-powers": (step_power,),
    "flatten-convolutions": (step_conv_of_volumes,),
    "fold-dilated-convolutions": (step_dealt_conv,),
    "fold-into-weights": (step_linear_conv, step_linear_matmul, step_batch_norm, step_arithmetic),
    "fold-quantization": QUANTIZED_STEPS,
    "gather-to-slice": (step_gather,),
    "lower": (step_batch_norm, step_normalize),
    "lower-quantization": QUANTIZED_STEPS,
    "merge-arithmetic": (step_arithmetic, step_batch_norm),
    "merge-matmuls": (step_projections, step_rows),
    "merge-pads": (step_padded_window, step_padded_summands),
    "merge-reductions": (step_range,),
    "raise-clips": (step_moved_clip,),
    "recognize-activations": (step_activation,),
    "recognize-attention": (step_attention,),
    "recognize-normalization": (step_standardize,),
    "recognize-softmax": (step_exponentials,),
    "remove-identity-clips": (step_limits,),
    "sink-clips": (step_clipped_window,),
    "sink-conversions": (step_moved_cast,),
    "shrink-splats": (step_splats,),
    "simplify-convolutions": (step_small_conv,),
    "sink-reshapes": (step_reshaped, step_limits),
    "sink-transposes": (step_sandwich, step_transpose, *TRANSPOSE_STEPS),
}
"""Steps that give a pass something to do, and that chance gives too rarely."""

CONTEXT = new_context()


@pytest.fixture(autouse=True, scope="module")
def all_deferred() -> Iterator[None]:
    """Weights that passes make are deferred, and known by their recipes, however small they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glow_mlir.constants.weights, "MIN_DEFERRED", 0)
        yield


def test_every_pass_is_validated() -> None:
    low = (spec.split("{")[0] for spec in (*LOW, *CONVERT.split(","), *ALLOCATE.split(",")))
    tried = {*EXACT_HIGH, *ROUNDING_HIGH, *low}
    missing = set(PASSES) - ELSEWHERE - tried
    assert not missing, f"add {missing} to one of the lists above"


@pytest.mark.parametrize("name", EXACT_HIGH)
@settings(max_examples=examples(15), **SLOW)
@given(data=st.data())
def test_pass_on_graphs_changes_no_bit(name: str, data: st.DataObject) -> None:
    favourites = FAVOURITES.get(name, ())
    # A change of scale rounds once where its parts round several times, unless scales are powers of two.
    steps = QUANTIZED_STEPS if name in OF_INTEGERS else STEPS
    graph = data.draw(graphs(favourites, steps=steps))
    target = "{target=cortex-m4}" if name == "sink-clips" else ""
    validate(graph.module, f"assign-target{target},{name},{name}", graph.inputs, context=CONTEXT)


@pytest.mark.parametrize("name", ROUNDING_HIGH)
@settings(max_examples=examples(15), **SLOW)
@given(data=st.data())
def test_pass_on_graphs_changes_rounding_only(name: str, data: st.DataObject) -> None:
    graph = data.draw(graphs(FAVOURITES.get(name, ())))
    validate(graph.module, f"assign-target,{name},{name}", graph.inputs, context=CONTEXT, **ROUNDING)


@settings(max_examples=examples(25), **SLOW)
@given(graph=st.one_of(graphs(), graphs(LAYOUT_STEPS)), data=st.data())
def test_passes_on_graphs_in_any_order(graph: Graph, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(EXACT_HIGH + ROUNDING_HIGH), min_size=2, max_size=6))
    validate(graph.module, ",".join(("assign-target", *names)), graph.inputs, context=CONTEXT, **ROUNDING)


@settings(max_examples=examples(40), **SLOW)
@given(graph=graphs(), data=st.data())
def test_passes_on_instructions_in_any_order(graph: Graph, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(LOW), min_size=1, max_size=5))
    lowered = data.draw(st.sampled_from(["", "schedule,"]))
    # Small graphs meet in any real cache.
    pipeline = f"assign-target{{l2_bytes=300}},{lowered}{CONVERT},{','.join(names)},{ALLOCATE}"
    validate(graph.module, pipeline, graph.inputs, context=CONTEXT)
    assert_text_round_trips(graph.module, CONTEXT)


@settings(max_examples=examples(25), **SLOW)
@given(graph=graphs())
def test_the_ladder_down_to_memory(graph: Graph) -> None:
    """Each pass of each stage, and the text of the last."""
    for stage in get_backend("cpu").pipeline().until(ALLOCATED.name).stages:
        validate(graph.module, stage.passes(), graph.inputs, context=CONTEXT, **ROUNDING)
    assert_text_round_trips(graph.module, CONTEXT)
