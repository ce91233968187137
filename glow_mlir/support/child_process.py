"""
A Python process that answers requests of this one, in parts of bytes over a socket.

It is started anew, and finds every module that its parent does; or it is a fork of its parent, where that is safe,
which has imported some of them already. Its standard output is that for errors, and it reads nothing.
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
"""What a child does: read requests, and write answers, until there are no more."""

_PAUSE = 0.005
"""Seconds between two looks whether a process has ended."""

LOOK = 50
"""How many milliseconds who waits for an answer lets pass before it looks whether it is to end."""

_MAX_READ = 1 << 20
"""How many bytes are read at once at most."""

_MAX_FORKED = 1 << 30
"""Bytes in memory from which on a process is not forked: what it overwrites stays as long as the fork lives."""

_HELLO = b"glow"
"""What a process says when it can be asked."""

_FILE = b"f"
"""What comes with the descriptor of a file."""

_STANDARD = 3
"""The number of standard streams, which have the first descriptors."""

_PACKAGES = str(Path(__file__).resolve().parents[len(__name__.split(".")) - 1])
"""Where this package is."""

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
What a new process runs: it finds this package, and all that its parent does, but Python's own library first, whatever
files of the same names are in folders of users.
"""


class NoProcessError(OSError):
    """The system starts no process, or none that can be asked."""


class ChildProcess:
    """
    A process that answers requests as long as this one lives.

    `served` names its function, a `Serve`, as `package.module:function`. What it writes to stderr goes to
    `error_output`, if that is given. With a `niceness`, it leaves the cores to others. `may_fork` lets it be a fork of
    this process, where that is safe. Raises `NoProcessError` where there can be no process.
    """

    def __init__(
        self, served: str, error_output: IO[bytes] | None = None, niceness: int = 0, may_fork: bool = False
    ) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._status: int | None = None
        """What the system says of a fork that has ended."""
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
                    serve = _served(served)  # Its mistakes are its parent's.
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
        """Wait until it can be asked."""
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
        """What the system calls it."""
        return self._pid

    @property
    def lives(self) -> bool:
        """Whether it can be asked: it has not ended, and is of the user that this process is of."""
        return not self.is_closed and self._owner == _owner() and self._runs()

    def _runs(self) -> bool:
        if not self._pid:
            return False
        if self._process is not None:
            return self._process.poll() is None
        if self._status is None:
            try:
                found, self._status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:  # Somebody waits for all children of this process.
                found, self._status = self._pid, 0
            self._status = self._status if found else None
        return self._status is None

    @property
    def is_closed(self) -> bool:
        """Whether this process has ended it, or left it alone."""
        return self._channel.fileno() < 0

    @property
    def is_silent(self) -> bool:
        """Whether it has said nothing that nobody has read."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        return not poll.poll(0)

    def send(self, *parts: bytes | bytearray | memoryview) -> None:
        """Send a request; raises `BrokenPipeError` or `ConnectionResetError` where the process has ended."""
        write_parts(self._channel, *parts)

    def receive(self, count: int) -> list[bytes]:
        """
        Wait for so many parts of an answer, or for the end of what this is part of; they are fewer where the process
        ends. Raises `CancelledError`, before anything of the answer is read.
        """
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        while not poll.poll(LOOK):
            check_cancellation()
        return read_parts(self._channel, count)

    def receive_into(self, target: memoryview) -> None:
        """Wait for bytes that fill a place; raises `ConnectionResetError` where the process ends before."""
        done = 0
        while done < len(target):
            count = self._channel.recv_into(target[done : done + _MAX_READ])
            if not count:
                raise ConnectionResetError("the process has ended")
            done += count

    def send_file(self, descriptor: int) -> None:
        """Send the descriptor of a file; raises as `send`."""
        socket.send_fds(self._channel, [_FILE], [descriptor])

    def receive_file(self) -> int:
        """The descriptor of a file that `send_file` sent, a new one; raises `OSError` where there is none."""
        return read_file(self._channel)

    def close(self, patience: float = 0.0) -> str:
        """End it where it has not ended itself after so many seconds, and say how it ended, if that is known."""
        end = time.monotonic() + patience
        while self._runs() and time.monotonic() < end:
            time.sleep(_PAUSE)
        with suppress(OSError):  # It may be another user's by now: it ends when it reads no more requests.
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
        """Leave it alone, as a fork does that shares it with the process which it is a copy of."""
        self._channel.close()


def _owner() -> tuple[int, int]:
    """The user that this process is of."""
    return os.getuid(), os.geteuid()


def _above_standard(end: socket.socket) -> socket.socket:
    """A socket whose descriptor is none of those of standard streams, of which some may be closed."""
    if end.fileno() >= _STANDARD:
        return end
    with end:
        return socket.socket(fileno=fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, _STANDARD))


def can_fork() -> bool:
    """
    Whether a fork of this process finds no lock held by a thread that it does not have: there is no other thread, of
    Python or of a library. One that has much memory is not forked either.
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
    # What `multiprocessing` asks for as well: a parent that is isolated has isolated children.
    flags = cast("list[str]", getattr(subprocess, "_args_from_interpreter_flags")())
    command = [sys.executable, *flags, "-P", "-c", _PROGRAM, str(number), served, _PACKAGES, *filter(None, sys.path)]
    errors = error_output or (2 if _is_open(2) else subprocess.DEVNULL)
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=errors, stderr=errors, pass_fds=(number,))


def _is_python(executable: str | None) -> bool:
    """Whether a process can be started of it: what has Python inside of it may be any other program."""
    return bool(executable) and Path(executable or "").name.lower().startswith(("python", "pypy"))


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _served(name: str) -> Serve:
    """The function that is called `package.module:function`."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


@contextmanager
def _signals_wait() -> Generator[set[int]]:
    """
    Let signals wait inside the `with` statement; yields those that waited before. Ctrl-C behind a fork would leave a
    process that nobody knows of.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve_fork(serve: Serve, channel: socket.socket, mask: set[int]) -> NoReturn:
    """
    Serve in a fork, which ends here.

    Files and connections of the parent are closed, whose other ends would wait for this process, and its handlers of
    signals are not called.
    """
    try:
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        sys.stdout = sys.stderr
        kept = {*range(_STANDARD), channel.fileno()}
        for number in {int(name) for name in os.listdir("/proc/self/fd")} - kept:
            with suppress(OSError):  # That of the listing itself.
                os.close(number)
        with open(os.devnull, "r+b", buffering=0) as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(2 if _is_open(2) else nothing.fileno(), 1)
        _serve(serve, channel)
    finally:
        os._exit(1)


def started(served: str, channel: int) -> NoReturn:
    """Serve in a new process, over the socket of that descriptor; it ends here."""
    _serve(_served(served), socket.socket(fileno=channel))


def _serve(serve: Serve, channel: socket.socket) -> NoReturn:
    """Serve, and end the process, whatever its threads are at."""
    code = 1
    try:
        # Ctrl-C in a terminal goes to all processes: the parent says what it means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(OSError):  # Where memory runs out, this process ends, and not its parent.
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
    """So many parts that `write_parts` wrote, or fewer where there are no more."""
    found: list[bytes] = []
    while len(found) < count:
        head = _read(channel, 8)
        length = int.from_bytes(head, "little")
        if len(head) < 8 or len(part := _read(channel, length)) < length:
            break
        found.append(part)
    return found


def read_file(channel: socket.socket) -> int:
    """The descriptor of a file that was sent, a new one; raises `OSError` where there is none."""
    _, descriptors, _, _ = socket.recv_fds(channel, len(_FILE), 1)
    if not descriptors:
        raise OSError("no file was sent")
    return descriptors[0]


def _read(channel: socket.socket, length: int) -> bytes:
    """So many bytes, or fewer where there are no more."""
    found = bytearray()
    with suppress(ConnectionResetError):
        while len(found) < length and (more := channel.recv(min(length - len(found), _MAX_READ))):
            found += more
    return bytes(found)


class Asked(Protocol):
    """What `Children` are: `ChildProcess`, or what has one."""

    @property
    def lives(self) -> bool:
        """Whether it can be asked."""
        ...

    @property
    def is_silent(self) -> bool:
        """Whether it has said nothing that nobody has read."""
        ...

    def close(self) -> object:
        """End it."""
        ...

    def forget(self) -> None:
        """Leave it alone."""
        ...


Child = TypeVar("Child", bound=Asked)


class Children(Generic[Child]):
    """
    Processes that answer requests of a kind: as many as there are requests at once, ended with this process at last.

    A fork of this process has none at first.
    """

    def __init__(self, start: Callable[[], Child]) -> None:
        self._start = start
        self.idle: list[Child] = []
        """Those that nobody asks now."""
        self._all: list[Child] = []
        atexit.register(self.close)
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Leave the children alone that a fork shares with the process it is a copy of."""
        known, self._all, self.idle = self._all, [], []
        for child in known:
            child.forget()

    @contextmanager
    def asked(self) -> Generator[Child]:
        """A child for one request, which another one may be in front of; raises as `start`."""
        child = self._taken()
        try:
            yield child
        finally:
            if child.lives:
                self.idle.append(child)
            else:
                self._end(child)

    def _end(self, child: Child) -> None:
        """End a child that is not to be asked any more."""
        child.close()
        if child in self._all:
            self._all.remove(child)

    def _taken(self) -> Child:
        """A child that nobody else has: lists are changed in one step, and a handler of signals may come between."""
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
