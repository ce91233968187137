"""The memory of whole models: near what their graphs need at least, and never more than in Glow's orders."""

from __future__ import annotations

import onnx
import pytest
from breadth import long_ones
from memory_bound import memory_bound
from models import LARGE, LIGHT, model_named
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from glow_mlir.analysis.activations import program_of
from glow_mlir.analysis.program import child_size_order, peak, topological_order
from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.rewriting import high_functions, low_functions

ARENA_RATIO = 1.02
"""Extent of the activations, relative to the bound."""

MODELS = (*LIGHT, "mobilenet_v2", "bert_encoder")


def stages_of(model: onnx.ModelProto, accuracy: str) -> tuple[ModuleOp, ModuleOp, ModuleOp]:
    """A model when lowered, scheduled and allocated."""
    compilation = Compilation(import_model(model), fields={"accuracy": accuracy})
    lowered = compilation.run("lowered").clone()
    scheduled = compilation.run("scheduled").clone()
    return lowered, scheduled, compilation.run("allocated")


@pytest.fixture(scope="module", params=long_ones(MODELS, LARGE.__contains__))
def found(request: pytest.FixtureRequest) -> tuple[str, ModuleOp, ModuleOp, ModuleOp]:
    """The name of a model, and its stages."""
    return request.param, *stages_of(model_named(request.param), "strict")


SCALED = {"bert_encoder": 64 * 32 * 4}
"""Bytes of scaled queries of a head: the accuracy `strict` does not scale the weights that queries are made of."""


def arena_and_bound(scheduled: ModuleOp, allocated: ModuleOp) -> tuple[int, int]:
    """The bytes of the activations, and those that the graph needs."""
    (function,) = low_functions(allocated)
    arena = function.properties["activations"]
    assert isinstance(arena, IntegerAttr)
    return arena.value.data, max(map(memory_bound, high_functions(scheduled)))


def test_arena_is_near_what_the_graph_needs(found: tuple[str, ModuleOp, ModuleOp, ModuleOp]) -> None:
    name, _, scheduled, allocated = found
    size, bound = arena_and_bound(scheduled, allocated)
    print(f"\n{name}: {size} bytes, the graph needs {bound}: {size / bound:.4f}")
    assert size <= ARENA_RATIO * bound + SCALED.get(name, 0)


@pytest.mark.parametrize("name", long_ones(MODELS, LARGE.__contains__))
def test_fast_kernels_take_at_most_the_cache_in_addition(name: str) -> None:
    """Those of the accuracy `default` transform their operands block by block, in scratch that the cache holds."""
    _, scheduled, allocated = stages_of(model_named(name), "default")
    size, bound = arena_and_bound(scheduled, allocated)
    print(f"\n{name}: {size} bytes, the graph needs {bound}: {size - bound} more")
    assert size <= ARENA_RATIO * bound + host_target().l2_bytes


def test_activations_take_no_more_than_is_predicted(found: tuple[str, ModuleOp, ModuleOp, ModuleOp]) -> None:
    """The model of memory by which operators are ordered leaves alignment out, and passes that need less memory."""
    name, _, scheduled, allocated = found
    size, _ = arena_and_bound(scheduled, allocated)
    programs = [program_of(function.block) for function in high_functions(scheduled)]
    predicted = max(peak(program, range(len(program.steps))) for program in programs)
    print(f"\n{name}: {size} bytes, predicted are {predicted}: {size / predicted:.4f}")
    assert size <= ARENA_RATIO * predicted + SCALED.get(name, 0)


def test_order_is_never_worse_than_glows(found: tuple[str, ModuleOp, ModuleOp, ModuleOp]) -> None:
    name, lowered, scheduled, _ = found
    for before, after in zip(high_functions(lowered), high_functions(scheduled), strict=True):
        program, ordered = program_of(before.block), program_of(after.block)
        mine = peak(ordered, range(len(ordered.steps)))
        child_size = peak(program, child_size_order(program))
        topological = peak(program, topological_order(program))
        print(f"\n{name}: {mine} bytes live; Glow's orders: {child_size} by child size, {topological} topological")
        assert mine <= min(child_size, topological)
