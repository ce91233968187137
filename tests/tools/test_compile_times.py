"""Where the time of compilations and calls goes: parts that sum to what is shown beside them."""

from __future__ import annotations

import importlib
import json
import re
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st
from in_process import run_tool

from glow_mlir import InferenceSession
from glow_mlir.driver.compile_times import FIRST_RUN, PYTHON, CompileTimes
from glow_mlir.driver.pipelines import Stage
from glow_mlir.runtime.artifact import ProfiledStep
from glow_mlir.support.import_clock import ImportClock
from glow_mlir.tools import glow_opt, glow_run
from glow_mlir.tools.reports.latency import Measurement
from glow_mlir.tools.reports.layer_profile import Anchor, Profile

DIGITS = str(ROOT / "examples" / "digits.onnx")
MODULE: Any = None
"""What observers get that do not look at it."""


@pytest.fixture
def slow_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that takes 30 ms to import, and imports another one that takes 20 ms."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "slow_outer.py").write_text("import time\nimport slow_inner\ntime.sleep(0.03)\n")
    (tmp_path / "slow_inner.py").write_text("import time\ntime.sleep(0.02)\n")
    for name in ("slow_outer", "slow_inner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "slow_outer"


def test_imports_are_counted_once(slow_module: str) -> None:
    before = list(sys.meta_path)
    with ImportClock() as clock:
        start = time.perf_counter()
        importlib.import_module(slow_module)
        taken = time.perf_counter() - start
    assert 0.05 <= clock.seconds <= taken
    assert sys.meta_path == before
    counted = clock.seconds
    importlib.reload(sys.modules["slow_inner"])
    assert clock.seconds == counted


def test_clocks_run_beside_each_other(slow_module: str) -> None:
    """Each counts what its own thread imports."""
    before = list(sys.meta_path)
    ready, done = threading.Event(), threading.Event()
    others: list[float] = []

    def measure() -> None:
        with ImportClock() as clock:
            ready.set()
            done.wait()
        others.append(clock.seconds)

    other = threading.Thread(target=measure)
    other.start()
    ready.wait()
    with ImportClock() as outer, ImportClock() as inner:
        importlib.import_module(slow_module)
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("no_such_module_anywhere")
    done.set()
    other.join()
    assert outer.seconds >= inner.seconds - 1e-3
    assert inner.seconds >= 0.05
    assert others == [0.0]
    assert sys.meta_path == before


def test_a_clock_counts_the_thread_that_enters_it(slow_module: str) -> None:
    clock = ImportClock()

    def measure() -> None:
        with clock:
            importlib.import_module(slow_module)

    thread = threading.Thread(target=measure)
    thread.start()
    thread.join()
    assert clock.seconds >= 0.05


def test_a_failing_import_is_none_of_the_next(slow_module: str, tmp_path: Path) -> None:
    (tmp_path / "slow_inner.py").write_text("raise RuntimeError\n")
    with ImportClock() as clock:
        with pytest.raises(RuntimeError):
            importlib.import_module(slow_module)
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("no_such_module_anywhere")
        counted = clock.seconds
        time.sleep(0.02)
        assert clock.seconds == counted


def test_no_stage_is_charged_with_imports_or_observers(slow_module: str) -> None:
    times = CompileTimes([lambda stage, module, seconds: time.sleep(0.05)])
    with times.measuring():
        importlib.import_module(slow_module)
        times(Stage("imported"), MODULE, 0.0)
        times(Stage("optimized"), MODULE, 0.0)
    assert list(times.parts) == [PYTHON, "import", "optimized", "load"]
    assert times.parts[PYTHON] >= 0.05
    assert sum(times.parts.values()) - times.parts[PYTHON] < 0.05
    shown = [float(line.split()[-2]) for line in times.lines()]
    assert shown[0] == pytest.approx(sum(shown[1:]), abs=0.003)


def test_a_run_counts_where_it_compiles() -> None:
    times = CompileTimes()
    with times.measuring():
        pass
    before = dict(times.parts)
    with times.measuring_run():
        pass
    assert times.parts == before
    with times.measuring_run():
        times(Stage("imported"), MODULE, 0.0)
    assert FIRST_RUN in times.parts


def test_the_parts_of_a_compilation_sum_to_the_whole() -> None:
    arguments = [DIGITS, "--bind", "N=1", "--no-cache", "--json", "-"]
    start = time.perf_counter()
    found = json.loads(run_tool(glow_run.main, arguments).stdout)["compilation"]
    taken = time.perf_counter() - start
    assert found["seconds"] == pytest.approx(sum(found["parts"].values()))
    assert 0.1 * taken < found["seconds"] < taken
    assert {"import", "optimized", "allocated", "machine code", "load"} <= found["parts"].keys()


def test_rows_of_passes_sum_to_the_total() -> None:
    text = b"glow_high.placeholder @x : tensor<4xf32> {input}\n"
    lines = (
        run_tool(glow_opt.main, ["-p", "canonicalize,cse", "--mlir-timing"], stdin=text).stderr.decode().splitlines()
    )
    rows = {found[2]: float(found[1]) for line in lines if (found := re.match(r" +([\d.]+) \( *[\d.]+%\)  (.*)", line))}
    assert {"Parser", "canonicalize", "cse", "Imports of Python", "Rest"} < rows.keys()
    assert rows.pop("Total") == pytest.approx(sum(rows.values()), abs=0.0005)


def profile_of(stamps: list[list[int]], latencies: list[int]) -> Profile:
    """A profile of calls with those counters, which count nanoseconds, and latencies in nanoseconds."""
    begins = np.cumsum([0, *latencies[:-1]])
    ends = begins + np.array(latencies)
    steps = [ProfiledStep("kernel", "op", f"node{number}") for number in range(len(stamps[0]) - 1)]
    # The anchor makes a cycle one nanosecond.
    anchor = Anchor(0, stamps[-1][-1] - int(ends[-1]))
    spans = np.zeros((len(stamps), len(steps), 1, 2), np.int64)
    return Profile(steps, np.array(stamps), Measurement(begins, ends), anchor, spans)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 10**6)), min_size=1, max_size=9))
def test_the_parts_of_a_call_sum_to_it(calls: list[tuple[int, int]]) -> None:
    begin, stamps = 10**9, list[list[int]]()
    for inside, _ in calls:
        stamps.append([begin, begin + inside // 2, begin + inside])
    call = profile_of(stamps, [inside + outside for inside, outside in calls]).median_call()
    assert call.total == pytest.approx(call.inside + call.around + call.waiting)
    assert call.around == pytest.approx(min(outside for _, outside in calls) / 1e3, abs=1e-6)
    assert call.waiting >= -1e-9


def test_an_interruption_is_not_the_call_from_python() -> None:
    stamps = [[1000, 2000, 3000]] * 3
    call = profile_of(stamps, [9000, 50_000, 40_000]).median_call()
    assert (call.inside, call.around, call.waiting) == pytest.approx((2.0, 7.0, 31.0))


def test_a_trace_has_a_track_for_each_thread(tmp_path: Path) -> None:
    arguments = [DIGITS, "--bind", "N=64", "--threads", "2", "--trace", "t.json", "--iterations", "3", "--warmup", "0"]
    assert run_tool(glow_run.main, arguments, directory=tmp_path).code == 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert list(names.values()) == ["caller", "worker 1"]
    bars = Counter((names[event["tid"]], event["cat"]) for event in events if event["ph"] == "X")
    assert bars["caller", "request"] == 3
    assert bars["caller", "operator"] % 3 == 0


def test_machine_code_keeps_which_thread_did_what() -> None:
    session = InferenceSession(DIGITS, dimensions={"N": 64}, threads=2, profile=True)
    session.run(None, {"image": np.zeros((64, 1, 8, 8), np.float32)})
    entry = session.machine_entry
    first, last = entry.spans[..., 0], entry.spans[..., 1]
    assert first.any()  # Whichever thread had a part.
    assert ((first == 0) == (last == 0)).all()
    for step, thread in np.argwhere(first):
        assert entry.stamps[step] <= first[step, thread] < last[step, thread] <= entry.stamps[step + 1]


def test_the_parts_of_other_threads_are_on_their_tracks() -> None:
    profile = profile_of([[1000, 3000, 5000]], [6000])
    spans = np.zeros((1, 2, 3, 2), np.int64)
    spans[0, 1] = [[3000, 4900], [3500, 4500], [0, 0]]
    profile = replace(profile, spans=spans)
    assert profile.tracks == ["caller", "worker 1", "worker 2"]
    (part,) = [event for event in profile.events() if event.level == "part"]
    assert (part.track, part.name, part.duration) == ("worker 1", "node1", pytest.approx(1.0))
    (operator,) = [event for event in profile.events() if event.name == "node1" and event.level == "operator"]
    assert part.begin - operator.begin == pytest.approx(0.5)
