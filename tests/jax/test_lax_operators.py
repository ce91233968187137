"""Operators of `jax.lax` compiled by `from_jax`: those of a few cases of `lax_sweep.py`, or of all its operators."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

pytestmark = pytest.mark.extra

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")
lax_sweep: Any = pytest.importorskip("lax_sweep")

CHOSEN = (
    "acos(complex64[3])",
    "acosh(complex64[3])",
    "asin(complex64[3])",
    "asinh(complex64[3])",
    "atan(complex64[3])",
    "atanh(complex64[3])",
    "conv bool (2, 3) (2, 3) 0D groups 1 1",
    "conv patches bool (2, 3, 5, 6)",
    "dot bool (7, 5) (5,) (([1], [0]), ([], []))",
    "linalg complex64 (4, 4) cholesky",
    "linalg complex64 (4, 4) lu",
    "linalg complex64 (4, 4) (4, 3) triangular_solve True True True False",
    "special float32 (4, 5) (4, 5) zeta",
    "special float32 (4, 5) (4, 5) polygamma",
)
"""Cases of complex numbers and matrices, truth values and limits, which other tests leave out."""


def failures(cases: Sequence[Any]) -> list[str]:
    """The cases that do not pass, and why."""
    found = lax_sweep.outcomes(cases)
    return [f"{case.name}: {' '.join(why)}" for case, why in zip(cases, found, strict=True) if why[0] != "passed"]


def test_chosen_cases_equal_jax() -> None:
    with jax.enable_x64(True):
        known = {case.name: case for case in lax_sweep.all_cases()}
        assert not failures([known[name] for name in CHOSEN])


@pytest.mark.long
def test_operators_equal_jax() -> None:
    """Nine of ten cases pass, and none is wrong."""
    with jax.enable_x64(True):
        cases = lax_sweep.sampled(lax_sweep.all_cases(), 2)
        found = [failures(batch) for batch in lax_sweep.batches(cases, 8)]
    texts = [text for group in found for text in group]
    assert len(texts) <= 0.1 * len(cases)
    assert not [text for text in texts if ": wrong" in text]
