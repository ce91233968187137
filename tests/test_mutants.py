"""
Damaged text of every stage ends in one clean error, or in code that stays in its memory and means what it says.

`make fuzz` runs as many mutants as there is time for.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from breadth import examples
from mutants import all_texts, check_text, mutant

FUZZ = Path(__file__).parent / "fuzz.py"
COUNT = examples(30)


def test_mutants_are_refused_or_right() -> None:
    """In child processes: the failure of one is a line of the report, a signal too."""
    command = [sys.executable, str(FUZZ), "mutants", "--count", str(COUNT), "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"{COUNT} seeds, 0 failed") == 10, done.stdout


def test_mutants_of_weight_files_are_refused_or_right() -> None:
    command = [sys.executable, str(FUZZ), "weights", "--count", str(2 * COUNT), "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{2 * COUNT} seeds, 0 failed" in done.stdout


def test_programs_are_accepted() -> None:
    """Or else mutants would be refused whatever is changed."""
    small = all_texts()[7]
    assert all(check_text(text) for stage, text in small.items() if stage not in ("structured", "llvm"))


@pytest.mark.parametrize("seed", range(20))
def test_mutants_follow_from_their_seed(seed: int) -> None:
    assert mutant("allocated", seed) == mutant("allocated", seed)
