"""Folders in which distributions with operators or backends are installed, and Python run where they can be found."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path

from checkout import ROOT

OPERATOR_PACKAGE, BACKEND_PACKAGE, TOSA_PACKAGE = EXAMPLES = tuple(
    ROOT / "examples" / name for name in ("operator_package", "backend_package", "tosa_backend")
)
"""The examples of distributions."""


GROUP = "glow_mlir.operators"
"""The group of entry points that are packages of operators."""


def install(site: Path, name: str, version: str, entry: str, others: str = "") -> None:
    """
    Make a distribution known to Python as an installer would: a folder with its name and its entry point.

    `others` are entry points of other groups, as the file has them.
    """
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "entry_points.txt").write_text(f"[{GROUP}]\n{entry}\n{others}")


def install_example(site: Path, example: Path) -> None:
    """Install an example as its own pyproject.toml says; its code stays where it is."""
    project = tomllib.loads((example / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = project["entry-points"]
    ((name, value),) = groups.pop(GROUP).items()
    others = "".join(
        f"[{group}]\n{name} = {value}\n" for group, entries in groups.items() for name, value in entries.items()
    )
    install(site, project["name"], project["version"], f"{name} = {value}", others)


def entry_names(site: Path) -> list[str]:
    """The names of the entry points of a folder."""
    found: list[str] = []
    for path in site.glob("*.dist-info/entry_points.txt"):
        groups = ConfigParser()
        groups.read(path, encoding="utf-8")
        found += groups[GROUP]
    return found


def run(site: Path, *arguments: str | Path, packages: str | None = None) -> subprocess.CompletedProcess[str]:
    """
    Run Python where the distributions of `site` are the only ones with operators, and the examples' code is found.

    All of them are loaded, or those that `packages` names, with commas between them.
    """
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, (site, *EXAMPLES, ROOT))),
        "GLOW_CACHE_DIR": str(site / "cache"),
        "GLOW_PACKAGES": ",".join(entry_names(site)) if packages is None else packages,
    }
    command = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, cwd=site, env=environment, check=False)


def output(site: Path, *arguments: str | Path, packages: str | None = None) -> str:
    """What a successful run prints."""
    finished = run(site, *arguments, packages=packages)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
