"""The checkout as data: its hand-written files, its packages, and what pyproject.toml says."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from mlir_tools import ROOT

T = TypeVar("T")

_SKIPPED_FOLDERS = frozenset({"build", "dist", "node_modules", "__pycache__"})
_ROOMS_ON_TOP = {"dialects": "glow_mlir.dialects", "tools": "glow_mlir.tools"}


def files(*suffixes: str) -> list[Path]:
    """Return the sorted files with one of the suffixes, without links and ignored folders."""
    return [path for path in _all_files() if path.suffix in suffixes]


def name_of(path: Path) -> str:
    """The name of a file from the top of the checkout on."""
    return path.relative_to(ROOT).as_posix()


@cache
def text_of(path: Path) -> str:
    """The text of a file of the checkout."""
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a Python file of the checkout, which nobody changes."""
    return ast.parse(text_of(path))


def offenders(paths: Iterable[Path], found: Callable[[Path], T]) -> dict[str, T]:
    """The files in which a rule finds something, by their names."""
    return {name_of(path): value for path in paths if (value := found(path))}


@cache
def _all_files() -> list[Path]:
    return sorted(_walk(ROOT))


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder without following links: a linked room would be seen twice."""
    for entry in os.scandir(folder):
        if entry.is_symlink() or entry.name.startswith(".") or entry.name in _SKIPPED_FOLDERS:
            continue
        if entry.is_dir():
            if not (Path(entry.path) / "pyvenv.cfg").exists() and not entry.name.endswith(".egg-info"):
                yield from _walk(Path(entry.path))
        else:
            yield Path(entry.path)


def packages_on_disk() -> list[str]:
    """
    Return the dotted names of the folders with an `__init__.py`, as they are called when installed.

    A folder with a `pyproject.toml` of its own is another distribution.
    """
    others = {path.parent for path in files(".toml") if path.name == "pyproject.toml"} - {ROOT}
    names: list[str] = []
    for path in files(".py"):
        if path.name != "__init__.py" or others & set(path.parents):
            continue
        top, *rest = path.parent.relative_to(ROOT).parts
        names.append(".".join((_ROOMS_ON_TOP.get(top, top), *rest)))
    return sorted(names)


def make_targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def pyproject() -> dict[str, Any]:
    """Return the contents of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run_python(code: str, *arguments: str, cwd: Path = ROOT) -> str:
    """Run a snippet in a fresh Python and return what it printed; a failure raises with its stderr."""
    completed = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout
