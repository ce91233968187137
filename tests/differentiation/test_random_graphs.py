"""Gradients of random graphs, and gradients of these, are slopes."""

from __future__ import annotations

import breadth
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_graphs import Graph, graphs
from slopes import check_slopes, sloped
from xdsl.dialects.builtin import f64


@pytest.mark.parametrize("order", [1, 2])
@settings(max_examples=breadth.examples(60))
@given(graph=graphs(element=f64, has_state=False, max_steps=8), seed=st.integers(0, 1 << 16))
def test_gradients_are_slopes(order: int, graph: Graph, seed: int) -> None:
    assume(check_slopes(sloped(graph.module, seed, order), graph.inputs, seed))
