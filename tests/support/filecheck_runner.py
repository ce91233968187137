"""
FileCheck tests under pytest: every RUN line of a file below `tests/filecheck`, executed in this process.

Starting a process per tool costs most of a second, so real lit (`make filecheck`) takes ten times the
processor time for the same answer. Both read the same lines; what this runner does not know is an error,
never a skip.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from mlir_tools import MLIR_TOOLS, ROOT, available_features
from run_lines import (
    SUFFIXES,
    RunLine,
    RunLineError,
    Script,
    expand_macros,
    parse_pipeline,
    parse_script,
    substitute,
)
from shell import Outcome, run_pipeline

FILECHECK_ROOT = ROOT / "tests" / "filecheck"
"""Where the tests are; the folders below mirror the rooms."""

_EXCLUDED_FOLDERS = frozenset({"Inputs", "Output"})


def is_filecheck_test(path: Path) -> bool:
    """Say whether a file is a FileCheck test, by lit's rules."""
    return path.suffix in SUFFIXES and FILECHECK_ROOT in path.parents and not _EXCLUDED_FOLDERS.intersection(path.parts)


def filecheck_tests() -> list[Path]:
    """Return all FileCheck tests of the checkout, sorted."""
    return sorted(path for path in FILECHECK_ROOT.rglob("*") if is_filecheck_test(path))


class RunLineFailed(Exception):
    """A RUN line that ended with an exit code other than 0."""

    def __init__(self, script: Script, run: RunLine, outcome: Outcome) -> None:
        super().__init__(script, run, outcome)
        self.script, self.run, self.outcome = script, run, outcome

    def report(self) -> str:
        """Tell what ran, how to run it by hand, and what it said."""
        name = self.script.path.relative_to(ROOT)
        by_hand = expand_macros(self.run.text).replace("%s", shlex.quote(str(name)))
        parts = [
            f"{name}:{self.run.line}: exit code {self.outcome.code}",
            f"RUN: {self.run.text}",
            f"$ {by_hand}",
        ]
        for title, text in (("stdout", self.outcome.stdout), ("stderr", self.outcome.stderr)):
            if text.strip():
                parts += [f"---- {title} ----", text.rstrip()]
        return "\n".join(parts)


class FileCheckFile(pytest.File):
    """One test file, which is one item: its RUN lines share `%t` and run in order."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the file's only item, which is `extra` where it REQUIRES a tool."""
        item = FileCheckItem.from_parent(self, name="RUN")
        if "REQUIRES:" in self.path.read_text(encoding="utf-8"):
            item.add_marker("extra")
        yield item


class FileCheckItem(pytest.Item):
    """All RUN lines of a file; the first that fails ends it."""

    def runtest(self) -> None:
        """Run the file in a fresh folder, or skip it where a tool that it REQUIRES is absent."""
        script = parse_script(self.path)
        if missing := missing_requirements(script):
            pytest.skip(f"REQUIRES {', '.join(missing)} (`make mlir-tools` installs it)")
        with TemporaryDirectory(prefix=f"{self.path.stem}-") as directory:
            run_script(script, Path(directory))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """Report a failed RUN line without a Python traceback, anything else with one."""
        match excinfo.value:
            case RunLineFailed() as failure:
                return failure.report()
            case RunLineError() as error:
                return str(error)
            case _:
                return str(super().repr_failure(excinfo, style))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the file in pytest's listings."""
        return self.path, 0, str(self.path.relative_to(ROOT))


def missing_requirements(script: Script) -> list[str]:
    """Return the tools that a test REQUIRES and that are not here; an unknown name is an error."""
    if unknown := [name for name in script.requires if name not in MLIR_TOOLS]:
        raise RunLineError(f"{script.path}: REQUIRES {', '.join(unknown)}: known are {', '.join(MLIR_TOOLS)}")
    features = available_features()
    return [name for name in script.requires if name not in features]


def run_script(script: Script, directory: Path) -> None:
    """Run the RUN lines of a file in a folder; the first that fails raises `RunLineFailed`."""
    temporary = directory / f"{script.path.name}.tmp"
    for run in script.runs:
        try:
            outcome = run_pipeline(parse_pipeline(substitute(run.text, script.path, temporary)), directory)
        except RunLineError as error:
            raise RunLineError(f"{script.path}:{run.line}: {error}") from error
        if outcome.code:
            raise RunLineFailed(script, run, outcome)
