"""ONNX's backend suite, all of it, on both backends: each test passes, or fails as it is listed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from breadth import long_ones
from models import LARGE
from onnx_suite import (
    MISSED,
    MISSED_BY_CODE,
    MISSES,
    PASSED,
    RAW,
    REFUSED,
    Outcome,
    counts_by_tier,
    expected_failures,
    outcome_of,
    suite_tests,
    tiers,
    without_names,
    write_expected_failures,
)


@pytest.fixture(scope="module", autouse=True)
def folder_of_light_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The suite keeps inputs and outputs of the light models in a folder of the user's, unless told otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ONNX_MODELS", str(tmp_path_factory.mktemp("light")))
        yield


def is_long(name: str) -> bool:
    """Whether a short run has no time for a test: large models, and operators in the words of others."""
    return name.endswith("_expanded") or name.removeprefix("light/test_") in LARGE


@pytest.mark.parametrize("name", long_ones(suite_tests(), is_long))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_case(name: str, record_property: Callable[[str, object], None]) -> None:
    """Also fails where a test passes that is not expected to. Its outcome is what the summary counts."""
    try:
        found = outcome_of(name)
    except Exception as error:
        record_property("onnx_suite", (name, RAW, type(error).__name__))
        raise
    record_property("onnx_suite", (name, *found))
    verdict, reason = expected_failures().get(name, (PASSED, ""))
    assert found == (verdict, found[1] if verdict in MISSES.values() else reason)


def test_tables_list_tests_of_the_suite() -> None:
    assert not (expected_failures().keys() | tiers().keys()) - suite_tests().keys()


def test_counts_tell_what_tiers_give() -> None:
    outcomes: list[tuple[str, Outcome]] = [
        ("node/test_abs", (PASSED, "")),
        ("node/test_acos", (MISSED_BY_CODE, "")),
        ("node/test_if", (RAW, "")),
    ]
    first, second, _ = counts_by_tier((name, verdict) for name, (verdict, _) in outcomes)
    assert first == "tier 1 (must pass): 2 tests, 1 passed, 1 missed by machine code"
    assert second == "tier 2 (wanted): 1 tests, 0 passed, 1 raw"


def test_written_table_keeps_words_of_known_misses_and_what_did_not_run(tmp_path: Path) -> None:
    missed, passes, *_ = (name for name, (verdict, _) in expected_failures().items() if verdict == MISSED)
    refused = next(name for name in suite_tests() if name not in expected_failures())
    results = {missed: (MISSED, "Not equal"), passes: (PASSED, ""), refused: (REFUSED, "ModelError: no")}
    write_expected_failures(results, tmp_path / "table.json")
    table = json.loads((tmp_path / "table.json").read_text())
    found = {name: (verdict, why) for verdict, rows in table.items() for why, names in rows.items() for name in names}
    kept = {name: outcome for name, outcome in expected_failures().items() if name != passes}
    assert found == kept | {refused: (REFUSED, "ModelError: no")}


def test_reasons_are_without_names() -> None:
    assert without_names("operator: Scan ('a node'), Loop ('b')") == "operator: Scan ('…'), Loop ('…')"
