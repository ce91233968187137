"""
Work beside the calls of sessions, in one thread of the process: it waits for another process, and loads what that
makes.

One piece comes after the other. Each ends soon where the process does, or nobody is left who wants its result.
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
"""How many seconds a fork waits at most."""


class _Forks:
    """
    Lets `os.fork` wait until all work beside calls is where `check_cancellation` is called.

    In between it may be importing a module, whose lock a child would wait for for ever.
    """

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Know of no work, as in a child."""
        self._changed = threading.Condition()
        self._working = 0
        self._is_forking = False

    @contextmanager
    def working(self) -> Generator[None]:
        """Work inside the `with` statement, which `pause` interrupts."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    def pause(self) -> None:
        """Let a fork that waits go on, and wait for its end."""
        if self._is_forking:
            self._end()
            self._begin()

    def _begin(self) -> None:
        with self._changed:
            # A fork that Ctrl-C interrupts may not say that it is over.
            self._changed.wait_for(lambda: not self._is_forking, _LONGEST)
            self._working += 1

    def _end(self) -> None:
        with self._changed:
            self._working -= 1
            self._changed.notify_all()

    def before(self) -> None:
        """Wait until no work goes on."""
        with self._changed:
            self._is_forking = True
            self._changed.wait_for(lambda: not self._working, _LONGEST)

    def after(self) -> None:
        """Let work go on in the parent."""
        with self._changed:
            self._is_forking = False
            self._changed.notify_all()


_FORKS = reset_in_forks(_Forks())
around_forks(_FORKS.before, _FORKS.after)


class CompilingInBackground(Cancellation):
    """Ends work that is done beside calls; and lets it wait as long as somebody forks."""

    __slots__ = ("_is_wanted", "_thread")

    def __init__(self, is_wanted: Callable[[], bool]) -> None:
        super().__init__()
        self._is_wanted = is_wanted
        self._thread = threading.get_ident()

    def check(self) -> None:
        if threading.get_ident() == self._thread:
            _FORKS.pause()
        # The main thread has ended where the process waits for the others.
        if not threading.main_thread().is_alive() or not self._is_wanted():
            self.cancel(CancelledError("the compilation was abandoned"))
        super().check()


class _Work(NamedTuple):
    """What is to be done: whether it has its turn by now is told to it."""

    context: Context
    run: Callable[[bool], None]
    turn: Lock
    has_turn: bool

    def drop(self) -> None:
        """It is not done: others may have the turn."""
        if self.has_turn:
            self.turn.release()


class _Worker:
    """The thread, as long as there is work."""

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Have no work, as in a child process, where the thread is not."""
        self._lock = threading.Lock()
        self._waiting: deque[_Work] = deque()
        self._is_running = False

    def put(self, run: Callable[[bool], None], turn: Lock) -> bool:
        """
        Have something done behind all that waits; whether it will be.

        What begins at once has its turn from now on, if that is free: nothing that waits has one.
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
        """Start the thread, unless the system starts none any more, as where the process ends: nothing is done then."""
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
        """What the thread does. An error ends it, and another one does the rest."""
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
    Do work beside calls, behind what waits, when its turn comes, and give that back behind it.

    `check_cancellation` ends it, and it tells whoever watches. Where nothing waits, it has its turn at once, if that is
    free. Gives false where too much waits, and where the process ends.
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
