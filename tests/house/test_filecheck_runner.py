"""The runner of FileCheck tests, on its own: what it runs, what it refuses, what it puts back."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from filecheck_runner import RunLineFailed, missing_requirements, run_script
from in_process import find_tool, run_tool
from run_lines import RunLineError, parse_pipeline, parse_script, substitute
from shell import Outcome, run_pipeline
from xdsl.ir import Attribute

from glow_mlir.constants import weights


def run(command: str, folder: Path) -> Outcome:
    """Run one substituted command in a folder."""
    return run_pipeline(parse_pipeline(command), folder)


def run_file(folder: Path, text: str) -> None:
    """Run a whole test file."""
    path = folder / "case.mlir"
    path.write_text(text)
    run_script(parse_script(path), folder)


def test_pipeline_into_filecheck(tmp_path: Path) -> None:
    run_file(tmp_path, "// RUN: cat %s | filecheck %s\n// CHECK: {{^}}body\nbody\n")


def test_failed_check_fails_and_reports_the_line(tmp_path: Path) -> None:
    with pytest.raises(RunLineFailed) as failure:
        run_file(tmp_path, "body\n// RUN: cat %s | filecheck %s\n// CHECK: {{^}}other\n")
    assert failure.value.run.line == 2
    assert failure.value.outcome.code == 1
    assert "case.mlir:3" in failure.value.outcome.stderr


def test_what_the_runner_refuses_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(RunLineError, match=r"case\.mlir:1: unknown program 'no-such-program'"):
        run_file(tmp_path, "// RUN: no-such-program %s\n")


def test_continuation_lines_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "case.mlir"
    path.write_text("// RUN: cat %s \\\n// RUN:   | filecheck %s\n// RUN: diff %s %s\n")
    assert [(run.text, run.line) for run in parse_script(path).runs] == [
        ("cat %s | filecheck %s", 1),
        ("diff %s %s", 3),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "no directive",
        "// RUN: cat %s \\",
        "// RUN: cat %s\n// XFAIL: *",
        "// RUN: cat %s\n// DEFINE: %{x} = y",
    ],
)
def test_files_that_cannot_run_are_errors(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "case.mlir").write_text(text)
    with pytest.raises(RunLineError):
        parse_script(path)


@pytest.mark.parametrize("text", ["cat %p", "cat %{fs-sep}", "cat %/s", "cat %sum"])
def test_unknown_substitutions_are_errors(text: str) -> None:
    with pytest.raises(RunLineError, match="unknown substitution"):
        substitute(text, Path("a.mlir"), Path("t"))


def test_known_substitutions() -> None:
    assert substitute("%s %S %t.out 5%%", Path("/d/a.mlir"), Path("/x/t")) == "/d/a.mlir /d /x/t.out 5%"
    assert substitute("GLOW_ROUNDTRIP", Path("a"), Path("t")).endswith("glow-opt --split-input-file | filecheck a")


@pytest.mark.parametrize(
    "command",
    [
        "no-such-program x",
        "glow-no-such-tool x",
        "cat a; cat b",
        "cat a && cat b",
        "cat *.mlir",
        "cat a |",
        "not --crash cat a",
        "cat a 1>&2",
        "cat a 2>&1 > b",
        "! cat a",
    ],
)
def test_what_the_shell_does_not_know_is_an_error(tmp_path: Path, command: str) -> None:
    with pytest.raises(RunLineError):
        run(command, tmp_path)


def test_exit_codes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    assert run("cat a", tmp_path).code == 0
    assert run("cat missing", tmp_path).code != 0
    assert run("not cat missing", tmp_path).code == 0
    assert run("not cat a", tmp_path).code == 1
    assert run("not not cat a", tmp_path).code == 0
    # A pipeline fails with any of its commands, as with lit's pipefail.
    assert run("cat missing | cat a", tmp_path).code != 0
    assert run("cat missing | cat a", tmp_path).stdout == ""


def test_redirections(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    assert run("cat < a > b", tmp_path) == Outcome(0, "", "")
    assert run("cat a >> b", tmp_path).code == 0
    assert (tmp_path / "b").read_text() == "a\na\n"
    assert "missing" in run("not cat missing 2>&1", tmp_path).stdout
    assert run("not cat missing 2> errors", tmp_path).stderr == ""
    assert "missing" in (tmp_path / "errors").read_text()
    assert run("diff a b", tmp_path).code == 1


def test_tools_start_with_the_streams_of_their_own_process(tmp_path: Path) -> None:
    def echo(argv: list[str]) -> int:
        data = sys.stdin.buffer.read()
        print(Path.cwd() == tmp_path, sys.argv[0], *argv)
        print("warning", file=sys.stderr)
        sys.stdout.buffer.write(data)
        return 3

    finished = run_tool(echo, ["x"], program="echo", stdin="ü".encode(), merge_stderr=True, directory=tmp_path)
    assert (finished.code, finished.stdout.decode()) == (3, "True echo x\nwarning\nü")
    assert Path.cwd() != tmp_path


@pytest.mark.parametrize(("stop", "code"), [(None, 0), (2, 2), ("message", 1)])
def test_exit_of_a_tool_is_its_exit_code(stop: str | int | None, code: int) -> None:
    def leave(argv: list[str]) -> int:
        sys.exit(stop)

    finished = run_tool(leave, [])
    assert finished.code == code
    assert finished.stderr == (b"message\n" if stop == "message" else b"")


def test_exception_of_a_tool_is_a_traceback() -> None:
    def fail(argv: list[str]) -> int:
        raise ValueError("told")

    finished = run_tool(fail, [])
    assert finished.code == 1
    assert b"ValueError: told" in finished.stderr


def test_environment_is_the_command_s_own(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("// CHECK: a\n")
    assert run("env FILECHECK_FEATURE_ENABLE=MLIR_REGEX_CLS filecheck a --input-file a", tmp_path).code == 0
    with pytest.raises(RunLineError):
        run("env NAME=value", tmp_path)


def test_disabled_verification_does_not_outlive_the_tool(tmp_path: Path) -> None:
    before = Attribute.__post_init__
    (tmp_path / "a.mlir").write_text("builtin.module {\n}\n")
    outcome = run("xdsl-opt a.mlir --disable-verify --syntax-highlight", tmp_path)
    assert outcome.code == 0
    assert Attribute.__post_init__ is before


def test_weights_do_not_pass_from_one_tool_to_the_next() -> None:
    def add(argv: list[str]) -> int:
        print(weights.add_weights(np.arange(5)))
        return 0

    def find(argv: list[str]) -> int:
        print(weights.weights(argv[0]))
        return 0

    mine = weights.add_weights(np.arange(3))
    digest = run_tool(add, []).stdout.decode().strip()
    assert b"not loaded" in run_tool(find, [digest]).stderr
    assert b"not loaded" in run_tool(find, [mine]).stderr
    assert weights.weights(mine).size == 3


def test_tools_are_found_by_their_module() -> None:
    assert find_tool("glow-opt")
    assert find_tool("filecheck")
    assert find_tool("glow-no-such-tool") is None


def test_requirements_are_known_names(tmp_path: Path) -> None:
    (path := tmp_path / "case.mlir").write_text("// RUN: mlir-opt %s | filecheck %s\n// REQUIRES: mlir-otp\n")
    with pytest.raises(RunLineError, match="mlir-otp"):
        missing_requirements(parse_script(path))
