"""
The thread that ends calls whose time is up, and those of the main thread that Ctrl-C interrupts.

Python's handler of a signal runs in the main thread, between two of its instructions, and not while that is in machine
code. What the C handler writes to the wake-up descriptor at once reaches this thread, which tells the machine code to
return; then Python's handler runs. The descriptor is borrowed for the time of a call: bytes that come meanwhile are
passed on to whoever had it.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import select
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import TracebackType

from glow_mlir.errors import CancelledError, TimeLimitError
from glow_mlir.support.cancellation import Cancellation, cancelled_by
from glow_mlir.support.forks import reset_in_forks

_LONGEST = 3600.0
"""Seconds after which the thread checks again at the latest, because systems limit waiting times."""

_LOOK = b"\0"
"""The number that wakes the thread when only deadlines changed: there is no signal 0."""


class Watchdog:
    """Deadlines of calls, and the main-thread call that Ctrl-C interrupts."""

    def __init__(self) -> None:
        self.main: Cancellation | None = None
        """The cancellation of the main thread's call."""
        self._owner = -1
        """The previous owner of the wake-up descriptor during a call: another descriptor, or -1."""
        self._reading = threading.RLock()
        """Who reads numbers of signals, and passes them on; a handler of signals may call a model in between."""
        self._lock = threading.Lock()
        self._deadlines: list[tuple[float, int, Cancellation, CancelledError]] = []
        self._next_look = math.inf
        """The time of the next check of deadlines."""
        self._order = itertools.count()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        threading.Thread(target=self._serve, name="glow-watchdog", daemon=True).start()

    def listen(self) -> None:
        """
        Let signals come here, from the main thread, until `give_back`; raises `ValueError` in others.

        Anybody may take the descriptor between two calls, as loops of asyncio do, so that each call asks for it anew.
        """
        with self._reading:
            before = signal.set_wakeup_fd(self._writer)
            if before != self._writer:
                self._owner = before

    def give_back(self) -> None:
        """Return the wake-up descriptor to its previous owner, along with unread signals."""
        found = signal.set_wakeup_fd(-1) if self._owner < 0 else self._returned()
        if found not in (-1, self._writer):  # A handler of signals has given it to somebody.
            signal.set_wakeup_fd(found)

    def settle(self) -> None:
        """Read pending signals, so that later calls do not see them."""
        with self._reading:
            self._read()

    def _returned(self) -> int:
        """Who had the descriptor until now that its owner has it again, who may have closed it during the call."""
        with self._reading:
            try:
                # Whether the owner wants to be warned of a full buffer, nobody can ask: most have what Python does.
                found = signal.set_wakeup_fd(self._owner)
                self._read()
            except (OSError, ValueError):
                found = signal.set_wakeup_fd(-1)
            self._owner = -1
        return found

    def close(self) -> None:
        """Stop listening, in a child process, which does not inherit the thread."""
        found, owner = signal.set_wakeup_fd(-1), self._owner
        self._owner = -1
        if (heir := owner if found == self._writer else found) >= 0:
            with suppress(OSError, ValueError):
                signal.set_wakeup_fd(heir)
        os.close(self._reader)
        os.close(self._writer)

    def limit(self, cancellation: Cancellation, seconds: float, error: TimeLimitError) -> None:
        """End a call by an error when `seconds` have passed, if it has not ended by then."""
        deadline = time.monotonic() + seconds
        with self._lock:
            heapq.heappush(self._deadlines, (deadline, next(self._order), cancellation, error))
            if deadline >= self._next_look:
                return
            self._next_look = deadline
        with suppress(BlockingIOError):  # Where there is no room for it, the thread has enough to wake up for.
            os.write(self._writer, _LOOK)

    def forget(self, cancellation: Cancellation) -> None:
        """Remove the deadline of a call that has ended."""
        with self._lock:
            self._deadlines = [item for item in self._deadlines if item[2] is not cancellation]
            heapq.heapify(self._deadlines)

    def _serve(self) -> None:
        """The main loop of the thread."""
        poll = select.poll()  # It takes any descriptor: select() takes those below 1024.
        poll.register(self._reader, select.POLLIN)
        while True:
            with self._lock:
                now = time.monotonic()
                self._next_look = min([now + _LONGEST, *(item[0] for item in self._deadlines[:1])])
                wait = max(self._next_look - now, 0)
            if poll.poll(wait * 1000):
                self.settle()
            self._expire()

    def _read(self) -> None:
        """Read the numbers of signals that have come, if there are any."""
        with suppress(BlockingIOError):
            for number in os.read(self._reader, 4096):
                self._signalled(number)

    def _signalled(self, number: int) -> None:
        """A signal has come, or the deadlines have changed."""
        if number and self._owner >= 0:
            with suppress(OSError):  # It is full or closed: Python drops signals then, too.
                os.write(self._owner, bytes([number]))
        if number == signal.SIGINT and (call := self.main) is not None and _raises_interrupts():
            call.cancel(CancelledError("the call was interrupted"))

    def _expire(self) -> None:
        """End the calls whose time is up."""
        with self._lock:
            while self._deadlines and self._deadlines[0][0] <= time.monotonic():
                _, _, cancellation, error = heapq.heappop(self._deadlines)
                cancellation.cancel(error)


def _raises_interrupts() -> bool:
    """Whether Ctrl-C raises `KeyboardInterrupt`: a handler of the user's may let the program go on."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


class _Watchdogs:
    """The watchdog of this process, once there is one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.found: Watchdog | None = None

    def started(self) -> Watchdog:
        """The watchdog, which the first who asks for it starts."""
        with self._lock:
            if self.found is None:
                self.found = Watchdog()
            return self.found

    def reset_after_fork(self) -> None:
        """Start anew in a child process: the thread stayed with its parent, whose lock may be held."""
        self._lock = threading.Lock()
        found, self.found = self.found, None
        if found is not None:
            found.close()


_WATCHDOGS = reset_in_forks(_Watchdogs())


def watchdog() -> Watchdog:
    """The watchdog of this process; raises `RuntimeError` where the system starts no thread for it."""
    return _WATCHDOGS.found or _WATCHDOGS.started()


@contextmanager
def time_limited(cancellation: Cancellation, seconds: float, what: str, keyword: str) -> Generator[None]:
    """
    Let what is done inside the `with` statement end as `cancellation` says, and where it takes longer than `seconds`.

    0 seconds are no limit. `what` and `keyword` say in the error what took longer, and which option limits it.
    """
    with cancelled_by(cancellation):
        if not seconds:
            yield
            return
        reason = f"the {what} took longer than its limit of {seconds:g} seconds"
        dog = watchdog()
        dog.limit(cancellation, seconds, TimeLimitError(reason, hint=f"{keyword}=…"))
        try:
            yield
        finally:
            dog.forget(cancellation)


class Interruptible:
    """
    Let Ctrl-C end what `cancellation` ends, where this is the main thread: a context manager.

    In other threads it does nothing, and neither where the process ends, which starts no threads any more.
    """

    __slots__ = ("_cancellation", "_watchdog")

    def __init__(self, cancellation: Cancellation) -> None:
        self._cancellation = cancellation
        self._watchdog: Watchdog | None = None

    def __enter__(self) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            return
        try:
            dog = watchdog()
            dog.listen()
        except (RuntimeError, ValueError):  # The process ends, or this is another interpreter than the main one.
            return
        self._watchdog, dog.main = dog, self._cancellation

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if (dog := self._watchdog) is None:
            return
        try:
            dog.give_back()
            if kind is not None:
                dog.settle()
        except BaseException:  # Ctrl-C at the very end of the call.
            dog.settle()
            raise
        finally:
            dog.main = None
