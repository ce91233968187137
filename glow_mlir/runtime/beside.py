"""
Work beside the calls of sessions, in one thread of the process: it waits for another process, and loads what that
makes.

One piece comes after the other. Each ends soon where the process does, or nobody is left who wants its result.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context

from glow_mlir.errors import CancelledError
from glow_mlir.support.cancellation import Cancellation, cancelled_by, check_cancellation
from glow_mlir.support.forks import anew_in_forks, around_forks

THREAD = "glow-beside"
"""The name of the thread."""

MOST_WAITING = 64
"""How many pieces of work may wait; what comes then has to come again."""

_LONGEST = 10.0
"""How many seconds a fork waits at most."""


class _Forks:
    """
    Lets `os.fork` wait until all work beside calls is where `check_cancellation` is called.

    In between it may be importing a module, whose lock a child would wait for for ever.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
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


_FORKS = anew_in_forks(_Forks())
around_forks(_FORKS.before, _FORKS.after)


class BesideCalls(Cancellation):
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
            self.cancel(CancelledError("nobody waits for the compilation any more"))
        super().check()


class _Worker:
    """The thread, as long as there is work."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Have no work, as in a child process, where the thread is not."""
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Context, Callable[[], None]]] = deque()
        self._is_running = False

    @property
    def is_idle(self) -> bool:
        """Whether work that comes now begins at once."""
        return not self._is_running

    def put(self, work: Callable[[], None]) -> bool:
        """Have something done behind all that waits; whether it will be."""
        with self._lock:
            if len(self._waiting) >= MOST_WAITING:
                return False
            self._waiting.append((copy_context(), work))
            if self._is_running:
                return True
            self._is_running = True
        return self._start()

    def _start(self) -> bool:
        """Start the thread, unless the process ends, which starts none any more."""
        try:
            threading.Thread(target=self._serve, name=THREAD).start()
        except RuntimeError:
            self.begin_anew()
            return False
        return True

    def _serve(self) -> None:
        """What the thread does. An error ends it, and another one does the rest."""
        try:
            while (item := self._next()) is not None:
                context, work = item
                context.run(work)
        except BaseException:
            self._start()
            raise

    def _next(self) -> tuple[Context, Callable[[], None]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._is_running = False
            return None


_WORKER = anew_in_forks(_Worker())


def is_idle() -> bool:
    """Whether work beside calls that comes now begins at once."""
    return _WORKER.is_idle


def start(work: Callable[[], None], is_wanted: Callable[[], bool]) -> bool:
    """
    Do work beside calls, behind what waits, which `check_cancellation` ends, and which tells whoever watches.

    Gives false where too much waits, and where the process ends.
    """

    def watched() -> None:
        with suppress(CancelledError), _FORKS.working(), cancelled_by(BesideCalls(is_wanted)):
            check_cancellation()
            work()

    return _WORKER.put(watched)
