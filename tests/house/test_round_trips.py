"""Every operation of our dialects but operators occurs in a test that prints it and parses it back; those have rows."""

from __future__ import annotations

import re

import pytest
from filecheck_runner import FILECHECK_ROOT, filecheck_tests
from operator_cases import CASES
from run_lines import expand_macros, parse_script

from glow_mlir.ir.universe import GLOW_UNIVERSE

DIALECTS = ("glow_high", "glow_low")
OPERATIONS = sorted(
    operation.name
    for dialect in DIALECTS
    for operation in GLOW_UNIVERSE.all_dialects[dialect]().operations
    if operation.name.partition(".")[2] not in CASES
)


def mentioned_in_round_trips() -> set[str]:
    """Return the operations in the input of the round-trip tests; what stands in a comment does not count."""
    word = re.compile(rf"\b(?:{'|'.join(DIALECTS)})\.[\w.]+")
    mentioned: set[str] = set()
    for path in filecheck_tests():
        if FILECHECK_ROOT / "dialects" not in path.parents:
            continue
        if not any(expand_macros(run.text).count("glow-opt") > 1 for run in parse_script(path).runs):
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            mentioned.update(word.findall(line.partition("//")[0]))
    return mentioned


MENTIONED = mentioned_in_round_trips()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_has_a_round_trip_test(operation: str) -> None:
    assert operation in MENTIONED, f"no round trip of {operation} below tests/filecheck/dialects"
