"""
Emission for other architectures, in a separate process.

If LLVM cannot compile a module for a machine, it may end its process (by a fatal error or an assertion of a backend),
and the compiler and its caller must survive that. One child process serves many modules, because its start takes 0.2
seconds.
"""

from __future__ import annotations

import json
import socket
from dataclasses import asdict
from functools import partial
from typing import Any

from glow_mlir.codegen.llvm.machines import Form, Machine
from glow_mlir.support.child_process import Children, NoProcessError, read_parts, write_parts
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.logged_process import LoggedProcess


class ForeignEmissionError(Exception):
    """Why LLVM failed on a module, in one line; `messages` is all that it wrote to stderr."""

    def __init__(self, reason: str, messages: str) -> None:
        super().__init__(reason)
        self.messages = messages


@dataclass(frozen=True)
class Emission:
    """The output of LLVM for a module, and the messages that it wrote to stderr meanwhile: warnings."""

    data: bytes
    messages: str


def emitted(machine: Machine, text: str, form: Form) -> Emission:
    """
    Compile LLVM IR text for a machine, to the given form.

    Raises `ForeignEmissionError` with the reason if that fails.
    """
    try:
        with _CHILDREN.asked() as child:
            return Emission(child.ask(machine, text, form), child.messages())
    except NoProcessError as error:
        raise ForeignEmissionError(f"no process can be started for it: {error}", "") from error


class _Emitter(LoggedProcess):
    """A process that emits."""

    def ask(self, machine: Machine, text: str, form: Form) -> bytes:
        """Send a request and wait for the answer, or for the end of the compilation that it is part of."""
        head = json.dumps({"machine": asdict(machine), "form": form}).encode()
        answer = self.exchange((head, text.encode()), 2)
        if len(answer) < 2:
            raise ForeignEmissionError(self._last_words(self.close(patience=1.0)), self.messages())
        failure, data = answer
        if failure:
            raise ForeignEmissionError(failure.decode(), self.messages())
        return data

    def _last_words(self, end: str) -> str:
        """The line in which LLVM says why it failed, or how the process ended."""
        lines = self.messages().splitlines()
        telling = [line.strip() for line in lines if "LLVM ERROR" in line or "Assertion" in line or "error" in line]
        return telling[0] if telling else f"LLVM ended with {end}"


_CHILDREN = Children(partial(_Emitter, f"{__name__}:serve"))


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
