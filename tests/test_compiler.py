"""A failure of the compiler's own is told by a reproducer, a mistake in the module by its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from models import bert_encoder
from pretended import as_ours
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from glow_mlir import InferenceSession
from glow_mlir.codegen.glow_low_to_scf import GlowLowToScfPass
from glow_mlir.dialects.glow_low.memory import FillOp
from glow_mlir.driver import pass_runner, reproducer
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pipelines import STAGE
from glow_mlir.errors import CacheError, CompilerBugError, ModelError, OptionError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.tools.glow_opt import main
from glow_mlir.transforms.memory.eliminate_dead_stores import EliminateDeadStoresPass
from glow_mlir.transforms.memory.schedule import SchedulePass


def test_crash_writes_a_reproducer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the pass and the file, and the file shows the crash again."""

    @as_ours
    def crash(self: SchedulePass, ctx: Context, op: ModuleOp) -> None:
        raise RuntimeError("out of luck")

    here, cache = tmp_path / "here", tmp_path / "cache"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("GLOW_CACHE_DIR", str(cache))
    monkeypatch.setattr(SchedulePass, "apply", crash)
    expected = "pass 'schedule' failed, a bug of ours: RuntimeError: out of luck"
    with pytest.raises(CompilerBugError, match=expected) as caught:
        Compilation(import_model(bert_encoder(layers=1, length=8))).run()
    (written,) = cache.glob("reproducers-*/glow-reproducer-*.mlir")
    assert str(written) in caught.value.hint
    assert not list(here.iterdir())
    assert main([str(written), "--run-reproducer"]) == 2


UNWRITTEN = """
glow_high.placeholder @y : tensor<64xf32> {output}
glow_low.func @main(@y) {
  %y = glow_low.weight @y {mutable} : memref<64xf32>
  %0 = glow_low.alloc : memref<64xf32>
  glow_low.copy @out %y, @in %0
  glow_low.dealloc @out %0
}
"""
"""Instructions that read what nothing wrote."""


@pytest.mark.parametrize("stage", ["", "optimized", "instructions"])
def test_wrong_instructions_are_no_bug(stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = parse_module(UNWRITTEN, new_context(), "given.mlir")
    if stage:
        module.attributes[STAGE] = StringAttr(stage)
    with pytest.raises(ModelError, match="reads @in source before anything writes it") as caught:
        Compilation(module).run()
    assert caught.value.file == "given.mlir:6:3"
    assert not list(tmp_path.iterdir())


def test_instructions_that_a_pass_breaks_are_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: EliminateDeadStoresPass, ctx: Context, op: ModuleOp) -> None:
        (fill,) = (inner for inner in op.walk() if isinstance(inner, FillOp))
        fill.detach()

    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(EliminateDeadStoresPass, "apply", forget)
    written = UNWRITTEN.replace("  glow_low.copy", "  glow_low.fill @out %0 {value = 1.0 : f32}\n  glow_low.copy")
    with pytest.raises(CompilerBugError, match="pass 'verify-low' failed, a bug of ours: CheckFailed"):
        Compilation(parse_module(written, new_context()), disable=["eliminate-copies"]).run()
    assert list(tmp_path.iterdir())


def test_failure_is_told_where_no_reproducer_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @as_ours
    def crash(self: SchedulePass, ctx: Context, op: ModuleOp) -> None:
        raise RuntimeError("out of luck")

    def refuse(*_: object, **__: object) -> Path:
        raise OptionError("cannot be written: Read-only file system", file="x.mlir")

    monkeypatch.setattr(SchedulePass, "apply", crash)
    monkeypatch.setattr(pass_runner, "write_reproducer", refuse)
    with pytest.raises(CompilerBugError, match="RuntimeError: out of luck") as caught:
        Compilation(import_model(bert_encoder(layers=1, length=8))).run()
    assert "there is no reproducer, since x.mlir cannot be written: Read-only file system" in caught.value.hint


def test_the_cache_keeps_the_newest_reproducers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(reproducer, "MAX_REPRODUCERS", 2)
    module, written = ModuleOp([]), list[Path]()
    for age, name in enumerate(["first", "second", "third"]):
        module.attributes["name"] = StringAttr(name)
        written.append(reproducer.write_reproducer(module, [], RuntimeError(name)))
        os.utime(written[-1], (age, age))
    assert [path.exists() for path in written] == [False, True, True]


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(CacheError, match="cannot be written"):
        reproducer.write_reproducer(ModuleOp([]), [], RuntimeError())


def test_failure_of_the_last_stage_is_a_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    @as_ours
    def crash(self: GlowLowToScfPass, ctx: Context, op: ModuleOp) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(GlowLowToScfPass, "apply", crash)
    with pytest.raises(CompilerBugError, match="stage 'structured' failed, a bug of ours: RuntimeError: out of luck"):
        InferenceSession(bert_encoder(layers=1, length=8), cache=False)
