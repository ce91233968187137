"""
Worker threads for the tasks of a call: one pool per thread count in the process.

The worker loop and the distribution of tasks are machine code that comes with the model (`codegen.parallel_pool`). This
module starts and stops the threads, and wakes them where they cannot sleep in machine code. Each is a daemon thread of
Python that stays in one call, without the global lock. A child of `os.fork` starts its own threads. Calls that still
run after `atexit` compute alone.
"""

from __future__ import annotations

import atexit
import ctypes
import platform
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from glow_mlir.errors import GlowError
from glow_mlir.runtime import pool_layout as layout
from glow_mlir.runtime.cores import usable_cores
from glow_mlir.runtime.loader import Functions
from glow_mlir.support.forks import reset_in_forks

LOOKS = 1 << 14
"""The number of polls for work or completion before a thread sleeps: a few tenths of a millisecond."""

GIVING_WAY = 1e-5
"""Seconds for which a thread that cannot sleep on a futex yields while a call has no work for it."""

_NUMBERS = {"x86_64": (202, 24), "AMD64": (202, 24), "aarch64": (98, 124), "arm64": (98, 124)}
"""Machine → the numbers of Linux's system calls `futex` and `sched_yield`."""


def system_call() -> tuple[int, int, int]:
    """The address of libc's `syscall`, and the numbers of `futex` and `sched_yield`; zeros without futexes."""
    numbers = _NUMBERS.get(platform.machine())
    if sys.platform != "linux" or numbers is None or sys.maxsize < 1 << 32:
        return 0, 0, 0
    function = ctypes.cast(ctypes.CDLL(None).syscall, ctypes.c_void_p).value
    return (function, *numbers) if function else (0, 0, 0)


class Pool:
    """
    Threads that compute the tasks of calls, including the caller. Raises `GlowError`, and leaves no threads behind, if
    the system cannot start all of them.

    The library contains the machine code of pools. Without `futex`, threads sleep in Python, as on systems without
    futexes.
    """

    def __init__(self, library: Functions, threads: int, futex: bool = True) -> None:
        self.threads = threads
        self._library = library
        self._memory = _words(layout.words(threads))
        address, wait, give_way = system_call() if futex else (0, 0, 0)
        self._memory[layout.WORKERS] = threads
        # Spinning on a shared core only delays the thread that is waited for.
        self._memory[layout.SPINS] = LOOKS if threads <= usable_cores() else 1
        self._memory[layout.SYSCALL] = address
        self._memory[layout.FUTEX], self._memory[layout.YIELD] = wait, give_way
        self._sleeps = bool(address)
        self._work = library.function("glow_pool_work", (ctypes.c_void_p, ctypes.c_int64), ctypes.c_int32)
        self._stop = library.function("glow_pool_stop", (ctypes.c_void_p,))
        self._parallel = (ctypes.c_void_p * 2)(library.address(_run_of(library)), self._memory.ctypes.data)
        self._busy = threading.Lock()
        self._turn = threading.Condition()
        self._stopped = False
        self._members = [
            threading.Thread(target=self._serve, args=(number,), name=f"glow-{number}", daemon=True)
            for number in range(1, threads)
        ]
        self._start()

    def _start(self) -> None:
        """Start all threads, or none."""
        for count, member in enumerate(self._members):
            try:
                member.start()
            except (RuntimeError, MemoryError) as error:
                self._members = self._members[:count]
                self.stop()
                raise GlowError(
                    f"started only {count} of {self.threads - 1} worker threads",
                    hint="ask for fewer threads, or raise its limit ('ulimit -u')",
                ) from error

    def lease(self) -> AbstractContextManager[ctypes.Array[ctypes.c_void_p] | None]:
        """The `glow_parallel` for one call; `None` if another call uses it."""
        return _Lease(self)

    def begin(self) -> ctypes.Array[ctypes.c_void_p] | None:
        """The `glow_parallel` for a call, which has to `end`; `None` if another call uses it."""
        if not self._busy.acquire(blocking=False):
            return None
        if not self._sleeps:
            self._wake()
        return self._parallel

    def end(self) -> None:
        """Let others use the pool again."""
        self._busy.release()

    def stop(self) -> None:
        """End the threads and wait for them."""
        with self._turn:
            self._stopped = True
            self._stop(self._memory.ctypes.data)
            self._turn.notify_all()
        for member in self._members:
            member.join()

    def _wake(self) -> None:
        """Return threads that sleep in Python to the machine code; they stay there as long as there is a call."""
        with self._turn:
            self._turn.notify_all()

    def _serve(self, number: int) -> None:
        """The main loop of a thread."""
        while self._work(self._memory.ctypes.data, number) != layout.STOPPED:
            if self._busy.locked():
                time.sleep(GIVING_WAY)
            else:
                with self._turn:
                    self._turn.wait_for(lambda: self._stopped or self._busy.locked())


class _Lease(AbstractContextManager["ctypes.Array[ctypes.c_void_p] | None"]):
    """The use of a pool by one call: a class takes a third of the time of a generator."""

    __slots__ = ("_leased", "_pool")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._leased = False

    def __enter__(self) -> ctypes.Array[ctypes.c_void_p] | None:
        parallel = self._pool.begin()
        self._leased = parallel is not None
        return parallel

    def __exit__(self, *_: object) -> None:
        if self._leased:
            self._pool.end()


def _words(count: int) -> np.ndarray:
    """Zeros of 64 bits, on cache lines of their own."""
    raw = np.zeros(count + 2 * layout.LINE, np.int64)
    begin = -raw.ctypes.data % (layout.LINE * 8) // 8
    return raw[begin : begin + count]


class _Pools:
    """The pools of this process, by thread count, and by the function of their objects that runs jobs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[tuple[int, str], Pool] = {}
        self._ended = False

    def find(self, library: Functions, threads: int) -> Pool | None:
        """The pool of that size, created with the library if missing; `None` at exit."""
        key = threads, _run_of(library)
        found = self._pools.get(key)
        if found is None:
            with self._lock:
                found = self._pools.get(key)
                if found is None and not self._ended:
                    found = self._pools[key] = Pool(library, threads)
        return found

    def reset_after_fork(self) -> None:
        """Start over in a child process: it inherits no threads, and locks may be held."""
        self._lock = threading.Lock()
        self._pools = {}

    def stop(self) -> None:
        """End all threads, and start no more."""
        with self._lock:
            pools, self._pools, self._ended = list(self._pools.values()), {}, True
        for pool in pools:
            pool.stop()


_POOLS = reset_in_forks(_Pools())
# Machine code must not run while the interpreter frees its memory.
atexit.register(_POOLS.stop)


def look_up(library: Functions) -> None:
    """Look up the machine code of pools now, because a child of `os.fork` may not be able to."""
    for name in (_run_of(library), "glow_pool_work", "glow_pool_stop"):
        library.address(name)


def _run_of(library: Functions) -> str:
    """The function of an object that runs jobs: tasks of objects of earlier versions take one part at a time."""
    newest, *earlier = layout.RUNS
    try:
        library.address(newest)
    except KeyError:
        return earlier[0]
    return newest


def workers(library: Functions, threads: int) -> AbstractContextManager[ctypes.Array[ctypes.c_void_p] | None]:
    """The `glow_parallel` of that many threads for one call; `None` if another call uses it, or at exit."""
    pool = _POOLS.find(library, threads)
    return nullcontext() if pool is None else pool.lease()
