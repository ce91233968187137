"""
Damaged models of strings, sequences, optionals and maps end in one clean error, as they are compiled or run, or answer.

`make fuzz` runs as many mutants as there is time for.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from breadth import examples
from python_value_mutants import answers, models

FUZZ = Path(__file__).parent / "fuzz.py"
COUNT = examples(200)


def test_mutants_answer_or_are_refused() -> None:
    """In child processes: the failure of one is a line of the report, a signal too."""
    command = [sys.executable, str(FUZZ), "values", "--count", str(COUNT), "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"values: {COUNT} seeds, 0 failed\n"


def test_models_answer() -> None:
    """Or else mutants would be refused whatever is changed."""
    assert all(any(answers(model.SerializeToString(), seed) for seed in range(8)) for model in models())
