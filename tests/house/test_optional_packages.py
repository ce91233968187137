"""Packages that few need: hints name commands that work, however glow-mlir itself was installed."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from breadth import long_ones
from checkout import ROOT, files, pyproject
from packaging.requirements import Requirement

from glow_mlir.errors import OptionError, PackageError
from glow_mlir.support.optional_packages import EXTRAS, imported, to_install

COMMAND = re.compile(r"pip install (?!this\b)[^`#\n]*")


def is_installed(requirement: str) -> bool:
    """Whether the environment of the tests has it."""
    wanted = Requirement(requirement)
    try:
        return wanted.specifier.contains(importlib.metadata.version(wanted.name), prereleases=True)
    except importlib.metadata.PackageNotFoundError:
        return False


HERE = [extra for extra in EXTRAS if all(map(is_installed, EXTRAS[extra]))]


@pytest.mark.parametrize("extra", EXTRAS)
def test_hints_install_what_extras_do(extra: str) -> None:
    assert list(EXTRAS[extra]) == pyproject()["project"]["optional-dependencies"][extra]


@pytest.mark.parametrize("extra", long_ones(HERE, lambda extra: extra != "lsp"))
def test_commands_of_hints_run(extra: str) -> None:
    """Without a network: what is there is what they ask for."""
    program, *arguments = shlex.split(to_install(extra))
    assert program == "pip"
    command = [sys.executable, "-m", "pip", *arguments, "--dry-run", "--no-index", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Would install" not in done.stdout


def test_small_extras_are_here() -> None:
    assert {"check", "images", "lsp", "strings", "tools", "training"} <= set(HERE)


def test_nothing_installs_glow_mlir_from_an_index() -> None:
    """A command is one that works from a checkout or a wheel."""
    folders = [ROOT / name for name in ("glow_mlir", "tools", "dialects", "docs", "examples", "benchmarks")]
    texts = [path for path in files(".py", ".md") if any(folder in path.parents for folder in folders)]
    found = [
        (path.relative_to(ROOT).as_posix(), command)
        for path in [*texts, ROOT / "README.md"]
        for command in COMMAND.findall(path.read_text(encoding="utf-8"))
        if re.search(r"glow[-_]mlir(?!\S*\.whl)|glow-tosa-backend", command)
    ]
    assert found == []


def test_what_is_missing_and_what_cannot_be_imported_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(OptionError) as missing:
        imported("no_such_package.inner", "tools", "it needs a package", otherwise="leave it out")
    assert str(missing.value) == (
        "it needs a package, which is not installed (hint: pip install 'filecheck~=1.0.6' 'rich>=14,<16' "
        "'shtab>=1.8,<2', or leave it out)"
    )
    (tmp_path / "broken_package.py").write_text("import no_such_dependency\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        with pytest.raises(PackageError) as broken:
            imported("broken_package", "tools", "it needs a package", error=PackageError)
    assert str(broken.value) == (
        "it needs a package, whose import fails: ModuleNotFoundError: No module named 'no_such_dependency'"
    )
