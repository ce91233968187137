"""RUN lines that check nothing, and CHECK lines that nothing reads, look like tests and are none."""

from __future__ import annotations

import re
from pathlib import Path

from checkout import offenders, text_of
from filecheck_runner import filecheck_tests
from run_lines import expand_macros, parse_script

CHECKERS = re.compile(r"\b(?:filecheck|not|diff)\b")
PREFIX_OPTION = re.compile(r"--check-prefix(?:es)?[= ](\S+)")
CHECK_LINE = re.compile(r"//\s*([A-Z][A-Z0-9_-]*):")
CHECK_SUFFIX = re.compile(r"-(?:NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+)$")
NOT_CHECKS = {"RUN", "REQUIRES", "COM", "NOTE"}

FILES = filecheck_tests()


def test_there_are_filecheck_tests() -> None:
    assert FILES


def faults_of_run_lines(path: Path) -> list[str]:
    """
    What is wrong with the RUN lines of a file: each reads `%s` and runs filecheck, not or diff.

    The one exception: a line may write `%t` for a later line that checks; that one may read `%t`, not `%s`.
    """
    commands = [expand_macros(run.text) for run in parse_script(path).runs]
    faults = [] if any("%s" in command for command in commands) else ["no RUN line reads %s"]
    for position, command in enumerate(commands):
        later = commands[position + 1 :]
        checks = any("%t" in other and CHECKERS.search(other) for other in later)
        if "%s" not in command and "%t" not in command:
            faults.append(f"reads neither %s nor %t: {command}")
        if not CHECKERS.search(command) and not ("%t" in command and checks):
            faults.append(f"checks nothing: {command}")
    return faults


def faults_of_check_lines(path: Path) -> list[str]:
    """CHECK lines that no RUN line reads, and prefixes of a RUN line that no line has."""
    used: set[str] = set()
    for run in parse_script(path).runs:
        for command in expand_macros(run.text).split("|"):
            if "filecheck" in command:
                named = PREFIX_OPTION.findall(command)
                used.update(prefix for option in named for prefix in option.split(","))
                used.update([] if named else ["CHECK"])
    present = {CHECK_SUFFIX.sub("", found) for found in CHECK_LINE.findall(text_of(path))} - NOT_CHECKS
    unread = [f"no RUN line reads {name}" for name in sorted(present - used)]
    return unread + [f"filecheck looks for {name}, and finds no such line" for name in sorted(used - present)]


def test_run_lines_read_the_file_and_check_something() -> None:
    assert not offenders(FILES, faults_of_run_lines)


def test_check_lines_are_read_by_a_run_line() -> None:
    assert not offenders(FILES, faults_of_check_lines)


def test_the_checks_find_something(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(
        "// RUN: glow-opt %t\n// RUN: glow-opt | filecheck %t --check-prefix=A\n// B: x\n", encoding="utf-8"
    )
    assert faults_of_run_lines(path) == ["no RUN line reads %s"]
    assert faults_of_check_lines(path) == [
        "no RUN line reads B",
        "filecheck looks for A, and finds no such line",
    ]
    path.write_text("// RUN: glow-opt %s\n// RUN: true | filecheck x\n", encoding="utf-8")
    assert len(faults_of_run_lines(path)) == 2
