"""The tools where standard output is full or closed: one line or none, and no traceback, also at the very end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

from glow_mlir.tools import glow_opt
from glow_mlir.tools.reports.plain_text import plain

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


@pytest.mark.long
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


def test_a_closed_stdin_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert glow_opt.main([]) == 1
    sys.stdin.close()
    assert capsys.readouterr().err == "<stdin>: error: is closed (hint: name a file instead)\n"


def test_a_closed_stdout_matters_where_something_goes_to_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.mlir").write_text("builtin.module {\n}\n")
    for arguments, code, said in (
        (["x.mlir"], 1, "<stdout>: error: is closed (hint: name a file instead)\n"),
        (["x.mlir", "-o", "y.mlir"], 0, ""),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", None)
            assert glow_opt.main(arguments) == code
            sys.stdout.close()
        assert capsys.readouterr().err == said
    assert Path("y.mlir").exists()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_streams_take_what_their_encoding_has_not(encoding: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "glow_mlir.tools.glow_compile", DIGITS, "--bind", "N=1", "-o", str(tmp_path / "→")]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([*command, "--target", "cortex-m4"], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert ("10x10" if encoding == "ascii" else "10×10") in done.stdout.decode(encoding)
    environment["PYTHONIOENCODING"] = f"{encoding}:strict"
    missing = [sys.executable, "-m", "glow_mlir.tools.glow_run", str(tmp_path / "größe→"), "--debug"]
    done = subprocess.run(missing, env=environment, capture_output=True, check=False)
    assert done.returncode == 1
    assert "cannot be read" in done.stderr.decode(encoding)


def test_what_tools_print_has_a_form_in_ascii() -> None:
    paths = [path for folder in ("tools", "glow_mlir/bundle") for path in (ROOT / folder).rglob("*.py")]
    used = {char for path in paths for char in path.read_text(encoding="utf-8") if not char.isascii()}
    assert {"→", "×", "µ"} <= used
    assert [char for char in sorted(used) if "\\" in plain(char)] == []
    assert plain("é→") == "\\xe9->"
