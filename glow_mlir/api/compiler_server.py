"""The process that compiles for others: requests come, artifacts go into the cache."""

from __future__ import annotations

import os
import pickle
import threading
import traceback
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO

from glow_mlir.api.compiler_process import Made, Request
from glow_mlir.api.model_compiler import ModelCompiler
from glow_mlir.errors import GlowError
from glow_mlir.support import onnx_loader, xdsl_loader
from glow_mlir.support.activity import relaying, watching
from glow_mlir.support.child_process import read_parts, write_parts

IDLE = 5.0
"""Seconds without a request after which it ends, and gives its memory back."""


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until none has come for a while; where there will be no more, end at once."""
    xdsl_loader.install()
    onnx_loader.install()
    waiting = SimpleQueue[bytes]()
    threading.Thread(target=_receive, args=(requests, waiting), daemon=True).start()
    send = partial(_send, answers, threading.Lock())
    while True:
        try:
            request = waiting.get(timeout=IDLE)
        except Empty:
            return
        with watching(partial(send, "say")), relaying(partial(send, "warn"), partial(send, "caution")):
            try:
                send("made", _made(request))
            except BrokenPipeError:
                return
            except Exception as error:
                send("raised", _told(error))


def _receive(requests: IO[bytes], waiting: SimpleQueue[bytes]) -> None:
    """Take requests; where who asks is gone, nobody waits for what is being compiled."""
    while request := read_parts(requests, 1):
        waiting.put(request[0])
    os._exit(0)


def _send(answers: IO[bytes], lock: threading.Lock, kind: str, content: object) -> None:
    """Tell one thing; threads of a compilation do so one after the other."""
    with lock:
        write_parts(answers, pickle.dumps((kind, content), pickle.HIGHEST_PROTOCOL))


def _made(request: bytes) -> Made:
    """What one request asks for, where who asks is, and with its environment."""
    asked, folder, environment = pickle.loads(request)
    assert isinstance(asked, Request)
    os.chdir(Path(folder))
    os.environ.clear()
    os.environ.update(environment)
    compiler = ModelCompiler(asked.model, asked.options, asked.folder is None, asked.time_limit)
    return compiler.make(asked.assumptions, asked.folder)


def _told(error: Exception) -> Exception:
    """An error as who asks gets it; one that is nobody's mistake with the calls that led to it."""
    if not isinstance(error, GlowError):
        error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error
