"""
Emission for other architectures, in a process of its own.

What LLVM cannot compile for a machine may end the process that asks (a fatal error or an assertion of a backend): the
compiler, and whoever uses it, must outlive that. A child serves many modules, as its start takes 0.2 seconds.
"""

from __future__ import annotations

import json
import socket
import tempfile
from dataclasses import asdict
from typing import Any

from glow_mlir.codegen.llvm.machines import Form, Machine
from glow_mlir.support.child_process import ChildProcess, Children, NoProcessError, read_parts, write_parts
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
    with _CHILDREN.asked() as child:
        return Emission(child.ask(machine, text, form), child.said())


class _Child:
    """A process that emits."""

    def __init__(self) -> None:
        """Raises `ForeignEmissionError` where there can be no process."""
        self._said = tempfile.TemporaryFile()
        try:
            self._process = ChildProcess(f"{__name__}:serve", error_output=self._said)
        except NoProcessError as error:
            raise ForeignEmissionError(f"no process can be started for it: {error}", "") from error

    @property
    def lives(self) -> bool:
        """Whether it can be asked."""
        return self._process.lives

    @property
    def is_silent(self) -> bool:
        """Whether it has said nothing that nobody has read."""
        return self._process.is_silent

    def forget(self) -> None:
        """Leave it alone."""
        self._process.forget()

    def ask(self, machine: Machine, text: str, form: Form) -> bytes:
        """Send a request and wait for the answer, or for the end of the compilation that it is part of."""
        self._said.seek(0)
        self._said.truncate()
        head = json.dumps({"machine": asdict(machine), "form": form}).encode()
        try:
            self._process.send(head, text.encode())
            answer = self._process.receive(2)
        except (BrokenPipeError, ConnectionResetError):
            answer = []
        except BaseException:
            # The answer that nobody has read would be taken for that to the next request.
            self._process.close()
            raise
        if len(answer) < 2:
            raise ForeignEmissionError(self._last_words(self._process.close(patience=1.0)), self.said())
        failure, data = answer
        if failure:
            raise ForeignEmissionError(failure.decode(), self.said())
        return data

    def said(self) -> str:
        """What LLVM has said of the last request."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace")

    def _last_words(self, end: str) -> str:
        """The line in which LLVM says why it ends, or how the process ended."""
        lines = self.said().splitlines()
        telling = [line.strip() for line in lines if "LLVM ERROR" in line or "Assertion" in line or "error" in line]
        return telling[0] if telling else f"LLVM ended with {end}"

    def close(self) -> None:
        """End it."""
        self._process.close()
        self._said.close()


_CHILDREN = Children(_Child)


def serve(channel: socket.socket) -> None:
    """Answer requests until there are no more."""
    while len(request := read_parts(channel, 2)) == 2:
        asked: dict[str, Any] = json.loads(request[0])
        try:
            made = Machine(**asked["machine"]).emitted(request[1].decode(), asked["form"])
        except RuntimeError as error:
            write_parts(channel, " ".join(str(error).split()).encode(), b"")
        else:
            write_parts(channel, b"", made)
