"""The pool of workers: every part runs once, whoever takes it; busy pools, forks and the end of the process."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from glow_mlir.backends.cpu.targets import PRESETS, host_target
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import i64, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbols import undefined_symbols
from glow_mlir.codegen.parallel_pool import emit_pool
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.errors import GlowError
from glow_mlir.runtime import pool_layout as layout
from glow_mlir.runtime.loader import Library
from glow_mlir.runtime.pool import Pool, system_call, workers


def counting_module(target: str = "host") -> bytes:
    """
    The pool, and two tasks: one counts how often each part ran and adds up who ran it; the other counts its parts, and
    how many of them saw two begin.
    """
    module = ModuleBuilder(host_target() if target == "host" else PRESETS[target])
    emit_pool(module)
    with define_function(module, "count", [ptr, i64, i64]) as (b, (data, parts, worker)):
        first = parts & ((1 << layout.COUNT_BITS) - 1)
        with b.loop(first, first + b.lshr(parts, layout.COUNT_BITS) + 1) as part:
            with b.loop(0, (part * 7919) % 64):  # Parts take different times.
                b.pause()
            b.atomic("add", data.at(part * 2, i64), 1, i64, "monotonic")
            b.atomic("add", data.at(part * 2 + 1, i64), worker, i64, "monotonic")
    with define_function(module, "hold", [ptr, i64, i64]) as (b, (data, parts, worker)):
        # Worker 1 keeps its first parts until all others are done, and then records how many they were.
        count = b.lshr(parts, layout.COUNT_BITS) + 1
        with b.when(worker.eq(0)):
            b.atomic("add", data, count, i64)
        with b.when(worker.ne(0)):
            b.atomic("add", data.at(1, i64), count, i64)

            def wait(_: Value, left: Value) -> list[Value]:
                b.pause()
                return [b.atomic_load(data, i64), left - 1]

            def is_missing(done: Value, left: Value) -> Value:
                return (done + b.atomic_load(data.at(1, i64), i64)).ne(data.at(2, i64).load(i64)) & (left > 0)

            b.repeat([b.atomic_load(data, i64), b.constant(1 << 24, i64)], wait, is_missing)
    with define_function(module, "meet", [ptr, i64, i64]) as (b, (data, _, _)):
        b.atomic("add", data, 1, i64)

        def look(_: Value, left: Value) -> list[Value]:
            b.pause()
            return [b.atomic_load(data, i64), left - 1]

        def is_alone(count: Value, left: Value) -> Value:
            return (count < 2) & (left > 0)

        count = b.repeat([b.atomic_load(data, i64), b.constant(1 << 24, i64)], look, is_alone)[0]
        with b.when(count >= 2):
            b.atomic("add", data.at(1, i64), 1, i64)
    return compile_text(emit_module(flattened(module.module)), module.target)


@cache
def library() -> Library:
    return Library(counting_module())


RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def run(pool: Pool, parts: int, times: int = 1) -> np.ndarray:
    """How often each part ran in so many jobs, and the sum of who ran it."""
    counts = np.zeros((parts, 2), np.int64)
    with pool.lease() as parallel:
        assert parallel is not None
        for _ in range(times):
            RUN(parallel[0])(parallel[1], library().address("count"), counts.ctypes.data, parts)
    return counts


@pytest.fixture(params=[True, False], ids=["futex", "python"])
def futex(request: pytest.FixtureRequest) -> bool:
    """Whether threads sleep in a futex, or in Python."""
    if request.param and not system_call()[0]:
        pytest.skip("this system has no futex")
    return request.param


@pytest.mark.parametrize("machine", sorted(name for name, target in PRESETS.items() if target.pointer_bits == 64))
def test_the_code_has_no_undefined_symbols(machine: str):
    assert undefined_symbols(counting_module(machine)) == ()


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_part_runs_once(threads: int, futex: bool):
    pool = Pool(library(), threads, futex)
    try:
        for parts in (1, 2, threads, 4 * threads + 1, 100):
            counts = run(pool, parts, times=50)
            assert (counts[:, 0] == 50).all()
            assert (counts[:, 1] <= 50 * (threads - 1)).all()
    finally:
        pool.stop()


def test_workers_that_sleep_are_woken(futex: bool):
    """Two parts meet: each waits, for a while, until the other has begun."""
    pool = Pool(library(), 2, futex)
    try:
        memory = pool._memory  # pyright: ignore[reportPrivateUsage]
        for _ in range(3):
            while futex and not memory[layout.SLEEPERS]:
                threading.Event().wait(0.001)
            threading.Event().wait(0.01)
            begun = np.zeros(2, np.int64)
            with pool.lease() as parallel:
                assert parallel is not None
                RUN(parallel[0])(parallel[1], library().address("meet"), begun.ctypes.data, 2)
            assert begun.tolist() == [2, 2]
    finally:
        pool.stop()


def test_a_worker_that_is_held_up_keeps_no_parts_from_others():
    """While one thread stays with the first half of its share, the other takes all that is left."""
    pool = Pool(library(), 2)
    parts = 64
    try:
        for _ in range(20):
            done = np.array([0, 0, parts], np.int64)
            with pool.lease() as parallel:
                assert parallel is not None
                RUN(parallel[0])(parallel[1], library().address("hold"), done.ctypes.data, parts)
            assert done[0] + done[1] == parts
            assert done[1] <= parts // 4
    finally:
        pool.stop()


def test_objects_of_earlier_versions_have_pools_of_their_own():
    """Their tasks take one part at a time, so that no other pool may run them."""

    class Earlier:
        """An object whose function that runs jobs has the name of before."""

        def function(
            self, name: str, arguments: Sequence[type[Any]], result: type[Any] | None = None
        ) -> Callable[..., Any]:
            return library().function(name, arguments, result)

        def address(self, name: str) -> int:
            if name == layout.RUNS[0]:
                raise KeyError(name)
            return library().address(layout.RUNS[0] if name in layout.RUNS else name)

    with workers(library(), 2) as newest, workers(Earlier(), 2) as earlier:
        assert newest is not None
        assert earlier is not None
        assert newest[1] != earlier[1]


def test_a_pool_serves_one_call_at_a_time():
    pool = Pool(library(), 2)
    try:
        with pool.lease() as first, pool.lease() as second:
            assert first is not None
            assert second is None
        with pool.lease() as again:
            assert again is not None
    finally:
        pool.stop()


def test_many_callers_at_once():
    """Those that get no workers do nothing here; the jobs of the others must not mix."""

    def call(wrong: list[int]) -> None:
        for _ in range(100):
            counts = np.zeros((9, 2), np.int64)
            with workers(library(), 3) as parallel:
                if parallel is not None:
                    RUN(parallel[0])(parallel[1], library().address("count"), counts.ctypes.data, 9)
                    wrong.extend([1] * int((counts[:, 0] != 1).any()))

    wrong: list[int] = []
    callers = [threading.Thread(target=call, args=(wrong,)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.parametrize("started", [0, 2])
def test_all_threads_start_or_none(monkeypatch: pytest.MonkeyPatch, started: int, futex: bool):
    start, left = threading.Thread.start, [started]

    def limited(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    before = threading.active_count()
    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(GlowError, match=f"only {started} of 5 worker threads .*hint: ask for fewer"):
        Pool(library(), 6, futex)
    assert threading.active_count() == before
    size = 20 + 2 * started + futex  # A pool that no other test has made.
    with pytest.raises(GlowError), workers(library(), size):
        pass
    monkeypatch.undo()
    with workers(library(), size) as parallel:
        assert parallel is not None, "what failed is not remembered"


def in_child(script: str) -> str:
    """What a process prints that runs a script and ends by itself."""
    folder = os.path.dirname(__file__)
    head = f"import sys; sys.path[:0] = [{folder!r}]\nfrom test_pool import *\n"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", head + script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_process_ends_while_workers_wait():
    assert in_child("with workers(library(), 4) as parallel: print(parallel is not None)") == "True"


def test_calls_at_the_end_of_a_process_compute_alone():
    script = """
from glow_mlir.runtime import pool
with workers(library(), 4): pass
pool._POOLS.stop()
with workers(library(), 4) as parallel: print(parallel, threading.active_count())
"""
    assert in_child(script) == "None 1"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_may_fork_while_another_thread_computes():
    script = """
ended = threading.Event()

def one(times=1):
    counts = np.zeros((8, 2), np.int64)
    with workers(library(), 3) as parallel:
        for _ in range(times):
            if parallel is not None:
                RUN(parallel[0])(parallel[1], library().address("count"), counts.ctypes.data, 8)
    return parallel is not None and (counts[:, 0] == times).all()

def call():
    while not ended.is_set():
        one(10)

one()
caller = threading.Thread(target=call)
caller.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        os._exit(0 if one() else 1)
    print(os.waitpid(child, 0)[1], end="")
ended.set()
caller.join()
"""
    assert in_child(script) == "0" * 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_workers_of_its_own():
    script = """
def one():
    counts = np.zeros((8, 2), np.int64)
    with workers(library(), 2) as parallel:
        RUN(parallel[0])(parallel[1], library().address("count"), counts.ctypes.data, 8)
    assert (counts[:, 0] == 1).all()
    return len([t for t in threading.enumerate() if t.name.startswith("glow-")])
one()
with workers(library(), 2):  # A fork in the middle of a call: the child finds the pool free.
    child = os.fork()
if child == 0:
    print(one(), flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
one()
"""
    assert in_child(script) == "1"
