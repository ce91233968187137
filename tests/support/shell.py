"""
The small shell that RUN lines need: pipelines, redirections and `not` over tools that run in process.

It follows lit's internal shell: a pipeline fails when any of its commands fails, and `not` swaps success and
failure of one command.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from in_process import Finished, find_tool, run_tool
from mlir_tools import MLIR_TOOLS, find_mlir_tool
from run_lines import Command, RunLineError

PROGRAMS = frozenset({"cat", "cmp", "cp", "diff", "grep", "ls", "mkdir", "mv", "rm", "test"})
"""Programs that start as real processes, besides MLIR's. Anything else in a RUN line is an error."""

_ASSIGNMENT = re.compile(r"(?P<name>\w+)=(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True)
class Outcome:
    """The exit code of a pipeline, what its last command printed, and everything on stderr."""

    code: int
    stdout: str
    stderr: str


@dataclass
class _Invocation:
    """A command without its prefixes."""

    program: str
    argv: list[str]
    negated: bool = False
    environment: dict[str, str] = field(default_factory=dict[str, str])


def run_pipeline(commands: list[Command], directory: Path) -> Outcome:
    """
    Run the commands of a pipeline one after the other, each reading what the one before it printed.

    The first that fails decides, and ends the pipeline: what comes after it could only add to the noise.
    """
    code, data, errors = 0, b"", b""
    for command in commands:
        finished = _run_command(command, data, directory)
        code, data, errors = finished.code, finished.stdout, errors + finished.stderr
        if code:
            break
    return Outcome(code, data.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))


def _run_command(command: Command, stdin: bytes, directory: Path) -> Finished:
    """Run one command with its redirections."""
    call = _without_prefixes(command.args)
    operators = [operator for operator, _ in command.redirects]
    merge = "2>&" in operators or "&>" in operators
    if "2>&" in operators[:-1]:
        raise RunLineError("`2>&1` has to be the last redirection: before another one it means something else")
    for operator, target in command.redirects:
        if operator == "<":
            stdin = (directory / target).read_bytes()
    finished = _call(call, stdin, directory, merge_stderr=merge)
    for operator, target in command.redirects:
        finished = _redirected(finished, operator, target, directory)
    if call.negated:
        finished = Finished(int(finished.code == 0), finished.stdout, finished.stderr)
    return finished


def _without_prefixes(words: list[str]) -> _Invocation:
    """Take `not` and `env NAME=value` off the front of a command."""
    words, negated, environment = list(words), False, dict[str, str]()
    while words and words[0] in ("not", "env"):
        if words.pop(0) == "not":
            negated = not negated
            continue
        while words and (found := _ASSIGNMENT.fullmatch(words[0])):
            environment[found["name"]] = found["value"]
            words.pop(0)
    if not words or words[0].startswith("-"):
        raise RunLineError("`not` and `env NAME=value` need a command after them, and take no options here")
    return _Invocation(words[0], words[1:], negated, environment)


def _call(call: _Invocation, stdin: bytes, directory: Path, *, merge_stderr: bool) -> Finished:
    """Run a program in process if it is a tool, as a process if it is one of the known few."""
    if tool := find_tool(call.program):
        return run_tool(
            tool,
            call.argv,
            program=call.program,
            stdin=stdin,
            merge_stderr=merge_stderr,
            environment=call.environment,
            directory=directory,
        )
    completed = subprocess.run(
        [_process_path(call.program), *call.argv],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
        cwd=directory,
        env={**os.environ, **call.environment},
        check=False,
    )
    return Finished(completed.returncode, completed.stdout, completed.stderr or b"")


def _process_path(program: str) -> str:
    """Return the path of a program that runs as a process of its own."""
    if program in MLIR_TOOLS:
        if path := find_mlir_tool(program):
            return path
        raise RunLineError(f"{program} is not installed, and the test does not say REQUIRES: {program}")
    if program in PROGRAMS and (path := shutil.which(program)):
        return path
    raise RunLineError(f"unknown program {program!r}")


def _redirected(finished: Finished, operator: str, target: str, directory: Path) -> Finished:
    """Send one of the streams where the redirection says; stderr that was merged is in stdout already."""
    code, out, err = finished.code, finished.stdout, finished.stderr
    match operator:
        case "<":
            return finished
        case "2>&" if target == "1":
            return finished
        case ">" | "1>" | "&>":
            (directory / target).write_bytes(out)
            return Finished(code, b"", err)
        case ">>" | "1>>":
            with (directory / target).open("ab") as file:
                file.write(out)
            return Finished(code, b"", err)
        case "2>":
            (directory / target).write_bytes(err)
            return Finished(code, out, b"")
        case _:
            raise RunLineError(f"redirection {operator}{target} is not supported")
