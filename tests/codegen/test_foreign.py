"""Emission for other architectures: what ends LLVM is one line, and what was interrupted leaves nothing behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.llvm import foreign
from glow_mlir.codegen.llvm.machines import native_architecture
from glow_mlir.codegen.llvm.objects import assembly_text, compile_text
from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.support import child_process
from glow_mlir.support.child_process import read_parts

FATAL = """
define <4 x i32> @f(<4 x i1> %mask, <4 x i32> %x) {
  %1 = select <4 x i1> %mask, <4 x i32> %x, <4 x i32> zeroinitializer
  ret <4 x i32> %1
}
"""
"""A module that LLVM gives up on for Helium, by a fatal error: its calling convention has no masks."""

RIGHT = "define i32 @NAME(i32 %x) {\n  ret i32 %x\n}\n"


def test_what_ends_llvm_is_one_line_and_the_next_module_is_compiled() -> None:
    reason = r"LLVM refuses the module for thumbv8\.1m\.main-unknown-none-eabihf: LLVM ERROR: unable to allocate"
    with pytest.raises(EmissionError, match=reason) as caught:
        compile_text(FATAL, PRESETS["cortex-m55"])
    assert "\n" not in str(caught.value)
    assert "bx\tlr" in assembly_text(RIGHT, PRESETS["cortex-m55"])


def test_what_llvm_does_not_parse_is_one_line() -> None:
    target = PRESETS["riscv64" if native_architecture() != "riscv64" else "neon"]
    with pytest.raises(EmissionError, match=f"LLVM refuses the module for {target.triple}: .*expected") as caught:
        compile_text("define nonsense", target)
    assert "\n" not in str(caught.value)


def test_the_answer_to_an_interrupted_request_is_not_taken_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> list[bytes]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(child_process, "read_parts", interrupted)
        with pytest.raises(KeyboardInterrupt):
            assembly_text(RIGHT.replace("NAME", "first"), PRESETS["cortex-m4"])
    assert "second:" in assembly_text(RIGHT.replace("NAME", "second"), PRESETS["cortex-m4"])


def test_the_child_imports_what_its_parent_does_and_nothing_from_the_current_folder(tmp_path: Path) -> None:
    for name in ("tempfile", "types", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this is not the library')\n")
    (tmp_path / "glow_mlir").mkdir()
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import json, tempfile, types
from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.llvm.objects import assembly_text
sys.exit("f:" not in assembly_text("define i32 @f(i32 %x) {\\n  ret i32 %x\\n}\\n", PRESETS["cortex-m4"]))
"""
    # As a script's folder is in front of its path.
    program = program.replace("from glow", "sys.path.insert(0, '.')\nfrom glow", 1)
    command = [sys.executable, "-P", "-c", program, str(ROOT)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_part_of_an_answer_is_none() -> None:
    whole = b"".join(len(part).to_bytes(8, "little") + part for part in (b"failure", b"data"))
    for length in range(len(whole)):
        one, other = socket.socketpair()
        with other:
            with one:
                one.sendall(whole[:length])
            assert len(read_parts(other, 2)) == (length >= 15)


def test_a_forked_process_does_not_speak_to_the_child_of_another() -> None:
    assert assembly_text(RIGHT, PRESETS["cortex-m4"])
    forked = os.fork()
    if not forked:
        os._exit(len(foreign._CHILDREN.idle))  # pyright: ignore[reportPrivateUsage]
    _, status = os.waitpid(forked, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert "again:" in assembly_text(RIGHT.replace("NAME", "again"), PRESETS["cortex-m4"])
