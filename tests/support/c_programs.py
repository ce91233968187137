"""C and C++ compilers of this machine, for programs that use bundles."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
"""What headers of bundles are clean under."""


def c_compiler() -> str:
    """A C compiler for this machine, which may compile C++ as well; skips the test where there is none."""
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if found is None:
        pytest.skip("there is no C compiler: none of cc, gcc and clang is installed")
    return found


def run(*command: str | Path) -> str:
    """Run a command, which has to succeed; what it prints."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]} ends with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def checked(header: Path, *flags: str) -> None:
    """Compile a header alone, strictly."""
    run(c_compiler(), *flags, *STRICT, "-fsyntax-only", header)


def built(program: Path, sources: Sequence[str | Path], *flags: str) -> Path:
    """A program of C sources and objects, compiled strictly as C99."""
    run(c_compiler(), "-std=c99", *STRICT, *flags, *sources, "-o", program)
    return program
