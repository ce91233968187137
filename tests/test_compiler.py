"""A failure of the compiler's own is told by a reproducer."""

from __future__ import annotations

from pathlib import Path

import pytest
from models import bert_encoder
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.compiler import Compilation
from glow_mlir.errors import CompilerBugError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.tools.glow_opt import main
from glow_mlir.transforms.schedule import SchedulePass


def test_crash_writes_a_reproducer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the pass and the file, and the file shows the crash again."""

    def crash(self: SchedulePass, ctx: Context, op: ModuleOp) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SchedulePass, "apply", crash)
    with pytest.raises(CompilerBugError, match=r"RuntimeError in pass 'schedule': out of luck") as caught:
        Compilation(import_model(bert_encoder(layers=1, length=8))).run()
    (written,) = tmp_path.glob("glow-reproducer-*.mlir")
    assert written.name in caught.value.hint
    assert main([str(written), "--run-reproducer"]) == 2
