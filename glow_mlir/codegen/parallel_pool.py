"""
The pool of workers, as machine code: a parallel-for that costs about a microsecond if its workers are awake.

    share(pool, task, data, parts) for the caller, the `run` of `glow_parallel`: it returns when all is done
    work(pool, worker)             for a worker: it runs until it is stopped
    stop(pool)                     ends all workers

Every thread has a share of the parts, the same for each job, so that it meets the same part of each tensor again and
finds it in its cache. It takes half of what is left of its share, from the front, until nothing is left: first many
parts in one call, then few. Then it takes halves from the ends of the shares of others, so that a thread on a slower
core, or one that is interrupted, keeps the others waiting for little. The caller works too, and waits for parts, not
for workers, so that it can finish alone. Each share is one word, `number of the job, end, next part`, which is changed
by compare-and-exchange. A late worker finds another number and changes nothing. A worker that gets a part knows that
its job is not finished, so that the fields that describe the job are still valid.

Waiting threads first poll one word in a tight loop. Then a worker sleeps in a futex on the number of the job, and the
caller yields to other threads of the system. `syscall` of libc is passed as a pointer, since the code has no undefined
symbols. Without it, the worker returns, and its thread has to sleep in another way.
"""

from __future__ import annotations

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import i32, i64, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.runtime import pool_layout as layout
from glow_mlir.support.dataclass import dataclass

RUN, WORK, STOP = layout.RUNS[0], "glow_pool_work", "glow_pool_stop"
"""Names of the functions."""

_CLAIM, _WAKE = "glow_pool.claim", "glow_pool.wake"

_FUTEX_WAIT, _FUTEX_WAKE = 128, 129
"""Operations of the system call `futex`, on addresses of one process."""

_PART_BITS, _JOB_BITS = 16, 32
_PART_MASK, _JOB_MASK = (1 << _PART_BITS) - 1, (1 << _JOB_BITS) - 1


def emit_pool(module: ModuleBuilder) -> None:
    """Add the functions of the pool to a module."""
    with define_function(module, _WAKE, [ptr], internal=True, inline=False) as (b, (pool,)):
        _Pool(b, pool).wake()
    with define_function(module, _CLAIM, [ptr, i64, i64], internal=True, inline=False) as (b, (pool, worker, job)):
        _Pool(b, pool).claim(worker, job)
    with define_function(module, RUN, [ptr, ptr, ptr, i64]) as (b, (pool, task, data, parts)):
        _Pool(b, pool).run(task, data, parts)
    with define_function(module, WORK, [ptr, i64], result=i32) as (b, (pool, worker)):
        b.give_back(_Pool(b, pool).work(worker))
    with define_function(module, STOP, [ptr]) as (b, (pool,)):
        _Pool(b, pool).stop()


@dataclass(frozen=True)
class _Pool:
    """Code that works on the pool at an address."""

    b: Builder
    pool: Value

    def field(self, position: int) -> Value:
        """The address of a field."""
        return self.pool.at(position, i64)

    def setting(self, position: int) -> Value:
        """A field that does not change."""
        return self.field(position).load(i64)

    def share(self, worker: Value) -> Value:
        """The address of the word with a worker's share."""
        return self.pool.at(worker * layout.LINE + layout.NEXT, i64)

    def run(self, task: Value, data: Value, parts: Value) -> None:
        """Publish a job, take part in it, and wait for its end."""
        b, workers = self.b, self.setting(layout.WORKERS)
        job = (b.cast(self._epoch("monotonic"), i64, signed=False) + 1) & _JOB_MASK
        b.atomic_store(task, self.field(layout.TASK), ptr, "monotonic")
        b.atomic_store(data, self.field(layout.DATA), ptr, "monotonic")
        b.atomic_store(0, self.field(layout.DONE), i64, "monotonic")
        with b.loop(0, workers) as worker:
            begin, end = (parts * worker) // workers, (parts * (worker + 1)) // workers
            word = (job << _JOB_BITS) | (end << _PART_BITS) | begin
            b.atomic_store(word, self.share(worker), i64)
        b.atomic("xchg", self.field(layout.EPOCH), b.cast(job, i32), i32)
        with b.when(b.atomic_load(self.field(layout.SLEEPERS), i64, "seq_cst").ne(0)):
            b.call(_WAKE, [self.pool])
        b.call(_CLAIM, [self.pool, 0, job])
        self._wait_for(parts)

    def _wait_for(self, parts: Value) -> None:
        """Wait until that many parts are done."""
        b, done = self.b, self.field(layout.DONE)

        def look(_: Value, left: Value) -> list[Value]:
            b.pause()
            with b.when(left.eq(0) & self._sleeps()):
                self._system(layout.YIELD, [b.constant(0, i64)] * 4)
            return [b.atomic_load(done, i64), b.max(left - 1, 0)]

        def is_missing(count: Value, _: Value) -> Value:
            return count.ne(parts)

        b.repeat([b.atomic_load(done, i64), self.setting(layout.SPINS)], look, is_missing)

    def claim(self, worker: Value, job: Value) -> None:
        """Run parts of a job as long as there are any, first those of the worker's own share, from its front."""
        b, workers = self.b, self.setting(layout.WORKERS)

        def bounds(word: Value) -> tuple[Value, Value]:
            """The next part of a share, and the end of the share."""
            return word & _PART_MASK, b.lshr(word, _PART_BITS) & _PART_MASK

        with b.loop(0, workers) as turn:
            share, own = self.share((worker + turn) % workers), turn.eq(0)

            def take(word: Value, share: Value = share, own: Value = own) -> list[Value]:
                begin, end = bounds(word)
                count = b.lshr(end - begin + 1, 1)
                left = b.select(own, word + count, word - (count << _PART_BITS))
                with b.when(b.exchange_if(share, word, left)):
                    # Read behind the exchange: the end of the pool, too, changes the number of the job.
                    task = b.atomic_load(self.field(layout.TASK), ptr, "monotonic")
                    data = b.atomic_load(self.field(layout.DATA), ptr, "monotonic")
                    first = b.select(own, begin, end - count)
                    b.call_pointer(task, [data, first | ((count - 1) << layout.COUNT_BITS), worker])
                    b.atomic("add", self.field(layout.DONE), count, i64, "release")
                return [b.atomic_load(share, i64)]

            def is_open(word: Value) -> Value:
                begin, end = bounds(word)
                return b.lshr(word, _JOB_BITS).eq(job) & (begin < end)

            b.repeat([b.atomic_load(share, i64)], take, is_open)

    def work(self, worker: Value) -> Value:
        """Wait for jobs and take part in them; returns why it ended."""
        b = self.b

        def step(seen: Value, _: Value) -> list[Value]:
            epoch = self._awaited(seen)
            fresh = epoch.ne(seen)
            with b.when(fresh):
                b.call(_CLAIM, [self.pool, worker, b.cast(epoch, i64, signed=False)])
            with b.when(epoch.eq(seen) & self._sleeps()):
                self._sleep(seen)
            return [epoch, (fresh | self._sleeps()) & self._stopped().eq(0)]

        def goes_on(_: Value, further: Value) -> Value:
            return further

        b.repeat([b.constant(0, i32), self._stopped().eq(0)], step, goes_on)
        return b.select(self._stopped().eq(0), b.constant(layout.IDLE, i32), b.constant(layout.STOPPED, i32))

    def _awaited(self, seen: Value) -> Value:
        """The number of the job, once it differs from `seen` or the worker has polled often enough."""
        b = self.b

        def look(_: Value, left: Value) -> list[Value]:
            b.pause()
            return [self._epoch(), left - 1]

        def waits(epoch: Value, left: Value) -> Value:
            return epoch.eq(seen) & (left > 0)

        return b.repeat([self._epoch(), self.setting(layout.SPINS)], look, waits)[0]

    def _sleep(self, seen: Value) -> None:
        """Sleep until the number of the job differs from `seen`."""
        b, sleepers = self.b, self.field(layout.SLEEPERS)
        b.atomic("add", sleepers, 1, i64)
        with b.when(self._epoch("seq_cst").eq(seen)):
            expected = b.cast(seen, i64, signed=False)
            self._system(layout.FUTEX, [b.address(self.field(layout.EPOCH)), _FUTEX_WAIT, expected, 0])
        b.atomic("sub", sleepers, 1, i64)

    def wake(self) -> None:
        """Wake all workers that sleep."""
        with self.b.when(self._sleeps()):
            every = (1 << 31) - 1
            self._system(layout.FUTEX, [self.b.address(self.field(layout.EPOCH)), _FUTEX_WAKE, every, 0])

    def stop(self) -> None:
        """Make the workers end."""
        self.b.atomic_store(1, self.field(layout.STOP), i64)
        self.b.atomic("add", self.field(layout.EPOCH), 1, i32)
        self.b.call(_WAKE, [self.pool])

    def _epoch(self, ordering: str = "acquire") -> Value:
        return self.b.atomic_load(self.field(layout.EPOCH), i32, ordering)

    def _stopped(self) -> Value:
        return self.b.atomic_load(self.field(layout.STOP), i64)

    def _sleeps(self) -> Value:
        """Whether a system call for sleeping is available."""
        return self.setting(layout.SYSCALL).ne(0)

    def _system(self, number: int, arguments: list[Value | int]) -> None:
        """Call the system, and ignore its answer."""
        function = self.field(layout.SYSCALL).load(ptr)
        values = [self.b.index(argument) for argument in (self.setting(number), *arguments)]
        self.b.call_pointer(function, values, i64)
