"""PyTorch's own database of operators: what this backend makes of it, on some samples of each entry."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import pytest

pytest.importorskip("torch")

pytestmark = [pytest.mark.extra, pytest.mark.long]

BEGINNING = "it counts from the beginning of memory, in front of what is given"

COMPLEX = "complex numbers are not supported"

REFUSED: Mapping[str, str] = {
    "as_strided": BEGINNING,
    "as_strided.partial_views": BEGINNING,
    "cdouble": COMPLEX,
    "cfloat": COMPLEX,
    "chalf": COMPLEX,
    "fft.fft": COMPLEX,
    "fft.irfft": COMPLEX,
    "fft.irfft2": COMPLEX,
    "fft.irfftn": COMPLEX,
    "fft.rfft": COMPLEX,
    "fft.rfft2": COMPLEX,
    "fft.rfftn": COMPLEX,
}
"""Entry of core ATen → why samples of it are refused."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each entry, of which a run that leaves out what is long does not load the database."""
    if "op" in metafunc.fixturenames:
        metafunc.parametrize("op", [] if metafunc.config.getoption("--short") else all_entries())


def all_entries() -> list[Any]:
    """The entries by name."""
    from operator_outcomes import entries, name_of

    return [pytest.param(op, id=name_of(op)) for op in entries()]


def test_entry(op: Any) -> None:
    """
    Results are PyTorch's; they are refused where that is known, and where it is not core ATen.

    A part of the samples is run; `tests/operator_database.py` runs all.
    """
    import torch
    from operator_outcomes import Extent, name_of, outcomes, reasons, verdict

    extent = Extent(most=2, seconds=5, gradients=(torch.float32,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = outcomes(op, extent)
    expected = "refused" if name_of(op) in REFUSED else "passed"
    lines = "\n".join(reasons(found, ("failed", "refused")))
    assert verdict(found) in {expected, *({"outside", "untraced"} if expected == "passed" else ())}, lines


def test_refusals_are_of_entries() -> None:
    assert set(REFUSED) <= {item.id for item in all_entries()}
