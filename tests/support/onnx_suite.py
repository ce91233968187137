"""
ONNX's backend suite on the CPU backend: its tests of all categories, what each gives here, and what is expected of it.

A test passes, or the compiler refuses its model with one clean error, or the results miss the tolerances of the suite.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import onnx.backend.test
from checkout import ROOT

from glow_mlir import onnx_backend
from glow_mlir.errors import CompilerBugError, GlowError

FOLDER = ROOT / "tests" / "onnx_backend"
TIERS_FILE = FOLDER / "tiers.json"
FAILURES_FILE = FOLDER / "expected_failures.json"

PASSED, REFUSED, MISSED, RAW = "passed", "refused", "missed", "raw"
"""What a test may give; `RAW` is whatever is no clean error, and expected of none."""

TIERS = {"1": "must pass", "2": "wanted", "3": "out of scope"}

CATEGORIES = {
    "NodeModel": "node",
    "SimpleModel": "simple",
    "RealModel": "light",
    "PyTorchConvertedModel": "pytorch",
    "PyTorchOperatorModel": "pytorch",
}
"""The suite's names of its categories → ours."""

Outcome = tuple[str, str]
"""`PASSED`, `REFUSED` or `MISSED`, and the error in words without names, if there is one."""


class MissError(Exception):
    """Results that differ from those that the suite expects."""


class UncachedBackend(onnx_backend.GlowBackend):
    """The backend of `glow_mlir.onnx_backend`; each test compiles its own model."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> onnx_backend.GlowBackendRep:
        return super().prepare(model, device, cache=False, **kwargs)


class Suite(onnx.backend.test.BackendTest):
    """The suite, whose findings are told from assertions within the compiler."""

    @classmethod
    def assert_similar_outputs(cls, *args: Any, **kwargs: Any) -> None:
        """Compare results; raises `MissError`."""
        try:
            super().assert_similar_outputs(*args, **kwargs)
        except AssertionError as error:
            raise MissError(str(error)) from error


@cache
def suite_tests() -> Mapping[str, Callable[[None], None]]:
    """The tests for CPUs by category and name, such as `node/test_abs`; the suite computes them, in some seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Some expectations overflow on purpose.
        suite = Suite(UncachedBackend, __name__)
    return {
        f"{CATEGORIES[category]}/{name.removesuffix('_cpu')}": item.func
        for category, items in suite._test_items.items()  # pyright: ignore[reportPrivateUsage]
        for name, item in sorted(items.items())
        if name.endswith("_cpu")
    }


def outcome_of(name: str) -> Outcome:
    """Run a test; lets through whatever is neither a clean error nor a miss."""
    try:
        suite_tests()[name](None)
    except CompilerBugError:
        raise
    except GlowError as error:
        return REFUSED, f"{type(error).__name__}: {without_names(error.reason)}"
    except MissError as miss:
        return MISSED, str(miss)
    return PASSED, ""


def without_names(reason: str) -> str:
    """The reason of an error with `…` in place of all that is quoted."""
    return "'…'".join(reason.split("'")[::2])


@cache
def tiers() -> dict[str, str]:
    """The tier of each test that is listed; all others are of tier 1."""
    listed: dict[str, dict[str, list[str]]] = json.loads(TIERS_FILE.read_text(encoding="utf-8"))
    return {name: tier for tier, kinds in listed.items() for names in kinds.values() for name in names}


def tier_of(name: str) -> str:
    """The tier of a test, a key of `TIERS`."""
    return tiers().get(name, "1")


@cache
def expected_failures() -> dict[str, Outcome]:
    """What tests give that do not pass, by name. Of a miss, the table says why it is one."""
    listed: dict[str, dict[str, list[str]]] = json.loads(FAILURES_FILE.read_text(encoding="utf-8"))
    rows = ((verdict, reason, names) for verdict, reasons in listed.items() for reason, names in reasons.items())
    return {name: (verdict, reason) for verdict, reason, names in rows for name in names}


def write_expected_failures(outcomes: Mapping[str, Outcome], path: Path = FAILURES_FILE) -> None:
    """Write the table of expected failures; a miss that is known keeps its words, a new one has those of numpy."""
    table: dict[str, dict[str, list[str]]] = {REFUSED: {}, MISSED: {}}
    for name, (verdict, reason) in sorted(outcomes.items()):
        if verdict in table:
            known = expected_failures().get(name, ("", "")) if verdict == MISSED else ("", "")
            table[verdict].setdefault(known[1] if known[0] == MISSED else reason.strip(), []).append(name)
    ordered = {verdict: dict(sorted(reasons.items())) for verdict, reasons in table.items()}
    path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def counts_by_tier(outcomes: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each tier, of pairs of tests and what they gave: how many passed, were refused, missed, were raw."""
    found = [(tier_of(name), verdict) for name, verdict in outcomes]
    lines: list[str] = []
    for tier, meaning in TIERS.items():
        verdicts = [verdict for other, verdict in found if other == tier]
        counted = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (PASSED, REFUSED, MISSED, RAW))
        lines.append(f"tier {tier} ({meaning}): {len(verdicts)} tests, {counted}")
    return lines
