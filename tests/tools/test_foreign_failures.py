"""Failures in passes and operators of other packages: the line of their code is named, and no bug of ours."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from in_process import Finished, run_tool
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from glow_mlir.driver import pipelines
from glow_mlir.support.blame import foreign_location, is_foreign
from glow_mlir.tools import glow_opt

TEXT = 'glow_high.placeholder @x : tensor<4xf32> {input} loc("input")\n'

PASS = """\
from dataclasses import dataclass

import numpy as np
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException
from xdsl.dialects.builtin import ModuleOp, i32


def helper(op):
    BODY


@dataclass(frozen=True)
class MinePass(ModulePass):
    name = "mine"

    def apply(self, ctx, op):
        helper(op)
"""

BODIES = {
    "raise KeyError('nothing here')": ":10:5: error: pass 'mine' failed: KeyError: 'nothing here' (hint: --debug",
    "np.zeros(3).reshape(2)": ":10:5: error: pass 'mine' failed: ValueError: cannot reshape",
    "raise VerifyException('made it')": ":10:5: error: pass 'mine' failed: VerifyException: made it (hint: --debug",
    "next(iter(op.body.block.ops)).properties.pop('input')": "<stdin>:1:1: error: node 'input': pass 'mine' gives "
    "invalid IR: glow_high.placeholder: a placeholder is",
    "raise PassFailedException('not for this')": "<stdin>: error: mine: not for this",
}


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of another package with a pass, which is registered."""
    path = tmp_path / "my_package.py"
    known = pipelines.available_passes

    def loaded() -> object:
        spec = importlib.util.spec_from_file_location("my_package", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "my_package", module)
        spec.loader.exec_module(module)
        return module.MinePass

    monkeypatch.setattr(pipelines, "available_passes", lambda: {**known(), "mine": loaded})
    return path


def run(*options: str, folder: Path) -> Finished:
    """Run glow-opt with the pass."""
    return run_tool(glow_opt.main, ["-p", "mine", *options], stdin=TEXT.encode(), directory=folder)


@pytest.mark.parametrize("body", BODIES)
def test_the_line_of_the_pass_is_named(body: str, mine: Path, tmp_path: Path) -> None:
    mine.write_text(PASS.replace("BODY", body))
    finished = run(folder=tmp_path)
    first, *notes = finished.stderr.decode().splitlines()
    assert finished.code == 1
    assert BODIES[body] in first
    assert "bug of ours" not in first
    assert first.startswith(("<stdin>", str(mine)))
    assert [note.partition(": ")[2] for note in notes] == ["note: pass 'mine' is defined here"] * ("invalid" in first)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [mine.name]


def test_a_traceback_and_a_reproducer_come_on_request(mine: Path, tmp_path: Path) -> None:
    mine.write_text(PASS.replace("BODY", "1 / 0"))
    assert b"in helper" in run("--debug", folder=tmp_path).stderr
    line = run("--mlir-pass-pipeline-crash-reproducer", "r.mlir", folder=tmp_path).stderr.decode()
    assert "ZeroDivisionError" in line
    assert "r.mlir" in line
    again = run_tool(glow_opt.main, ["r.mlir", "--run-reproducer"], directory=tmp_path)
    assert again.stderr.decode().startswith(f"{mine}:10:5: error: pass 'mine' failed: ZeroDivisionError")


def test_a_pass_of_the_library_that_fails_is_no_bug_of_ours(tmp_path: Path) -> None:
    finished = run_tool(glow_opt.main, ["-p", "apply-eqsat-pdl-interp"], stdin=TEXT.encode(), directory=tmp_path)
    assert finished.code == 1
    expected = b"<stdin>: error: pass 'apply-eqsat-pdl-interp' of xdsl failed: AssertionError (hint: "
    assert finished.stderr.startswith(expected)
    assert list(tmp_path.iterdir()) == []


ORDERED = """
func.func @main() {
  %value = "test.op"() : () -> i32
  func.return
}
"""


def test_invalid_ir_of_a_pass_of_the_library_is_no_bug_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def misplace(self: DeadCodeElimination, ctx: Context, op: ModuleOp) -> None:
        (function,) = op.body.block.ops
        value = function.regions[0].block.first_op
        assert value is not None
        function.regions[0].block.insert_op_before(test.TestOp(operands=value.results), value)

    monkeypatch.setattr(DeadCodeElimination, "apply", misplace)
    finished = run_tool(glow_opt.main, ["-p", "dce"], stdin=ORDERED.encode(), directory=tmp_path)
    assert finished.code == 1
    line = finished.stderr.decode()
    assert "error: pass 'dce' of xdsl gives invalid IR: test.op: an operand is used before its definition" in line
    assert "bug of ours" not in line


def test_a_target_of_the_library_that_fails_is_no_bug_of_ours(tmp_path: Path) -> None:
    attributes = '{sym_name = "f", function_type = () -> (), sym_visibility = "nobody"}'
    text = f'"riscv_func.func"() ({{ "riscv_func.return"() : () -> () }}) {attributes} : () -> ()'
    finished = run_tool(glow_opt.main, ["-t", "riscv-asm"], stdin=text.encode(), directory=tmp_path)
    assert finished.code == 1
    assert finished.stderr.decode().startswith("<stdin>: error: riscv-asm: Unexpected visibility nobody")


def test_deprecated_passes_are_told(tmp_path: Path) -> None:
    finished = run_tool(glow_opt.main, ["-p", "test-deprecation"], stdin=b"", directory=tmp_path)
    assert finished.code == 0
    assert finished.stderr == b"glow-opt: warning: DeprecationWarning: hello\n"


def test_our_own_code_and_libraries_are_not_foreign() -> None:
    import json

    import xdsl

    for module in (pipelines, glow_opt, xdsl, json):
        assert not is_foreign(str(module.__file__))
    assert is_foreign(__file__)
    with pytest.raises(ValueError, match="property name") as caught:
        json.loads("{")
    assert foreign_location(caught.value).startswith(f"{__file__}:")
