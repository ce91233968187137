"""Every operation of our dialects but operators occurs in a test that prints it and parses it back; those have rows."""

from __future__ import annotations

import re

from checkout import text_of
from filecheck_runner import FILECHECK_ROOT, filecheck_tests
from operator_cases import CASES
from run_lines import expand_macros, parse_script

from glow_mlir.ir.universe import GLOW_UNIVERSE

DIALECTS = ("chlo", "glow_high", "glow_low", "stablehlo")
OPERATIONS = sorted(
    operation.name
    for dialect in DIALECTS
    for operation in GLOW_UNIVERSE.all_dialects[dialect]().operations
    if operation.name.partition(".")[2] not in CASES
)


def mentioned_in_round_trips() -> set[str]:
    """The operations in the input of the round-trip tests; what stands in a comment does not count."""
    word = re.compile(rf"\b(?:{'|'.join(DIALECTS)})\.[\w.-]+")
    mentioned: set[str] = set()
    for path in filecheck_tests():
        if FILECHECK_ROOT / "dialects" not in path.parents:
            continue
        if not any(expand_macros(run.text).count("glow-opt") > 1 for run in parse_script(path).runs):
            continue
        for line in text_of(path).splitlines():
            mentioned.update(word.findall(line.partition("//")[0]))
    return mentioned


def test_operations_have_a_round_trip_test() -> None:
    mentioned = mentioned_in_round_trips()
    assert not [operation for operation in OPERATIONS if operation not in mentioned]
