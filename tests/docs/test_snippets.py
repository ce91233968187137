"""The code on every page runs, and prints what the page says; a page that says something else is caught."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import run_snippets
from run_snippets import PAGES

COMMAND = [sys.executable, run_snippets.__file__]
WITH_CODE = [page for page in PAGES if "```" in page.read_text(encoding="utf-8")]


def faults(page: Path) -> str:
    """What is said of a page; nothing where it is right."""
    finished = subprocess.run([*COMMAND, str(page)], capture_output=True, text=True, check=False)
    assert bool(finished.returncode) == bool(finished.stderr.strip())
    return finished.stderr


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```" in page.read_text(encoding="utf-8")], ids=lambda p: p.name
)
def test_code_on_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path))
    assert not faults(page)


WRONG = {
    "python": ("```python\n1 / 0\n```", "ZeroDivisionError"),
    "sh": ("```sh\nglow-opt --no-such-option\n```", "exit code 1"),
    "output": ('```python\nprint(3)\n```\n\n```text title="output"\n4\n```', "what was printed"),
    "excerpt": ('```python title="glow_mlir/errors.py"\nclass NoSuchError\n```', "no such line"),
    "fragment": ("```mlir fragment\nglow_high.no_such_operation %x\n```", "no operation"),
    "target": ("```sh fragment\nmake no-such-target\n```", "no target of make"),
    "module": ("```mlir\nglow_high.no_such_operation\n```", "exit code 1"),
    "language": ("```fortran\nend\n```", "nothing runs"),
    "commands": ("```\nglow-opt model.mlir\n```", "blocks of `sh`"),
}
"""What is wrong → the text, and a part of what is said of it."""


@pytest.mark.parametrize("case", WRONG)
def test_wrong_page_is_caught(tmp_path: Path, case: str) -> None:
    text, reason = WRONG[case]
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n{text}\n", encoding="utf-8")
    assert reason in faults(page)


def test_written_page_is_right(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('```python\nprint("a", "b")\n```\n\n```text title="output"\nsomething\n```\n')
    subprocess.run([*COMMAND, "--write", str(page)], check=True)
    assert 'title="output"\na b\n```' in page.read_text()
    assert not faults(page)
