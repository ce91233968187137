"""
Damaged files of decoders, templates of chats and requests for text are read, or end in one clean error, soon.

`make fuzz` runs as many mutants as there is time for.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from breadth import examples
from checkout import ROOT
from running_servers import needed

pytestmark = pytest.mark.extra

COUNTS = {"decoders": 60, "templates": 60, "texts": 60}
"""Fuzzer → how many mutants of each of its stages."""


@pytest.mark.parametrize("name", COUNTS)
def test_mutants_are_read_or_refused(name: str) -> None:
    for module in ("tokenizers", "jinja2", "llguidance", "uvicorn", "httptools", "starlette"):
        needed(module)
    count = examples(COUNTS[name])
    command = [sys.executable, str(ROOT / "tests" / "fuzz.py"), name, "--count", str(count), "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} seeds, 0 failed" in done.stdout


def test_mutants_follow_from_their_seed() -> None:
    for module in ("tokenizers", "jinja2"):
        needed(module)
    from decoder_mutants import gguf_mutant, show_folder
    from template_mutants import text_of
    from text_request_mutants import mutant

    for seed in range(5):
        assert gguf_mutant(seed) == gguf_mutant(seed)
        assert show_folder(seed) == show_folder(seed)
        assert text_of(seed) == text_of(seed)
        assert mutant(seed) == mutant(seed)
