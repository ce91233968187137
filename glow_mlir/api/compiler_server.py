"""The compiler process: receives requests, and stores artifacts in the cache or sends them back."""

from __future__ import annotations

import gc
import os
import pickle
import socket
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from glow_mlir.api.compiler_process import COMPILE, IDLE, MADE, RAISED, UNABLE, Request
from glow_mlir.api.fast_imports import import_fast
from glow_mlir.api.model_compiler import ModelCompiler
from glow_mlir.errors import CancelledError, GlowError
from glow_mlir.runtime.memory_file import MemoryFile
from glow_mlir.support.activity import relaying, watching
from glow_mlir.support.cancellation import Cancellation, cancelled_by
from glow_mlir.support.child_process import read_parts, write_parts

REST = 5.0
"""Seconds without a request after which the process ends to free its memory."""


def serve(channel: socket.socket) -> None:
    """Answer requests until none arrives for a while; end at once if the requester closes the channel."""
    gc.disable()  # Garbage is collected between requests.
    import_fast()
    server = _Server(channel)
    threading.Thread(target=server.receive, daemon=True).start()
    server.run()


Teller = Callable[[object], None]


class _Server:
    """Answer requests one after the other; each may be cancelled."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._speaking = threading.Lock()
        self._waiting = SimpleQueue[tuple[int, bytes, Cancellation]]()
        self._begun: dict[int, Cancellation] = {}
        """Number of an unanswered request → its cancellation."""

    def receive(self) -> None:
        """Receive requests; cancel compilations when the requesting process has ended."""
        while len(parts := read_parts(self._channel, 3)) == 3:
            kind, number, request = parts[0], int(parts[1]), parts[2]
            if kind == COMPILE:
                cancellation = self._begun[number] = Cancellation()
                self._waiting.put((number, request, cancellation))
            elif (begun := self._begun.get(number)) is not None:
                begun.cancel(CancelledError("the compilation was abandoned"))
        os._exit(0)

    def run(self) -> None:
        """Answer the requests."""
        while True:
            try:
                number, request, cancellation = self._waiting.get(timeout=REST)
            except Empty:
                self._say(-1, IDLE, None)
                return
            with cancelled_by(cancellation):
                self._answer(number, request)
            del self._begun[number]
            gc.collect()  # The requester has its answer.

    def _answer(self, number: int, request: bytes) -> None:
        def sender(kind: str) -> Teller:
            return lambda content: self._say(number, kind, content)

        try:
            asked = _understood(request)
        except Exception:
            self._say(number, UNABLE, None)
            return
        with watching(sender("say")), relaying(sender("warn"), sender("caution")), MemoryFile() as constants:
            try:
                self._hand_over(number, asked, constants)
            except (BrokenPipeError, ConnectionResetError):
                raise
            except Exception as error:
                self._say(number, RAISED, _portable(error))

    def _hand_over(self, number: int, asked: Request, constants: MemoryFile) -> None:
        """Compile, and describe the result, including its constants unless they are stored."""
        compiler = ModelCompiler(asked.model, asked.options, asked.is_kept, asked.time_limit, asks=False)
        answer, artifact = compiler.make(asked.assumptions, constants)
        if artifact is None:
            self._say(number, MADE, (answer, None, None, 0))
            return
        descriptor = constants.holding(artifact.constants)
        with self._speaking:
            content = (answer, artifact.code, artifact.manifest, artifact.constants.nbytes)
            write_parts(self._channel, pickle.dumps((number, MADE, content), pickle.HIGHEST_PROTOCOL))
            if artifact.constants.nbytes:
                socket.send_fds(self._channel, [b"f"], [descriptor])

    def _say(self, number: int, kind: str, content: object) -> None:
        """Send one message; compilation threads send one at a time."""
        with self._speaking:
            write_parts(self._channel, pickle.dumps((number, kind, content), pickle.HIGHEST_PROTOCOL))


def _understood(request: bytes) -> Request:
    """
    Unpickle a request, and take over the folder and the environment of the requester; raises an error if that fails.
    """
    asked, folder, environment = pickle.loads(request)
    assert isinstance(asked, Request)
    os.chdir(Path(folder))
    os.environ.clear()
    os.environ.update(environment)
    return asked


def _portable(error: Exception) -> Exception:
    """An error in picklable form; its traceback, or for a `GlowError` that of its cause, becomes a note."""
    reason = error if not isinstance(error, GlowError) else error.__cause__
    if reason is not None:
        error.add_note("".join(traceback.format_exception(reason)))
    with suppress(Exception):
        pickle.loads(pickle.dumps(error))
        return error
    return RuntimeError("".join(traceback.format_exception(error)))
