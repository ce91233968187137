"""Trained from the same weights on the same samples in the same order, a model has the losses that PyTorch has."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

STEPS = 100


@pytest.mark.extra
@pytest.mark.parametrize("name", ["digits", "recommender"])
def test_losses_in_f64_are_those_of_pytorch(name: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    benchmark: Any = import_module("training_against_pytorch")
    task = benchmark.TASKS[name]
    expected = benchmark.exact(task, STEPS)
    assert expected[-10:].mean() < 0.95 * expected[:10].mean()
    assert benchmark.apart(benchmark.ours_exact(task, STEPS), expected) <= benchmark.EXACT
