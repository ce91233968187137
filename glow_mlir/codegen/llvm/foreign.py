"""
Emission for other architectures, in a process of its own.

What LLVM cannot compile for a machine may end the process that asks (a fatal error or an assertion of a backend): the
compiler, and whoever uses it, must outlive that. One child serves all modules, as its start takes 0.2 seconds.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict
from typing import IO, Any

from glow_mlir.codegen.llvm.machines import Machine

FORMS = ("object_file", "assembly")
"""What can be asked for: methods of `Machine`."""


class ForeignEmissionError(Exception):
    """What LLVM said of a module, in one line, before it ended or gave up."""


def emitted(machine: Machine, text: str, form: str) -> bytes:
    """
    What the method `form` of a machine makes of LLVM IR text, as bytes.

    Raises `ForeignEmissionError` with the reason where there is none.
    """
    with _lock:
        return _child().ask(machine, text, form)


def stack_frames(machine: Machine, text: str) -> dict[str, int]:
    """
    The bytes that each function of LLVM IR text takes of the stack, as LLVM says; those that take none are left out.

    Raises `ForeignEmissionError` as `emitted`. LLVM tells in warnings on stderr, which is that of the child.
    """
    asking = _ATTRIBUTES.sub(r'\g<0> "warn-stack-size"="0"', text)
    with _lock:
        child = _child()
        child.ask(machine, asking, "object_file")
        return {name: int(size) for size, name in _FRAME.findall(child.said())}


_ATTRIBUTES = re.compile(r"^attributes #\d+ = \{", re.MULTILINE)
_FRAME = re.compile(r"stack frame size \((\d+)\) exceeds limit \(0\) in function '([^']+)'")


class _Child:
    """A process that emits."""

    def __init__(self) -> None:
        self._said = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said
        )

    @property
    def lives(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, machine: Machine, text: str, form: str) -> bytes:
        """Send a request and wait for the answer."""
        self._said.seek(0)
        self._said.truncate()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        head = json.dumps({"machine": asdict(machine), "form": form}).encode()
        try:
            _write(self._process.stdin, head, text.encode())
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
            raise ForeignEmissionError(self._last_words())
        failure, data = answer
        if failure:
            raise ForeignEmissionError(failure.decode())
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


def _read(stream: IO[bytes], count: int) -> list[bytes]:
    """So many parts that `_write` wrote, or fewer where the stream ends."""
    found: list[bytes] = []
    while len(found) < count:
        head = stream.read(8)
        if len(head) < 8:
            break
        found.append(stream.read(int.from_bytes(head, "little")))
    return found


def serve() -> None:
    """Answer requests on standard input until it ends."""
    while len(request := _read(sys.stdin.buffer, 2)) == 2:
        asked: dict[str, Any] = json.loads(request[0])
        try:
            made = getattr(Machine(**asked["machine"]), asked["form"])(request[1].decode())
        except RuntimeError as error:
            _write(sys.stdout.buffer, " ".join(str(error).split()).encode(), b"")
        else:
            _write(sys.stdout.buffer, b"", made if isinstance(made, bytes) else made.encode())


if __name__ == "__main__":
    serve()
