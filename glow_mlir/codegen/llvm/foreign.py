"""
Emission in a process of its own: for other architectures, and beside the calls of a session.

What LLVM cannot compile for a machine may end the process that asks (a fatal error or an assertion of a backend): the
compiler, and whoever uses it, must outlive that. One child serves all modules, as its start takes 0.2 seconds. What is
compiled beside calls has a child as long as that takes, which leaves the cores to others, and ends with its work.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from glow_mlir.codegen.llvm.machines import Form, Machine
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.dataclass import dataclass


class ForeignEmissionError(Exception):
    """What LLVM said of a module, in one line, before it ended or gave up; `said` is all that it wrote to stderr."""

    def __init__(self, reason: str, said: str) -> None:
        super().__init__(reason)
        self.said = said


@dataclass(frozen=True)
class Emission:
    """What LLVM has made of a module, and what it said on stderr meanwhile: warnings."""

    data: bytes
    said: str


def emitted(machine: Machine, text: str, form: Form) -> Emission:
    """
    What a machine makes of LLVM IR text in that form.

    Raises `ForeignEmissionError` with the reason where there is none.
    """
    with _lock:
        child = _child()
        return Emission(child.ask(machine, text, form), child.said())


@contextmanager
def emission_beside() -> Generator[None]:
    """
    Let code for this machine be emitted in a process of its own, too, which lives no longer than the `with` statement.
    """
    children: list[_Child] = []
    token = _BESIDE.set(children)
    try:
        yield
    finally:
        _BESIDE.reset(token)
        for child in children:
            child.close()


def emitted_beside(machine: Machine, text: str, form: Form) -> Emission | None:
    """
    What a machine makes of LLVM IR text inside `emission_beside`; `None` outside, and where there can be no process.

    Raises as `emitted`.
    """
    children = _BESIDE.get()
    if children is None:
        return None
    if not children:
        try:
            children.append(_Child(is_beside=True))
        except OSError:
            return None
    return Emission(children[0].ask(machine, text, form), children[0].said())


_PACKAGES = str(Path(__file__).resolve().parents[len(__name__.split(".")) - 1])
"""Where this package is."""

_PROGRAM = """
import sys
packages, *others = sys.argv[1:]
first = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
sys.path.insert(first, packages)
sys.path += [path for path in others if path not in sys.path]
from glow_mlir.codegen.llvm.foreign import serve
serve()
"""
"""
What a child runs: it finds this package, and all that its parent does, but Python's own library first, whatever files
of the same names are in folders of users.
"""


class _Child:
    """A process that emits."""

    def __init__(self, is_beside: bool = False) -> None:
        """One that works beside others leaves the cores to these."""
        self._said = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, _PACKAGES, *filter(None, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        if is_beside:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICE)

    @property
    def lives(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, machine: Machine, text: str, form: Form) -> bytes:
        """Send a request and wait for the answer, or for the end of the compilation that it is part of."""
        self._said.seek(0)
        self._said.truncate()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        head = json.dumps({"machine": asdict(machine), "form": form}).encode()
        try:
            _write(self._process.stdin, head, text.encode())
            _await(self._process.stdout)
            answer = _read(self._process.stdout, 2)
        except BrokenPipeError:
            answer = []
        except BaseException:
            # The answer that nobody has read would be taken for that to the next request.
            self._process.kill()
            self._process.wait()
            raise
        if len(answer) < 2:
            self._process.wait()
            raise ForeignEmissionError(self._last_words(), self.said())
        failure, data = answer
        if failure:
            raise ForeignEmissionError(failure.decode(), self.said())
        return data

    def said(self) -> str:
        """What LLVM has said of the last request."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace")

    def _last_words(self) -> str:
        """The line in which LLVM says why it ends, or how the process ended."""
        lines = self.said().splitlines()
        telling = [line.strip() for line in lines if "LLVM ERROR" in line or "Assertion" in line or "error" in line]
        return telling[0] if telling else f"LLVM ended with the code {self._process.returncode}"

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()
        self._said.close()


_NICE = 10
"""The niceness of a child that works beside others."""

_LOOK = 50
"""How many milliseconds who waits for an answer lets pass before it looks whether it is to end."""

_BESIDE: ContextVar[list[_Child] | None] = ContextVar("beside", default=None)
"""Inside `emission_beside`, its child, once there is one."""

_lock = threading.Lock()
_CHILDREN: list[_Child] = []
"""The child that is used, if there is one."""


_OF_PARENTS: list[_Child] = []
"""Children that a forked process shares with the one it is a copy of, and leaves alone."""


def _child() -> _Child:
    if _CHILDREN and not _CHILDREN[0].lives:
        _CHILDREN.pop().close()
    if not _CHILDREN:
        _CHILDREN.append(_Child())
    return _CHILDREN[0]


def _forget() -> None:
    """Let a forked process begin with no child, and with a lock that nobody holds."""
    global _lock
    _lock = threading.Lock()
    _OF_PARENTS.extend(_CHILDREN)
    _CHILDREN.clear()


os.register_at_fork(after_in_child=_forget)


@atexit.register
def _close() -> None:
    while _CHILDREN:
        _CHILDREN.pop().close()


def _write(stream: IO[bytes], *parts: bytes) -> None:
    """Write parts, each with its length in front."""
    for part in parts:
        stream.write(len(part).to_bytes(8, "little"))
        stream.write(part)
    stream.flush()


def _await(stream: IO[bytes]) -> None:
    """Wait until there is something to read, or the stream has ended; raises `CancelledError`."""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    while not poll.poll(_LOOK):
        check_cancellation()


def _read(stream: IO[bytes], count: int) -> list[bytes]:
    """So many parts that `_write` wrote, or fewer where the stream ends."""
    found: list[bytes] = []
    while len(found) < count:
        head = stream.read(8)
        length = int.from_bytes(head, "little")
        if len(head) < 8 or len(part := stream.read(length)) < length:
            break
        found.append(part)
    return found


def serve() -> None:
    """Answer requests on standard input until it ends."""
    while len(request := _read(sys.stdin.buffer, 2)) == 2:
        asked: dict[str, Any] = json.loads(request[0])
        try:
            made = Machine(**asked["machine"]).emitted(request[1].decode(), asked["form"])
        except RuntimeError as error:
            _write(sys.stdout.buffer, " ".join(str(error).split()).encode(), b"")
        else:
            _write(sys.stdout.buffer, b"", made)
