"""The engines' Python environments: one each, so that none decides over another's packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "glow-mlir" / "peers"
"""Where environments, models and logs are by default."""


class EnvironmentFailure(Exception):
    """Why an environment cannot be had, in one line."""


def environment(name: str, packages: Sequence[str], folder: Path) -> Path:
    """
    The Python of an environment with these packages; it is made where it is missing or holds others.

    Raises `EnvironmentFailure` with what pip says.
    """
    home = folder / "environments" / name
    python, stamp = home / "bin" / "python", home / "installed"
    wanted = "".join(f"{package}\n" for package in packages)
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"{name}: installing {' '.join(packages)} into {home}", file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(home)])
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    stamp.write_text(wanted)
    return python


def _run(command: Sequence[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise EnvironmentFailure(last_words(result.stderr + result.stdout))


def last_words(text: str) -> str:
    """The line of a program's output that says what went wrong: the first that names an error, else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if line.lower().startswith("error")]
    return (named or lines[-1:] or ["no output"])[0]
