"""Gradients of random networks are slopes, and those of PyTorch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from breadth import long_ones
from network_gradients import check_network, double_network, sloped_network
from slopes import assert_same


@pytest.mark.parametrize("first", long_ones(range(0, 40, 4), lambda first: first > 0))
def test_gradients_are_slopes(first: int) -> None:
    """Of four networks, some of which may be at a corner in the direction that is drawn."""
    assert sum(check_network(seed) for seed in range(first, first + 4)) >= 2


@pytest.mark.extra
@pytest.mark.parametrize("seed", range(60))
def test_gradients_are_those_of_pytorch(seed: int) -> None:
    pytest.importorskip("torch")
    pytorch: Any = import_module("pytorch_graph")
    model = double_network(seed)
    case, sources = sloped_network(model, seed)
    assert_same(case.gradients(sources), pytorch.gradients(model, sources, case.weights[0]))
