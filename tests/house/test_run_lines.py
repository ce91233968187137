"""RUN lines that check nothing, and CHECK lines that nothing reads, look like tests and are none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from filecheck_runner import FILECHECK_ROOT, filecheck_tests
from run_lines import expand_macros, parse_script

CHECKERS = re.compile(r"\b(?:filecheck|not|diff)\b")
PREFIX_OPTION = re.compile(r"--check-prefix(?:es)?[= ](\S+)")
CHECK_LINE = re.compile(r"//\s*([A-Z][A-Z0-9_-]*):")
CHECK_SUFFIX = re.compile(r"-(?:NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+)$")
NOT_CHECKS = {"RUN", "REQUIRES", "COM", "NOTE"}

FILES = filecheck_tests()


def name(path: Path) -> str:
    return path.relative_to(FILECHECK_ROOT).as_posix()


def test_there_are_filecheck_tests() -> None:
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=name)
def test_run_lines_read_the_file_and_check_something(path: Path) -> None:
    """
    A RUN line reads `%s` and runs filecheck, not or diff.

    The one exception: a line may write `%t` for a later line that checks; that one may read `%t`, not `%s`.
    """
    commands = [expand_macros(run.text) for run in parse_script(path).runs]
    for position, command in enumerate(commands):
        later = commands[position + 1 :]
        assert "%s" in command or "%t" in command, f"reads neither %s nor %t: {command}"
        assert CHECKERS.search(command) or (
            "%t" in command and any("%t" in other and CHECKERS.search(other) for other in later)
        ), f"checks nothing: {command}"
    assert any("%s" in command for command in commands)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_check_lines_are_read_by_a_run_line(path: Path) -> None:
    used: set[str] = set()
    for run in parse_script(path).runs:
        for command in expand_macros(run.text).split("|"):
            if "filecheck" in command:
                named = PREFIX_OPTION.findall(command)
                used.update(prefix for option in named for prefix in option.split(","))
                used.update([] if named else ["CHECK"])
    present = {
        CHECK_SUFFIX.sub("", found) for found in CHECK_LINE.findall(path.read_text(encoding="utf-8"))
    } - NOT_CHECKS
    assert present <= used, f"no RUN line reads {sorted(present - used)}"
    assert used <= present, f"filecheck looks for {sorted(used - present)}, and finds no such line"
