"""No test can hang: each has a limit that names it, and those that send SIGINT hear it wherever they run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT, pyproject
from time_limits import SWEEP, ignore_interrupts, limit_of

FIXTURE = "hears_ctrl_c"

HANDLERS_OF_THEIR_OWN = {"tools/test_glow_serve.py", "tools/test_glow_train.py"}
"""Tests of programs that set a handler, wherever they run: these take SIGINT where a shell ignores it as well."""

HANGS = """
import ctypes, pytest, threading
{mark}
def test_hangs():
    {body}
def test_behind(): pass
"""


def senders(path: Path) -> list[str]:
    """The tests of a file that name SIGINT, in their code, their parameters or a program of theirs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    programs = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and "SIGINT" in ast.unparse(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            text = ast.unparse(node)
            if ("SIGINT" in text or any(name in text for name in programs)) and FIXTURE not in text:
                found.append(f"{path.name}::{node.name}")
    return found


def test_who_sends_sigint_sets_its_handler() -> None:
    """A shell without job control ignores SIGINT for what it starts in the background, as does `nohup make test &`."""
    paths = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    others = [path for path in paths if path.relative_to(ROOT / "tests").as_posix() not in HANDLERS_OF_THEIR_OWN]
    assert len(others) == len(paths) - len(HANDLERS_OF_THEIR_OWN)
    assert [name for path in others for name in senders(path)] == []


def ran(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """A run of pytest for which SIGINT is ignored."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        preexec_fn=ignore_interrupts,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_ctrl_c_is_tested_where_it_is_ignored() -> None:
    path = "tests/runtime/test_partitions.py::test_ctrl_c_ends_a_loop_on_a_device"
    done = ran(path, "-o", "timeout=60")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("mark", "body", "said"),
    [
        ("@pytest.mark.timeout(1)", "threading.Event().wait()", "Timeout"),
        # The interpreter's lock is held for ever: no thread of Python ends this.
        ("@pytest.mark.timeout(-28)", "ctypes.PyDLL(None).sleep(600)", "Timeout (0:00:02)!"),
    ],
    ids=["waits", "holds-the-lock"],
)
def test_what_hangs_ends_and_is_named(tmp_path: Path, mark: str, body: str, said: str) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_it.py").write_text(HANGS.format(mark=mark, body=body))
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    paths = f"pythonpath={ROOT / 'tests/support'} {ROOT / 'benchmarks'}"
    done = ran("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-o", paths, str(folder), cwd=tmp_path)
    assert done.returncode == 1
    assert said in done.stdout + done.stderr
    assert "test_hangs" in done.stdout + done.stderr


def test_each_test_has_a_limit(request: pytest.FixtureRequest) -> None:
    assert limit_of(request.node) == pyproject()["tool"]["pytest"]["ini_options"]["timeout"] == 300


@pytest.mark.long
def test_a_sweep_has_a_longer_one(request: pytest.FixtureRequest) -> None:
    assert limit_of(request.node) == SWEEP
