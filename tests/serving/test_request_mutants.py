"""Damaged requests are answered, within memory and while health is; `make fuzz` sends as many as there is time for."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from breadth import examples
from checkout import ROOT
from running_servers import needed

pytestmark = pytest.mark.extra

COUNT = examples(80)


def test_requests_are_refused_or_answered() -> None:
    for module in ("uvicorn", "httptools", "starlette", "grpc", "google.protobuf"):
        needed(module)
    command = [sys.executable, str(ROOT / "tests" / "fuzz.py"), "requests", "--count", str(COUNT), "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{COUNT} seeds, 0 failed" in done.stdout
    assert re.search(r"health: asked \d+ times, .* memory: \d+ MiB", done.stdout)


def test_requests_follow_from_their_seed() -> None:
    needed("google.protobuf")
    from request_mutants import mutant

    kinds = {mutant(seed).kind for seed in range(40)}
    assert len(kinds) == 4
    assert all(mutant(seed) == mutant(seed) for seed in range(10))
