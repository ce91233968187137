"""
Background work for sessions, in one thread of the process: wait for a compiler process, and load its results.

Tasks run one after the other. A task stops soon if the process exits, or if nothing needs its result any more.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import Context, copy_context
from threading import Lock
from typing import NamedTuple

from glow_mlir.errors import CancelledError
from glow_mlir.support.cancellation import Cancellation, cancelled_by, check_cancellation, held
from glow_mlir.support.forks import around_forks, reset_in_forks

THREAD = "glow-beside"
"""The name of the thread."""

MAX_WAITING = 64
"""The maximum number of waiting tasks; later ones are refused and have to be submitted again."""

_LONGEST = 10.0
"""The maximum time in seconds that a fork waits."""


class _Forks:
    """
    Make `os.fork` wait until all background work has reached `check_cancellation`.

    Elsewhere it may be importing a module, whose lock a child would wait for forever.
    """

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Forget all work, in a child process."""
        self._changed = threading.Condition()
        self._working = 0
        self._is_forking = False

    @contextmanager
    def working(self) -> Generator[None]:
        """Mark the body of the `with` statement as work, which `pause` interrupts."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    def pause(self) -> None:
        """Let a waiting fork proceed, and wait until it is done."""
        if self._is_forking:
            self._end()
            self._begin()

    def _begin(self) -> None:
        with self._changed:
            # A fork interrupted by Ctrl-C may not report its end.
            self._changed.wait_for(lambda: not self._is_forking, _LONGEST)
            self._working += 1

    def _end(self) -> None:
        with self._changed:
            self._working -= 1
            self._changed.notify_all()

    def before(self) -> None:
        """Wait until all work is paused."""
        with self._changed:
            self._is_forking = True
            self._changed.wait_for(lambda: not self._working, _LONGEST)

    def after(self) -> None:
        """Resume work in the parent."""
        with self._changed:
            self._is_forking = False
            self._changed.notify_all()


_FORKS = reset_in_forks(_Forks())
around_forks(_FORKS.before, _FORKS.after)


class CompilingInBackground(Cancellation):
    """The cancellation of background work; it also pauses the work during a fork."""

    __slots__ = ("_is_wanted", "_thread")

    def __init__(self, is_wanted: Callable[[], bool]) -> None:
        super().__init__()
        self._is_wanted = is_wanted
        self._thread = threading.get_ident()

    def check(self) -> None:
        if threading.get_ident() == self._thread:
            _FORKS.pause()
        # The main thread has ended, and the process waits for the other threads.
        if not threading.main_thread().is_alive() or not self._is_wanted():
            self.cancel(CancelledError("the compilation was abandoned"))
        super().check()


class _Work(NamedTuple):
    """A task; its argument tells whether it already holds the turn."""

    context: Context
    run: Callable[[bool], None]
    turn: Lock
    has_turn: bool

    def drop(self) -> None:
        """Discard the task, and release the turn."""
        if self.has_turn:
            self.turn.release()


class _Worker:
    """The thread, which exists while there is work."""

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Drop all work, in a child process, which does not inherit the thread."""
        self._lock = threading.Lock()
        self._waiting: deque[_Work] = deque()
        self._is_running = False

    def put(self, run: Callable[[bool], None], turn: Lock) -> bool:
        """
        Queue a task behind the waiting ones; return whether it was accepted.

        A task that starts at once takes its turn now, if it is free; waiting tasks hold no turn.
        """
        with self._lock:
            if len(self._waiting) >= MAX_WAITING:
                return False
            has_turn = not self._is_running and turn.acquire(blocking=False)
            self._waiting.append(_Work(copy_context(), run, turn, has_turn))
            if self._is_running:
                return True
            self._is_running = True
        return self._start()

    def _start(self) -> bool:
        """Start the thread; if the system cannot start threads, for example at exit, drop the work."""
        try:
            threading.Thread(target=self._serve, name=THREAD).start()
        except BaseException as error:
            with self._lock:
                dropped = list(self._waiting)
                self._waiting.clear()
                self._is_running = False
            for work in dropped:
                work.drop()
            if not isinstance(error, RuntimeError):
                raise
            return False
        return True

    def _serve(self) -> None:
        """The main loop of the thread. After an error the thread ends, and a new one continues."""
        try:
            while (work := self._next()) is not None:
                work.context.run(work.run, work.has_turn)
        except BaseException:
            self._start()
            raise

    def _next(self) -> _Work | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._is_running = False
            return None


_WORKER = reset_in_forks(_Worker())


def start(work: Callable[[], None], is_wanted: Callable[[], bool], turn: Lock) -> bool:
    """
    Run a background task after the waiting ones, once it gets its `turn`, which is released afterwards.

    `check_cancellation` can stop it, and reports it to observers. If nothing is waiting, the task takes its turn at
    once, if that is free. Returns false if too many tasks wait, and at exit.
    """

    def watched(has_turn: bool) -> None:
        with ExitStack() as stack:
            if has_turn:
                stack.callback(turn.release)
            with suppress(CancelledError), _FORKS.working(), cancelled_by(CompilingInBackground(is_wanted)):
                check_cancellation()
                with nullcontext() if has_turn else held(turn):
                    work()

    return _WORKER.put(watched, turn)
