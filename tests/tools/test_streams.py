"""The tools where standard output is full or closed: one line or none, and no traceback, also at the very end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

DIGITS = str(ROOT / "examples" / "digits.onnx")
COMMANDS = {
    "glow_opt": ["--list-passes"],
    "glow_import": [DIGITS, "--bind", "N=1", "-o", "-"],
    "glow_run": [DIGITS, "--bind", "N=1", "--backend", "interpreter"],
    "glow_run --help": ["--help"],
    "glow_opt --version": ["--version"],
}


def start(command: str, stdout: int, *, unbuffered: bool) -> subprocess.Popen[bytes]:
    """Start a tool that writes there."""
    module = f"glow_mlir.tools.{command.split()[0]}"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1" if unbuffered else ""}
    argv = [sys.executable, "-m", module, *COMMANDS[command]]
    return subprocess.Popen(argv, stdout=stdout, stderr=subprocess.PIPE, env=environment)


@pytest.mark.parametrize("unbuffered", [False, True])
def test_a_full_disk_under_stdout_is_one_line(unbuffered: bool) -> None:
    with Path("/dev/full").open("wb") as full:
        tools = {command: start(command, full.fileno(), unbuffered=unbuffered) for command in COMMANDS}
    for command, tool in tools.items():
        _, stderr = tool.communicate()
        assert (command, stderr) == (command, b"<stdout>: error: cannot be written: No space left on device\n")
        assert tool.returncode == 1


def test_a_reader_that_has_gone_is_no_error_to_speak_of() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    tools = {command: start(command, writing, unbuffered=False) for command in COMMANDS}
    os.close(writing)
    for command, tool in tools.items():
        _, stderr = tool.communicate()
        assert (command, stderr) == (command, b"")
        assert tool.returncode == 1
