"""
Damaged ONNX models end in one clean error, or are imported and allowed by the standard's own checker.

`make fuzz` runs as many mutants as there is time for.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from breadth import examples
from onnx_mutants import check_source, models, mutant

FUZZ = Path(__file__).parent / "fuzz.py"
COUNT = examples(250)


def test_mutants_are_refused_or_allowed() -> None:
    """In child processes: the failure of one is a line of the report, a signal too."""
    command = [sys.executable, str(FUZZ), "onnx", "--count", str(COUNT), "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"onnx: {COUNT} seeds, 0 failed\n"


def test_models_are_accepted() -> None:
    """Or else mutants would be refused whatever is changed."""
    assert all(check_source(model.SerializeToString(), seed=1) for model in models())


@pytest.mark.parametrize("seed", range(10))
def test_mutants_follow_from_their_seed(seed: int) -> None:
    assert mutant(seed) == mutant(seed)
