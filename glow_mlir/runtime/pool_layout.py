"""
Where the fields of a pool of workers are, in words of 64 bits from its start.

Machine code (`codegen.parallel_pool`) and runtime (`runtime.pool`) share it. Fields that different threads write stand
on lines of the cache of their own.
"""

LINE = 16
"""Words between fields of different threads: two lines of the cache, since processors fetch pairs of them."""

EPOCH = 0
"""The number of the job, of 32 bits: workers wait for it to change."""
SLEEPERS = LINE
"""How many workers sleep, or are about to."""
TASK, DATA = 2 * LINE, 2 * LINE + 1
"""The function of the job, and what it gets."""
DONE = 3 * LINE
"""How many parts of the job are finished."""

WORKERS = 4 * LINE
"""How many threads compute, the caller among them."""
SPINS = 4 * LINE + 1
"""How often a thread looks, in a tight loop, before it sleeps or gives way."""
SYSCALL = 4 * LINE + 2
"""The address of libc's `syscall`, or 0 where threads cannot sleep on an address."""
FUTEX, YIELD = 4 * LINE + 3, 4 * LINE + 4
"""The numbers of these system calls."""
STOP = 4 * LINE + 5
"""Not 0 where the workers have to end."""

NEXT = 5 * LINE
"""For each worker, `LINE` apart: number of the job, end and next one of the parts that are meant for it."""

MAX_PARTS = (1 << 16) - 1
"""Into how many parts a job may be cut: two of their numbers and that of the job share a word."""

MAX_THREADS = 1024
"""How many threads a pool may have; each may get several parts."""

STOPPED, IDLE = 0, 1
"""Why a worker came back: it was stopped, or waited long and cannot sleep."""


def words(workers: int) -> int:
    """The size of a pool."""
    return NEXT + workers * LINE
