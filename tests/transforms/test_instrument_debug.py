"""The extra outputs of `instrument-debug` are the results that the graph computes, and change no other output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from breadth import examples
from hypothesis import HealthCheck, given, settings
from models import bert_encoder, random_inputs
from random_graphs import Graph, graphs
from validation import assert_text_round_trips, run_all, validate

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.glow_high.storage import PlaceholderOp
from glow_mlir.driver.pipelines import Stage, parse_pipeline
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.context import new_context
from glow_mlir.rewriting.saved_results import with_saved_results
from glow_mlir.transforms.instructions.instrument_debug import PREFIX

SLOW: dict[str, Any] = {"suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
CONTEXT = new_context()
LOW = "assign-target,glow-high-to-glow-low,verify-low,shorten-lifetimes"


@settings(max_examples=examples(25), **SLOW)
@given(graph=graphs())
def test_outputs_stay_and_memory_is_valid(graph: Graph) -> None:
    expected = run_all(graph.module, graph.inputs)["main"]
    for item in parse_pipeline(f"{LOW},instrument-debug,verify-low").passes:
        item.apply(CONTEXT, graph.module)
    found = run_all(graph.module, graph.inputs)["main"]
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    extra = {name for name in found if name.startswith("debug_")}
    assert set(found) - extra == set(expected)
    validate(graph.module, "assign-target,eliminate-copies,stack,shorten-lifetimes,verify-low,allocate", graph.inputs)
    assert_text_round_trips(graph.module, CONTEXT)


def test_values_are_those_of_the_operators() -> None:
    """Every operator's result, under the name of its node."""
    model = bert_encoder(layers=1, length=8)
    inputs = random_inputs(model, np.random.default_rng(0))
    module = import_model(model)
    saved, functions = with_saved_results(module)
    [layers] = functions.values()
    results = run_all(saved, inputs)["main"]
    expected: dict[str, list[np.ndarray]] = {}
    for output, (node, _) in layers.items():
        expected.setdefault(node, []).append(results[output])
    for item in parse_pipeline(f"{LOW},instrument-debug").passes:
        item.apply(CONTEXT, module)
    labels = {op.sym_name.data: op.public_name for op in module.body.block.ops if isinstance(op, PlaceholderOp)}
    values = {labels[name]: array for name, array in run_all(module, inputs)["main"].items()}
    kept = {name: array for name, array in values.items() if name.startswith(PREFIX)}
    compared = 0
    for name, array in kept.items():
        node = name.split(".", 3)[3]
        if node not in expected:
            continue  # A constant, which the graph does not save.
        compared += 1
        candidates = [wanted for wanted in expected[node] if wanted.shape == array.shape]
        assert any(np.array_equal(array, wanted) for wanted in candidates), name
    assert compared > 30


@pytest.mark.parametrize("only", ["*", "matmul"])
def test_machine_code_and_interpreter_show_the_same(only: str) -> None:
    model = bert_encoder(layers=1, length=8)
    inputs = random_inputs(model, np.random.default_rng(0))
    whole = get_backend("cpu").pipeline()
    code = whole.before("select", f'instrument-debug{{only="{only}"}}')
    graph = whole.until("stacked").then(Stage.of("instrumented", f'instrument-debug{{only="{only}"}}'))
    compiled = InferenceSession(model, pipeline=code, cache=False)
    reference = InferenceSession(model, backend="interpreter", pipeline=graph)
    names = [argument.name for argument in compiled.get_outputs()]
    assert names == [argument.name for argument in reference.get_outputs()]
    assert sum(name.startswith(PREFIX) for name in names) > 3
    assert only == "*" or all(".matmul." in name for name in names if name.startswith(PREFIX))
    for found, wanted in zip(compiled.run(None, inputs), reference.run(None, inputs), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
