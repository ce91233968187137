"""Random models of codes, bounds, counts and loops, their bundles and their pickles: a few seeds of each fuzzer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bundle_cases import check_damaged as check_damaged_bundle
from bundle_cases import check_emulated, check_host, machine_for, settled
from drawn_models import Case, Drawn, Value
from model_cases import KINDS, check_model
from onnxruntime_cases import WrongResultError, check_case, compare, onnxruntime_session, results_of
from pickle_cases import check_copies
from pickle_cases import check_damaged as check_damaged_pickle

from glow_mlir.errors import ExecutionError, GlowError

SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_model_agrees_with_onnxruntime(kind: str, seed: int) -> None:
    check_model(kind, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_models_follow_from_their_seed(kind: str) -> None:
    one, other = (KINDS[kind](5) for _ in range(2))
    assert one.model == other.model
    for call, again in zip(one.calls, other.calls, strict=True):
        np.testing.assert_equal(call, again)


@pytest.mark.parametrize("seed", range(3))
def test_bundles_are_what_the_session_is(seed: int) -> None:
    check_host(seed)


@pytest.mark.extra
@pytest.mark.parametrize("seed", range(3))
def test_bundles_run_on_an_emulated_processor(seed: int) -> None:
    machine_for("neon")
    check_emulated(seed)


def test_damaged_bundles_are_refused_or_right() -> None:
    loaded = [check_damaged_bundle(seed) for seed in range(15)]
    assert not all(loaded)


@pytest.mark.parametrize("seed", range(3))
def test_copies_are_what_the_session_is(seed: int) -> None:
    check_copies(seed)


def test_damaged_pickles_are_refused_or_sessions() -> None:
    made = [check_damaged_pickle(seed) for seed in range(10)]
    assert any(made)
    assert not all(made)


# ---- the comparison itself -------------------------------------------------------------------------------------


def rounded(numbers: list[float]) -> Case:
    """Codes of a scale of 0.1 of numbers."""
    g = Drawn(np.random.default_rng(0))
    y = g.node("QuantizeLinear", "x", g.weight(0.1), g.weight(0, "int8"))
    model = g.model([Value("x", (len(numbers),))], [Value(y, (len(numbers),), "int8")])
    return Case(model, [{"x": np.array(numbers, np.float32)}], codes=True)


def right(case: Case) -> list[np.ndarray]:
    """What onnxruntime gives."""
    return results_of(onnxruntime_session(case.model, optimized=False), case.calls[0])


def test_a_step_of_a_code_counts_in_the_middle_between_two_alone() -> None:
    middle, clear = rounded([0.05000001, 0.32]), rounded([0.06, 0.32])
    (wanted,) = right(middle)
    assert compare(middle, [[wanted]]) == 0
    for step in (-1, 1):
        found = wanted + np.array([step, 0], np.int8)
        if 0 <= found[0] <= 1:
            assert compare(middle, [[found]]) == 1
        else:
            with pytest.raises(WrongResultError):
                compare(middle, [[found]])
    with pytest.raises(WrongResultError, match=r"\[0\] is 0, not 1.*\(1 of 2 differ\)"):
        compare(clear, [[right(clear)[0] - np.array([1, 0], np.int8)]])


def test_types_and_shapes_have_to_agree() -> None:
    case = rounded([0.06, 0.32])
    (wanted,) = right(case)
    for other in (wanted.astype(np.uint8), wanted[:, np.newaxis], wanted[:1]):
        with pytest.raises(WrongResultError, match=r"int8\[2\]"):
            compare(case, [[other]])


def halves(rows: int) -> Case:
    """Two parts of so many rows, which have to be equal."""
    g = Drawn(np.random.default_rng(0))
    names = g.several("Split", ["x"], 2, axis=0)
    model = g.model([Value("x", ("N",))], [Value(name, ("*",)) for name in names], 13)
    return Case(model, [{"x": np.ones(rows, np.float32)}], may_fail=True)


def test_a_call_fails_where_onnxruntime_fails() -> None:
    check_case(halves(5))
    check_case(halves(4))
    with pytest.raises(WrongResultError, match=r"does not fail as in onnxruntime: .*split evenly"):
        compare(halves(5), [[np.ones(3, np.float32), np.ones(2, np.float32)]])
    with pytest.raises(ExecutionError, match="no parts"):
        compare(halves(4), [ExecutionError("no parts")])
    with pytest.raises(GlowError, match="equal parts"):
        check_case(replace(halves(5), may_fail=False))


@pytest.mark.parametrize("kind", ["codes", "counts"])
def test_some_of_the_models_take_the_hard_way(kind: str) -> None:
    """Parameters of codes come from the call, or calls fail; most models are without."""
    cases = [KINDS[kind](seed) for seed in range(60)]
    hard = [case for case in cases if case.may_fail or (kind == "codes" and len(case.calls[0]) > 1)]
    assert 3 < len(hard) < 40


def test_settled_models_take_no_sizes() -> None:
    for seed in range(8):
        case = settled(seed)
        assert all(least == most for least, most in case.dimensions.values())
        assert len(case.calls) == 1
