"""The collector of cyclic garbage is as it was, whatever happens while it is away."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.driver.pipelines import PassObserver
from glow_mlir.errors import GlowError, ModelError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.support.collector import collected_soon, without_collector

USUAL = 700
"""The threshold that a test begins with."""


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Begin without garbage of compilations, and leave the collector on, as it is by default."""
    before = _settled()
    gc.set_threshold(USUAL, *before[1:])
    yield
    _settled()
    gc.set_threshold(*before)
    gc.enable()


def _settled() -> tuple[int, int, int]:
    """The thresholds when no garbage of a compilation is left to be collected."""
    limit = time.monotonic() + 30
    while any(thread.name == "glow-garbage" for thread in threading.enumerate()):
        assert time.monotonic() < limit
        time.sleep(0.01)
    return gc.get_threshold()


def test_it_comes_back() -> None:
    with without_collector():
        assert not gc.isenabled()
        with without_collector():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_stays_off_for_those_who_want_it_off() -> None:
    gc.disable()
    with without_collector():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_it_comes_back_after_a_failure() -> None:
    with pytest.raises(GlowError), without_collector():
        raise GlowError("away")
    assert gc.isenabled()
    with pytest.raises(ModelError):
        import_model(b"no model")
    assert gc.isenabled()


def test_passes_run_without_it() -> None:
    seen: list[bool] = []

    class Watch(PassObserver):
        def before(self, item: ModulePass, module: ModuleOp) -> None:
            seen.append(gc.isenabled())

    Compilation(ModuleOp([]), runner=PassRunner(Context(), [Watch()])).run(until="optimized")
    assert seen
    assert not any(seen)
    assert gc.isenabled()


def test_garbage_of_a_compilation_waits_until_later() -> None:
    usual, seen = gc.get_threshold(), list[int]()

    def told(phase: str, info: dict[str, int]) -> None:
        seen.append(info["generation"])

    with without_collector(), collected_soon():
        loops: list[list[object]] = [[] for _ in range(10 * usual[0])]
        for loop in loops:
            loop.append(loop)
        del loop, loops
    gc.callbacks.append(told)
    try:
        assert gc.isenabled()
        kept = [[number] for number in range(2 * usual[0])]
        assert (len(kept), seen) == (2 * usual[0], [])
        limit = time.monotonic() + 30
        while gc.get_threshold() != usual and time.monotonic() < limit:
            time.sleep(0.01)
    finally:
        gc.callbacks.remove(told)
    assert gc.get_threshold() == usual
    assert 1 in seen


def test_a_threshold_that_others_set_stays() -> None:
    usual = gc.get_threshold()
    with collected_soon():
        pass
    gc.set_threshold(5000)
    try:
        time.sleep(0.4)
        assert gc.get_threshold()[0] == 5000
    finally:
        gc.set_threshold(*usual)
