"""Calls of host programs that fail, are ended, or follow `os.fork`."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from glow_mlir import InferenceSession, RunOptions
from glow_mlir.errors import CancelledError, ExecutionError, OutOfMemoryError
from glow_mlir.runtime.devices import Buffer
from glow_mlir.runtime.host_device import HostBuffer, HostDevice

LOOKUP = """
builtin.module attributes {glow.devices = [
  #glow.device<"interpreter:0", #glow.target<backend = "interpreter">, own_memory>,
  #glow.device<"interpreter:1", #glow.target<backend = "interpreter">>
]} {
  glow_high.constant @table : tensor<4xf32> {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}
  glow_high.placeholder @count : tensor<2xf32> {state}
  glow_high.placeholder @ids : tensor<2xi64> {input}
  glow_high.placeholder @y : tensor<2xf32> {output}
  glow_high.func @main(@ids, @count, @y) {
    %table = glow_high.get @table : tensor<4xf32>
    %ids = glow_high.get @ids : tensor<2xi64>
    %rows = glow_high.gather %table, %ids {axis = 0, glow.device = "interpreter:0"} : tensor<2xf32> loc("look")
    %moved = glow_high.relu %rows {glow.device = "interpreter:1"} : tensor<2xf32>
    %count = glow_high.get @count {mutable, glow.device = "interpreter:0"} : tensor<2xf32>
    %sum = glow_high.add %count, %moved {glow.device = "interpreter:0"} : tensor<2xf32>
    glow_high.save %sum, @count {glow.device = "interpreter:0"}
    glow_high.save %moved, @y
  }
}
"""

ENDLESS = """
glow_high.func @main(%x: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  %r = glow_high.loop %i = %n (%value = %x) {
    %next = glow_high.sin %value : tensor<4xf32>
    glow_high.yield %next
  } : tensor<4xf32>
  glow_high.return %r
}
"""


def session_of(text: str, folder: Path, devices: str | None = None) -> InferenceSession:
    """A session of a module as text."""
    path = folder / "model.mlir"
    path.write_text(text)
    return InferenceSession(path, devices=devices)


def test_what_fails_before_a_transfer_is_told(tmp_path: Path) -> None:
    session = session_of(LOOKUP, tmp_path)
    with pytest.raises(ExecutionError, match="look"):
        session.run(None, {"ids": np.array([0, 9])})
    # What comes behind a failure is not done.
    assert not session.get_state()["count"].any()
    (found,) = session.run(None, {"ids": np.array([0, 3])})
    assert found.tolist() == [1, 4]
    assert session.get_state()["count"].tolist() == [1, 4]


@pytest.mark.parametrize("room", range(2))
def test_buffers_are_given_back_where_memory_runs_out(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(LOOKUP.replace('interpreter">>', 'interpreter">, own_memory>'), tmp_path)
    held, count = list[object](), itertools.count()
    allocate = HostDevice.allocate

    def limited(device: HostDevice, nbytes: int) -> HostBuffer:
        if next(count) >= room:
            raise OutOfMemoryError("no more room")
        held.append(made := allocate(device, nbytes))
        return made

    def given_back(device: HostDevice, buffer: Buffer) -> None:
        held.remove(buffer)

    with monkeypatch.context() as patched:
        patched.setattr(HostDevice, "allocate", limited)
        patched.setattr(HostDevice, "free", given_back)
        with pytest.raises(OutOfMemoryError, match="no more room"):
            session.run(None, {"ids": np.array([0, 3])})
    assert not held
    assert session.run(None, {"ids": np.array([0, 3])})[0].tolist() == [1, 4]


def test_loop_on_a_device_is_ended(tmp_path: Path) -> None:
    session = session_of(ENDLESS, tmp_path, "cpu,interpreter")
    options = RunOptions()
    timer = threading.Timer(0.2, setattr, (options, "terminate", True))
    timer.start()
    with pytest.raises(CancelledError):
        session.run(None, {"x": np.ones(4, np.float32), "n": np.int64(1 << 60)}, options)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_ends_a_loop_on_a_device(tmp_path: Path) -> None:
    session = session_of(ENDLESS, tmp_path, "cpu,interpreter")
    x = np.ones(4, np.float32)
    timer = threading.Timer(0.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        session.run(None, {"x": x, "n": np.int64(1 << 60)})
    # The queue has ended it, too: it takes the next call.
    np.testing.assert_allclose(session.run(None, {"x": x, "n": np.int64(1)})[0], np.sin(x), rtol=1e-6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_child_of_a_fork_has_its_own_queues(tmp_path: Path) -> None:
    session = session_of(ENDLESS, tmp_path, "cpu,interpreter")
    inputs = {"x": np.ones(4, np.float32), "n": np.int64(1)}
    (expected,) = session.run(None, inputs)
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(0 if (session.run(None, inputs)[0] == expected).all() else 1)
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0:
        time.sleep(0.01)
    assert done[1] == 0
