"""
A Python process that answers requests of this one: parts of bytes on two pipes.

It is started anew, and finds every module that its parent does; or, where that is safe, it is a fork of its parent,
which has imported some of them already. Its standard output is that for errors, so that nothing disturbs its answers.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Generic, NoReturn, Protocol, TypeVar

from glow_mlir.support.cancellation import check_cancellation, held

Serve = Callable[[IO[bytes], IO[bytes]], None]
"""What a child does: read requests, and write answers, until there are no more."""

_PAUSE = 0.005
"""Seconds between two looks whether a process has ended."""

LOOK = 50
"""How many milliseconds who waits for an answer lets pass before it looks whether it is to end."""

_MOST_READ = 1 << 20
"""How many bytes are read at once at most."""

_PACKAGES = str(Path(__file__).resolve().parents[len(__name__.split(".")) - 1])
"""Where this package is."""

_PROGRAM = """
import sys
served, packages, *others = sys.argv[1:]
first = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
sys.path.insert(first, packages)
sys.path += [path for path in others if path not in sys.path]
from glow_mlir.support.child_process import started
started(served)
"""
"""
What a new process runs: it finds this package, and all that its parent does, but Python's own library first, whatever
files of the same names are in folders of users.
"""


class NoProcessError(OSError):
    """The system starts no process, or there is no interpreter that could be started."""


class ChildProcess:
    """
    A process that answers requests as long as this one lives.

    `served` names its function, a `Serve`, as `package.module:function`. What it writes to stderr goes to `said`, if
    that is given. With a `niceness`, it leaves the cores to others. `may_fork` lets it be a fork of this process, where
    that is safe. Raises `NoProcessError` where there can be no process.
    """

    def __init__(self, served: str, said: IO[bytes] | None = None, niceness: int = 0, may_fork: bool = False) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._status: int | None = None
        """What the system says of a fork that has ended."""
        try:
            if may_fork and said is None and not niceness and can_fork():
                self._pid, self._requests, self._answers = _forked(served)
            else:
                self._process = _new_process(served, said)
                assert self._process.stdin is not None
                assert self._process.stdout is not None
                self._pid, self._requests, self._answers = self._process.pid, self._process.stdin, self._process.stdout
        except OSError as error:
            raise NoProcessError(str(error)) from error
        if niceness:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._pid, niceness)

    @property
    def lives(self) -> bool:
        """Whether it can be asked."""
        if self._process is not None:
            return self._process.poll() is None
        if self._status is None:
            try:
                found, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:  # Somebody waits for all children of this process.
                found, status = self._pid, 0
            self._status = status if found else None
        return self._status is None

    def send(self, *parts: bytes) -> None:
        """Send a request; raises `BrokenPipeError` where the process has ended."""
        write_parts(self._requests, *parts)

    def receive(self, count: int) -> list[bytes]:
        """
        Wait for so many parts of an answer, or for the end of what this is part of; they are fewer where the process
        ends. Raises `CancelledError`.
        """
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        while not poll.poll(LOOK):
            check_cancellation()
        return read_parts(self._answers, count)

    def close(self, patience: float = 0.0) -> str:
        """End it where it has not ended itself after so many seconds, and say how it ended."""
        end = time.monotonic() + patience
        while self.lives and time.monotonic() < end:
            time.sleep(_PAUSE)
        code = self._killed() if self._process is None else self._stopped(self._process)
        for pipe in (self._requests, self._answers):
            with suppress(OSError):
                pipe.close()
        return f"signal {-code}" if code < 0 else f"the code {code}"

    @staticmethod
    def _stopped(process: subprocess.Popen[bytes]) -> int:
        process.kill()
        return process.wait()

    def _killed(self) -> int:
        if self.lives:
            os.kill(self._pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                self._status = os.waitpid(self._pid, 0)[1]
        return os.waitstatus_to_exitcode(self._status or 0)


class Closable(Protocol):
    """What `One` has one of."""

    @property
    def lives(self) -> bool:
        """Whether it can be asked."""
        ...

    def close(self) -> object:
        """End it."""
        ...


Child = TypeVar("Child", bound=Closable)


class One(Generic[Child]):
    """
    The one child that serves all requests of a kind, one after the other: started when it is needed, again where it has
    ended, and ended with this process. A fork of this process has none at first.
    """

    def __init__(self, start: Callable[[], Child]) -> None:
        self._start = start
        self.found: list[Child] = []
        self._of_parents: list[Child] = []
        self.forget()
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Leave the child alone that a fork shares with the process it is a copy of; nobody holds its lock."""
        self._lock = threading.Lock()
        self._of_parents += self.found
        self.found = []

    @contextmanager
    def asked(self) -> Generator[Child]:
        """The child, for a request; raises `CancelledError`, and as `start`."""
        with held(self._lock):
            if self.found and not self.found[0].lives:
                self.close()
            if not self.found:
                self.found.append(self._start())
            yield self.found[0]

    def close(self) -> None:
        """End the child, if there is one."""
        while self.found:
            self.found.pop().close()


def _new_process(served: str, said: IO[bytes] | None) -> subprocess.Popen[bytes]:
    """A new process that serves; raises `OSError`."""
    if not _is_python(sys.executable):
        raise OSError("no interpreter is known that could be started")
    command = [sys.executable, "-P", "-c", _PROGRAM, served, _PACKAGES, *filter(None, sys.path)]
    # What is buffered of an answer, nobody could wait for.
    return subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said)


def _is_python(executable: str | None) -> bool:
    """Whether a process can be started of it: what has Python inside of it may be any other program."""
    return bool(executable) and Path(executable or "").name.lower().startswith(("python", "pypy"))


def can_fork(harmless: Collection[str] = ("glow-watchdog",)) -> bool:
    """
    Whether a fork of this process finds no lock held by a thread that it does not have.

    There is this thread alone, but for those of OpenBLAS, which ends them before a fork, and of Python's that are
    `harmless`, by their names.
    """
    if not hasattr(os, "fork"):
        return False
    others = [thread for thread in threading.enumerate() if thread.name not in harmless]
    try:
        # What Linux says of the process has threads of libraries as well.
        count = len(os.listdir("/proc/self/task"))
    except OSError:
        return False
    return len(others) == 1 and count <= threading.active_count() + _blas_threads()


def _blas_threads() -> int:
    """How many threads numpy's OpenBLAS has beside those that call it."""
    module = sys.modules.get("numpy._core._multiarray_umath")
    if module is None or module.__file__ is None:
        return 0
    try:
        return int(ctypes.CDLL(module.__file__).scipy_openblas_get_num_threads64_()) - 1
    except (OSError, AttributeError):  # Another library, which may have threads of its own.
        return 0


def _forked(served: str) -> tuple[int, IO[bytes], IO[bytes]]:
    """A fork that serves: its number, and the pipes to it and from it."""
    module = import_module(served.partition(":")[0])  # Its mistakes are its parent's.
    requests, answers = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _serve_fork(getattr(module, served.partition(":")[2]), requests[0], answers[1])
    os.close(requests[0])
    os.close(answers[1])
    return pid, os.fdopen(requests[1], "wb", 0), os.fdopen(answers[0], "rb", 0)


def _serve_fork(serve: Serve, requests: int, answers: int) -> NoReturn:
    """
    Serve in a fork, which ends here.

    Files and connections of the parent are closed, whose other ends would wait for this process, and its handlers of
    signals are not called.
    """
    try:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        for number in {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2, requests, answers}:
            with suppress(OSError):  # That of the listing itself.
                os.close(number)
        _serve(serve, requests, answers)
    finally:
        os._exit(1)


def started(served: str) -> NoReturn:
    """Serve in a new process, on what were its standard input and output; it ends here."""
    module, _, name = served.partition(":")
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    _serve(getattr(import_module(module), name), requests, answers)


def _serve(serve: Serve, requests: int, answers: int) -> NoReturn:
    """Serve, and end the process, whatever its threads are at."""
    code = 1
    try:
        # Ctrl-C in a terminal goes to all processes: the parent says what it means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(BrokenPipeError):
            serve(os.fdopen(requests, "rb", 0), os.fdopen(answers, "wb", 0))
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # pyright: ignore[reportArgumentType]
    finally:
        os._exit(code)


def write_parts(stream: IO[bytes], *parts: bytes) -> None:
    """Write parts of bytes to an unbuffered stream, each with its length in front."""
    for part in parts:
        for data in (len(part).to_bytes(8, "little"), part):
            left = memoryview(data)
            while left:
                left = left[stream.write(left) :]


def read_parts(stream: IO[bytes], count: int) -> list[bytes]:
    """So many parts that `write_parts` wrote, or fewer where the stream ends."""
    found: list[bytes] = []
    while len(found) < count:
        head = _read(stream, 8)
        length = int.from_bytes(head, "little")
        if len(head) < 8 or len(part := _read(stream, length)) < length:
            break
        found.append(part)
    return found


def _read(stream: IO[bytes], length: int) -> bytes:
    """So many bytes of an unbuffered stream, or fewer where it ends."""
    found = bytearray()
    while len(found) < length and (more := stream.read(min(length - len(found), _MOST_READ))):
        found += more
    return bytes(found)
