"""
The layout of a pool of workers, in 64-bit words from its start.

Machine code (`codegen.parallel_pool`) and runtime (`runtime.pool`) share it. Fields written by different threads are on
different cache lines.
"""

LINE = 16
"""Words between fields of different threads: two cache lines, because processors prefetch pairs of lines."""

EPOCH = 0
"""The job number, 32 bits: workers wait for it to change."""
SLEEPERS = LINE
"""The number of workers that sleep, or are about to."""
TASK, DATA = 2 * LINE, 2 * LINE + 1
"""The function of the job, and its argument."""
DONE = 3 * LINE
"""The number of finished tasks of the job."""

WORKERS = 4 * LINE
"""The number of computing threads, including the caller."""
SPINS = 4 * LINE + 1
"""The number of polls in a tight loop before a thread sleeps or yields."""
SYSCALL = 4 * LINE + 2
"""The address of libc's `syscall`, or 0 where threads cannot sleep on an address."""
FUTEX, YIELD = 4 * LINE + 3, 4 * LINE + 4
"""The numbers of the system calls."""
STOP = 4 * LINE + 5
"""Nonzero if the workers have to end."""

NEXT = 5 * LINE
"""For each worker, `LINE` apart: the job number, and the end and the next of the tasks assigned to it."""

RUNS = ("glow_pool_share", "glow_pool_run")
"""
Names of the function that runs a job. Objects of this version have the first, whose tasks take several parts at once;
those of earlier ones have the second, whose tasks take one part.
"""

COUNT_BITS = 32
"""A task gets the number of its first part, and, from this bit on, the number of parts behind it that it has, too."""

MAX_PARTS = (1 << 16) - 1
"""The maximum number of tasks of a job: two task numbers and a job number share a word."""

MAX_THREADS = 1024
"""The maximum number of threads of a pool; each may get several tasks."""

STOPPED, IDLE = 0, 1
"""Why a worker returned: it was stopped, or it waited long and cannot sleep."""


def words(workers: int) -> int:
    """The size of a pool in words."""
    return NEXT + workers * LINE
