"""
A Python process that answers requests of this one, as byte messages over a socket.

It is a new process that finds the same modules as its parent, or, where that is safe, a fork of it, which has already
imported some. Its standard output goes to standard error, and its standard input is empty.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Generic, NoReturn, Protocol, TypeVar, cast

from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.forks import reset_in_forks

Serve = Callable[[socket.socket], None]
"""The main function of a child: read requests and write answers until there are no more."""

_PAUSE = 0.005
"""Seconds between checks whether a process has ended."""

LOOK = 50
"""Milliseconds between checks for cancellation while waiting for an answer."""

_MAX_READ = 1 << 20
"""The maximum number of bytes per read."""

_MAX_FORKED = 1 << 30
"""The memory size from which on a process is not forked, because overwritten pages are kept while the fork lives."""

_HELLO = b"glow"
"""The message of a process that is ready."""

_FILE = b"f"
"""The message that accompanies a file descriptor."""

_STANDARD = 3
"""The number of standard streams, which have the first descriptors."""

_PACKAGES = str(Path(__file__).resolve().parents[len(__name__.split(".")) - 1])
"""The folder of this package."""

_PROGRAM = """
import sys
channel, served, packages, *others = sys.argv[1:]
first = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
sys.path.insert(first, packages)
sys.path += [path for path in others if path not in sys.path]
from glow_mlir.support.child_process import started
from glow_mlir.support.forks import reset_in_forks
started(served, int(channel))
"""
"""
The program of a new process: it finds this package and the modules of its parent; Python's standard library comes
first, even if folders of the user contain files of the same names.
"""


class NoProcessError(OSError):
    """The system cannot start a process, or the process does not become ready."""


class ChildProcess:
    """
    A process that answers requests while this one lives.

    `served` names its main function, a `Serve`, as `package.module:function`. Its stderr goes to `error_output`, if
    given. `niceness` lowers its priority. With `may_fork`, it may be a fork of this process where that is safe. Raises
    `NoProcessError` if no process can be started.
    """

    def __init__(
        self, served: str, error_output: IO[bytes] | None = None, niceness: int = 0, may_fork: bool = False
    ) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._status: int | None = None
        """The exit status of a fork that has ended."""
        self._owner = _owner()
        try:
            own, other = (_above_standard(end) for end in socket.socketpair())
        except OSError as error:
            raise NoProcessError(str(error)) from error
        self._channel = own
        self._pid = 0
        try:
            with other:
                if may_fork and can_fork():
                    serve = _served(served)  # Its errors belong to the parent.
                    with _signals_wait() as mask:
                        self._pid = os.fork()
                        if self._pid == 0:
                            _serve_fork(serve, other, mask)
                else:
                    self._process = _new_process(served, other, error_output)
                    self._pid = self._process.pid
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise NoProcessError(str(error)) from error
            raise
        self._begin(niceness)

    def _begin(self, niceness: int) -> None:
        """Wait until it is ready."""
        try:
            if niceness:
                with suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, self._pid, niceness)
            begins = self.receive(1) == [_HELLO]
        except BaseException:
            self.close()
            raise
        if not begins:
            raise NoProcessError(f"Python ended with {self.close(patience=1.0)} before it began")

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._pid

    @property
    def lives(self) -> bool:
        """Whether it can be used: it has not ended, and it belongs to the present user."""
        return not self.is_closed and self._owner == _owner() and self._runs()

    def _runs(self) -> bool:
        if not self._pid:
            return False
        if self._process is not None:
            return self._process.poll() is None
        if self._status is None:
            try:
                found, self._status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:  # Other code waits for all children of this process.
                found, self._status = self._pid, 0
            self._status = self._status if found else None
        return self._status is None

    @property
    def is_closed(self) -> bool:
        """Whether this process has ended it, or dropped it."""
        return self._channel.fileno() < 0

    @property
    def is_silent(self) -> bool:
        """Whether all its output was read."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        return not poll.poll(0)

    def send(self, *parts: bytes | bytearray | memoryview) -> None:
        """Send a request; raises `BrokenPipeError` or `ConnectionResetError` if the process has ended."""
        write_parts(self._channel, *parts)

    def receive(self, count: int) -> list[bytes]:
        """
        Wait for that many parts of an answer, or for cancellation; fewer are returned if the process ends. Raises
        `CancelledError` before any part of the answer is read.
        """
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        while not poll.poll(LOOK):
            check_cancellation()
        return read_parts(self._channel, count)

    def receive_into(self, target: memoryview) -> None:
        """Fill a buffer with received bytes; raises `ConnectionResetError` if the process ends before."""
        done = 0
        while done < len(target):
            count = self._channel.recv_into(target[done : done + _MAX_READ])
            if not count:
                raise ConnectionResetError("the process has ended")
            done += count

    def send_file(self, descriptor: int) -> None:
        """Send a file descriptor; raises as `send`."""
        socket.send_fds(self._channel, [_FILE], [descriptor])

    def receive_file(self) -> int:
        """Receive a file descriptor from `send_file`; raises `OSError` if there is none."""
        return read_file(self._channel)

    def close(self, patience: float = 0.0) -> str:
        """Wait for its end for a number of seconds, then kill it; describe how it ended, if that is known."""
        end = time.monotonic() + patience
        while self._runs() and time.monotonic() < end:
            time.sleep(_PAUSE)
        with suppress(OSError):  # It may have another user now; it ends without requests.
            if self._runs():
                os.kill(self._pid, signal.SIGKILL)
                self._wait()
        self.forget()
        code = self._process.returncode if self._process else os.waitstatus_to_exitcode(self._status or 0)
        return f"signal {-code}" if code and code < 0 else f"the code {code}"

    def _wait(self) -> None:
        """Wait for its end."""
        if self._process is not None:
            self._process.wait()
            return
        with suppress(ChildProcessError):
            self._status = os.waitpid(self._pid, 0)[1]

    def forget(self) -> None:
        """Drop it without ending it, in a fork that shares it with its parent."""
        self._channel.close()


def _owner() -> tuple[int, int]:
    """The real and effective user of this process."""
    return os.getuid(), os.geteuid()


def _above_standard(end: socket.socket) -> socket.socket:
    """A socket whose descriptor is not one of the standard streams, some of which may be closed."""
    if end.fileno() >= _STANDARD:
        return end
    with end:
        return socket.socket(fileno=fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, _STANDARD))


def can_fork() -> bool:
    """
    Whether a fork of this process would find no lock held by a missing thread: there are no other threads of Python or
    libraries. Processes with much memory are not forked either.
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        threads = len(os.listdir("/proc/self/task"))
    except (OSError, ValueError):
        return False
    return threads == threading.active_count() == 1 and pages * os.sysconf("SC_PAGE_SIZE") < _MAX_FORKED


def _new_process(served: str, channel: socket.socket, error_output: IO[bytes] | None) -> subprocess.Popen[bytes]:
    """A new process that serves; raises `OSError`."""
    if not _is_python(sys.executable):
        raise OSError("no interpreter is known that could be started")
    number = channel.fileno()
    # As in `multiprocessing`: an isolated parent has isolated children.
    flags = cast("list[str]", getattr(subprocess, "_args_from_interpreter_flags")())
    command = [sys.executable, *flags, "-P", "-c", _PROGRAM, str(number), served, _PACKAGES, *filter(None, sys.path)]
    errors = error_output or (2 if _is_open(2) else subprocess.DEVNULL)
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=errors, stderr=errors, pass_fds=(number,))


def _is_python(executable: str | None) -> bool:
    """Whether the executable is Python; a program that embeds Python may be anything else."""
    return bool(executable) and Path(executable or "").name.lower().startswith(("python", "pypy"))


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _served(name: str) -> Serve:
    """The function named `package.module:function`."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


@contextmanager
def _signals_wait() -> Generator[set[int]]:
    """
    Block signals inside the `with` statement; yields those blocked before. Ctrl-C right after a fork would leave an
    unknown process.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve_fork(serve: Serve, channel: socket.socket, mask: set[int]) -> NoReturn:
    """
    Serve in a fork, and exit.

    The parent's files and connections are closed, because their other ends would wait for this process, and its signal
    handlers are disabled.
    """
    try:
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        sys.stdout = sys.stderr
        kept = {*range(_STANDARD), channel.fileno()}
        for number in {int(name) for name in os.listdir("/proc/self/fd")} - kept:
            with suppress(OSError):  # The descriptor of the listing itself.
                os.close(number)
        with open(os.devnull, "r+b", buffering=0) as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(2 if _is_open(2) else nothing.fileno(), 1)
        _serve(serve, channel)
    finally:
        os._exit(1)


def started(served: str, channel: int) -> NoReturn:
    """Serve in a new process over the socket with that descriptor, and exit."""
    _serve(_served(served), socket.socket(fileno=channel))


def _serve(serve: Serve, channel: socket.socket) -> NoReturn:
    """Serve, and exit without waiting for threads."""
    code = 1
    try:
        # Ctrl-C in a terminal reaches all processes, but the parent decides what it means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(OSError):  # Out of memory, kill this process before its parent.
            Path("/proc/self/oom_score_adj").write_text("1000")
        with suppress(BrokenPipeError, ConnectionResetError):
            write_parts(channel, _HELLO)
            serve(channel)
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # pyright: ignore[reportArgumentType]
    finally:
        os._exit(code)


def write_parts(channel: socket.socket, *parts: bytes | bytearray | memoryview) -> None:
    """Write parts of bytes, each with its length in front."""
    for part in parts:
        channel.sendall(len(part).to_bytes(8, "little"), socket.MSG_NOSIGNAL)
        channel.sendall(part, socket.MSG_NOSIGNAL)


def read_parts(channel: socket.socket, count: int) -> list[bytes]:
    """Read parts written by `write_parts`; fewer at the end."""
    found: list[bytes] = []
    while len(found) < count:
        head = _read(channel, 8)
        length = int.from_bytes(head, "little")
        if len(head) < 8 or len(part := _read(channel, length)) < length:
            break
        found.append(part)
    return found


def read_file(channel: socket.socket) -> int:
    """Receive a file descriptor; raises `OSError` if there is none."""
    _, descriptors, _, _ = socket.recv_fds(channel, len(_FILE), 1)
    if not descriptors:
        raise OSError("no file was sent")
    return descriptors[0]


def _read(channel: socket.socket, length: int) -> bytes:
    """Read that many bytes; fewer at the end."""
    found = bytearray()
    with suppress(ConnectionResetError):
        while len(found) < length and (more := channel.recv(min(length - len(found), _MAX_READ))):
            found += more
    return bytes(found)


class Asked(Protocol):
    """An element of `Children`: a `ChildProcess`, or an object that has one."""

    @property
    def lives(self) -> bool:
        """Whether it can be used."""
        ...

    @property
    def is_silent(self) -> bool:
        """Whether all its output was read."""
        ...

    def close(self) -> object:
        """End it."""
        ...

    def forget(self) -> None:
        """Drop it."""
        ...


Child = TypeVar("Child", bound=Asked)


class Children(Generic[Child]):
    """
    Processes that answer the same kind of requests: one for each concurrent request; they end with this process.

    A fork of this process starts without children.
    """

    def __init__(self, start: Callable[[], Child]) -> None:
        self._start = start
        self.idle: list[Child] = []
        """The idle children."""
        self._all: list[Child] = []
        atexit.register(self.close)
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Drop the children, in a fork that shares them with its parent."""
        known, self._all, self.idle = self._all, [], []
        for child in known:
            child.forget()

    @contextmanager
    def asked(self) -> Generator[Child]:
        """A child for one request, used exclusively; raises as `start`."""
        child = self._taken()
        try:
            yield child
        finally:
            if child.lives:
                self.idle.append(child)
            else:
                self._end(child)

    def _end(self, child: Child) -> None:
        """End a child that is not used again."""
        child.close()
        if child in self._all:
            self._all.remove(child)

    def _taken(self) -> Child:
        """An idle or new child, taken exclusively: list operations are atomic, even if a signal handler interrupts."""
        while True:
            try:
                child = self.idle.pop()
            except IndexError:
                child = self._start()
                self._all.append(child)
                return child
            if child.lives and child.is_silent:
                return child
            self._end(child)

    def close(self) -> None:
        """End all children."""
        self.idle.clear()
        while self._all:
            self._all.pop().close()
