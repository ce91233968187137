"""Long compilations say so: a line on a terminal, and what they are at to programs that ask."""

from __future__ import annotations

import io
import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_models import adding

from glow_mlir import InferenceSession
from glow_mlir.errors import CancelledError
from glow_mlir.support import child_process, slow_work
from glow_mlir.support.activity import say, watching
from glow_mlir.support.cancellation import Cancellation, cancelled_by, check_cancellation
from glow_mlir.support.slow_work import report_when_slow
from glow_mlir.tools.command_line import CLEAR_LINE


class Terminal(io.StringIO):
    """A terminal, of which everything that was written is kept."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal, and nobody who has patience."""
    found = Terminal()
    # pytest puts its own into `sys` in front of the test.
    monkeypatch.setattr(slow_work, "sys", SimpleNamespace(stderr=found))
    monkeypatch.setattr(slow_work, "PATIENCE", 0.0)
    monkeypatch.setattr(child_process, "LOOK", 0)  # Who waits for the process that compiles looks at least once.
    return found


@pytest.mark.usefixtures("hears_ctrl_c")
def test_what_is_slow_is_told_once_and_goes(terminal: Terminal) -> None:
    with report_when_slow("compiling x"):
        for _ in range(3):
            check_cancellation()
        assert terminal.getvalue() == f"{CLEAR_LINE}compiling x …"
    assert terminal.getvalue() == f"{CLEAR_LINE}compiling x …{CLEAR_LINE}"


@pytest.mark.usefixtures("hears_ctrl_c")
def test_what_slow_work_is_at_is_told(terminal: Terminal) -> None:
    with report_when_slow("compiling x"):
        say("compiling: lowered")
        say("packing weights, 32 of 64 MB")
    lines = [f"{CLEAR_LINE}compiling x … {step}" for step in ("lowered", "packing weights, 32 of 64 MB")]
    assert terminal.getvalue() == f"{''.join(lines)}{CLEAR_LINE}"


def test_what_is_quick_is_not_told(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_work, "PATIENCE", 60)
    with report_when_slow("compiling x"):
        check_cancellation()
    assert terminal.getvalue() == ""


def test_nothing_is_told_where_somebody_watches_or_nobody_looks(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watching(lambda _: None), report_when_slow("compiling x"):
        check_cancellation()
    file = io.StringIO()
    for stream in (file, None):
        monkeypatch.setattr(slow_work, "sys", SimpleNamespace(stderr=stream))
        with report_when_slow("compiling x"):
            check_cancellation()
    assert (terminal.getvalue(), file.getvalue()) == ("", "")


def test_what_it_is_part_of_ends_it(terminal: Terminal) -> None:
    call = Cancellation()
    with cancelled_by(call), report_when_slow("compiling x"):
        call.cancel(CancelledError("enough"))
        with pytest.raises(CancelledError):
            check_cancellation()


@pytest.mark.usefixtures("hears_ctrl_c")
def test_where_ctrl_c_is_ignored_the_line_says_what_ends_it(terminal: Terminal) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with report_when_slow("compiling x"):
            check_cancellation()
    finally:
        signal.signal(signal.SIGINT, before)
    assert f"compiling x … (Ctrl-C is ignored here: kill {os.getpid()} ends it)" in terminal.getvalue()


def test_a_terminal_that_lacks_characters_is_written_all_the_same(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Terminal, "encoding", "ascii")
    with report_when_slow("compiling größe"):
        check_cancellation()
    assert "compiling gr??e" in terminal.getvalue()


def free() -> bytes:
    """A model of any size."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "free", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_sessions_tell_of_compilations(terminal: Terminal, backend: str) -> None:
    """Here and in the process that compiles; of one that has free sizes, when it is called."""
    InferenceSession(adding(), cache=False, backend=backend)
    assert "compiling a model …" in terminal.getvalue()
    session = InferenceSession(free(), cache=False, backend=backend)
    before = len(terminal.getvalue())
    session.run(None, {"x": np.zeros((3, 4), np.float32)})
    time.sleep(0.01)
    assert "compiling a model …" in terminal.getvalue()[before:]


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_programs_are_told_what_a_compilation_is_at(terminal: Terminal, backend: str) -> None:
    told = list[str]()
    session = InferenceSession(adding(), cache=False, backend=backend, progress=told.append)
    assert [text for text in told if text in ("compiling: imported", "compiling: lowered")]
    assert session.run(None, {item.name: np.zeros(item.shape, np.float32) for item in session.get_inputs()})
    later = InferenceSession(free(), cache=False, backend=backend, progress=told.append)
    count = len(told)
    later.run(None, {"x": np.zeros((3, 4), np.float32)})
    assert "compiling: optimized" in told[count:]
    assert terminal.getvalue() == ""
