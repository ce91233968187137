"""The comparison of machine code between revisions: its forms, what it finds, and what it says of times."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from checkout import ROOT
from object_bytes import TARGETS, Compiling, Pair, Timed, compared, report

from contest.figures import spread
from contest.forms import BOUNDED, Form, forms
from contest.objects import file_name


def test_forms_and_targets_are_many_and_have_names_of_their_own() -> None:
    assert len(forms()) * len(TARGETS) >= 300
    assert len({file_name(form.name) for form in forms()}) == len(forms())
    assert {form.name for form in forms()} >= {*BOUNDED, *(f"{name}, N" for name in BOUNDED)}


@pytest.mark.parametrize("form", forms(), ids=lambda form: form.name)
def test_forms_are_models(form: Form) -> None:
    onnx.shape_inference.infer_shapes(form.model(), check_type=True, strict_mode=not form.domain)
    assert list(form.feeds()) == [value.name for value in form.model().graph.input]


@pytest.mark.long
def test_a_version_compiles_to_the_same_bytes_as_itself(tmp_path: Path) -> None:
    chosen = [form for form in forms() if form.name in ("Relu", "Relu, N", "RoiAlign")]
    names = [form.name for form in chosen]
    versions = [Compiling(ROOT, tmp_path / name, names, ("avx2", "cortex-m55")) for name in ("before", "after")]
    pairs = compared(versions[0], versions[1], chosen, ("avx2", "cortex-m55"))
    assert report(pairs) == ["6 object files: 6 equal, 0 differ"]


def test_what_differs_is_told() -> None:
    form = forms()[0]
    codes = [(b"a", b"a"), (b"a", b"bcd"), (None, b"a"), (b"a", None), (None, None)]
    pairs = [Pair(form, "avx2", before, after) for before, after in codes]
    assert [pair.verdict() for pair in pairs] == ["equal", "1 → 3 bytes", "compiles now", "COMPILES NO MORE", "no code"]
    first, *lines = report(pairs)
    assert first == "5 object files: 1 equal, 3 differ, 1 for operators that a target does not support"
    assert lines == [f"{form.name} for avx2: {pair.verdict()}" for pair in pairs[1:4]]


@pytest.mark.parametrize(
    ("ratios", "verdict"), [((1.1, 1.2), "SLOWER"), ((0.8, 0.9), "faster"), ((0.97, 1.1), "within the noise")]
)
def test_only_what_exceeds_the_noise_counts(ratios: tuple[float, float], verdict: str) -> None:
    assert Timed(spread(ratios), spread([0.98, 1.02])).verdict() == verdict
