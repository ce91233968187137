"""Random graphs as machine code give what the interpreter gives: the whole ladder, with views, stacks and epilogues."""

from __future__ import annotations

from typing import Any

import numpy as np
from breadth import examples
from execute import compile_module
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from quantized_steps import QUANTIZED_STEPS
from random_graphs import (
    JUMPING,
    STEPS,
    Graph,
    Step,
    graphs,
    step_concat,
    step_conv,
    step_linear_conv,
    step_matmul,
    step_normalize,
    step_pool,
    step_reduce,
    step_smooth,
    step_unary,
)

from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function
from glow_mlir.options.declaration import declared
from glow_mlir.options.policy import Policy

SLOW: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
SMOOTH = tuple(step for step in STEPS if step not in (*JUMPING, step_unary, step_normalize))
"""Steps that keep small differences small."""
FUSING: tuple[Step, ...] = (
    step_conv,
    step_smooth,
    step_matmul,
    step_smooth,
    step_reduce,
    step_linear_conv,
    step_concat,
)
"""Steps that give epilogues and prologues."""


def check(graph: Graph) -> None:
    """Compare machine code with the interpreter."""
    expected = run_function(graph.module.clone(), graph.inputs)
    actual = compile_module(graph.module.clone()).run(graph.inputs)
    for name, wanted in expected.items():
        scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0))
        np.testing.assert_allclose(actual[name], wanted, rtol=1e-3, atol=1e-4 * scale, err_msg=name)


@settings(max_examples=examples(25), **SLOW)
@given(graph=graphs(steps=SMOOTH))
def test_graphs(graph: Graph) -> None:
    check(graph)


@settings(max_examples=examples(40), **SLOW)
@given(graph=graphs(FUSING, max_steps=12, steps=(*FUSING, step_pool)))
def test_graphs_that_fuse(graph: Graph) -> None:
    check(graph)


@settings(max_examples=examples(15), **SLOW)
@given(graph=graphs(steps=QUANTIZED_STEPS), requantization=st.sampled_from(declared(Policy)["requantization"].words))
def test_graphs_of_codes_give_the_same_bits(graph: Graph, requantization: str) -> None:
    """From the operators on codes that the graph became, which round in other places than it does."""
    pipeline = get_backend("cpu").pipeline().with_options("assign-target", requantization=requantization)
    Compilation(graph.module, pipeline=pipeline).run(until="optimized")
    expected = run_function(graph.module.clone(), graph.inputs)
    actual = compile_module(graph.module.clone()).run(graph.inputs)
    for name, wanted in expected.items():
        np.testing.assert_array_equal(actual[name], wanted, err_msg=name)
