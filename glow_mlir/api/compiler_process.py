"""
Compilation in a process of its own, for one that only runs models.

What a compilation imports and builds is gone with that process, which takes its memory along, and a fatal error of LLVM
ends no other. It puts artifacts into the cache, and says under which key; those that nobody stores it hands over, with
their constants in a file in memory.
"""

from __future__ import annotations

import itertools
import mmap
import os
import pickle
import sys
from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.errors import CancelledError, CompilerBugError, OutOfMemoryError
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.assumptions import Assumptions
from glow_mlir.runtime.cache import bytes_of
from glow_mlir.runtime.loader import llvm_of_host
from glow_mlir.support.activity import caution, say, warn
from glow_mlir.support.child_process import ChildProcess, Children, NoProcessError, can_fork
from glow_mlir.support.dataclass import dataclass

SERVER = "glow_mlir.api.compiler_server:serve"

COMPILE, CANCEL = b"compile", b"cancel"
"""The requests."""

MADE, RAISED, UNABLE, IDLE = "made", "raised", "unable", "idle"
"""Kinds of answers, beside those that tell something meanwhile."""

_LARGEST = 1 << 28
"""Bytes of a model in memory from which on it is compiled where it is: it would be there twice."""

_NICENESS = 19
"""The niceness of what works beside calls."""

_KILLED = "signal 9"
"""How a process ends that Linux ends because there is too little memory."""

_OF_PROCESS = ("/proc", "/dev")
"""Folders whose files are other ones for another process."""


@dataclass(frozen=True)
class Request:
    """
    A request: a model, to be compiled for the sizes of a call, or (without `assumptions`) as far as options determine.
    """

    model: Path | bytes
    options: CompileOptions
    assumptions: Assumptions | None
    time_limit: float
    """Seconds that one compilation may take; 0 for any time."""
    is_kept: bool
    """Whether the artifact goes into the cache."""


@dataclass(frozen=True)
class Made:
    """
    What was compiled for a model: an artifact, in the cache or (in `artifact`) handed over, or a `template`, where it
    takes a call to know what is to be compiled.
    """

    key: str = ""
    """That of the cache, by which the model is known as well; empty where files changed while it was compiled."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    digests: Mapping[str, str] | None = None
    artifact: Artifact | None = None
    template: dict[str, Any] | None = None
    external: tuple[str, ...] | None = None
    """The files beside an ONNX model that hold its weights."""


_CALLED = Children(partial(ChildProcess, SERVER, may_fork=True))
"""The processes for compilations that calls and sessions wait for."""

_BACKGROUND = Children(partial(ChildProcess, SERVER, niceness=_NICENESS))
"""The processes for compilations in the background."""

_NUMBERS = itertools.count()
"""Numbers of requests."""


def is_elsewhere(model: object, options: CompileOptions, is_background: bool) -> bool:
    """
    Whether a model is compiled in another process.

    That is so beside calls, and where this one has no compiler, if nobody here watches, and the other finds the model.
    """
    is_here = options.pipeline or options.observers or options.pass_observers
    if is_here or not isinstance(model, Path | bytes) or (not is_background and "xdsl" in sys.modules):
        return False
    if isinstance(model, bytes):
        return is_background or len(model) < _LARGEST
    return not any(path.startswith(_OF_PROCESS) for path in (os.path.abspath(model), os.path.realpath(model)))


def made(request: Request, is_background: bool = False) -> Made | None:
    """
    What the other process makes; `None` where there can be none, or it finds not what it needs.

    Raises what the compilation raises, `OutOfMemoryError` or `CompilerBugError` where the process ends before that is
    done, and `CancelledError`.
    """
    try:
        message = pickle.dumps((request, os.getcwd(), dict(os.environ)), pickle.HIGHEST_PROTOCOL)
    except Exception:  # What users give may be of classes that only this process knows, and the folder may be gone.
        return None
    if not is_background and can_fork():
        llvm_of_host()  # A fork has what this process needs as well.
    answer: Made | Exception | str = IDLE
    while answer == IDLE:
        try:
            with (_BACKGROUND if is_background else _CALLED).asked() as child:
                answer = _Dialogue(child, next(_NUMBERS)).answer(message)
        except NoProcessError:
            return None
    if isinstance(answer, Exception):
        raise answer
    return answer if isinstance(answer, Made) else None


@dataclass(frozen=True)
class _Dialogue:
    """One request to a process, and its answer."""

    child: ChildProcess
    number: int

    def answer(self, request: bytes) -> Made | Exception | str:
        """
        The answer of the process: an artifact, an error, `UNABLE`, or `IDLE`, with which it ends after a while without
        requests.

        If the request is cancelled, the process ends the compilation, and takes further requests.
        """
        try:
            self.child.send(COMPILE, str(self.number).encode(), request)
            llvm_of_host()  # Which takes a while.
            return self._heard()
        except CancelledError:
            if self.child.lives:
                self.child.send(CANCEL, str(self.number).encode(), b"")
            raise
        except (BrokenPipeError, ConnectionResetError):
            return self._ended()
        except BaseException:
            self.child.close()  # Nobody knows how much of an answer is read.
            raise

    def _heard(self) -> Made | Exception | str:
        """The last message of the process, which reports its progress before."""
        while parts := self.child.receive(1):
            number, kind, content = pickle.loads(parts[0])
            if kind == MADE:
                answer = self._complete(content)
                if number == self.number:
                    return answer
            elif number == self.number or kind == IDLE:
                if kind not in _TELL:
                    return content if kind == RAISED else kind
                _TELL[kind](content)
        return self._ended()

    def _complete(self, content: tuple[Made, tuple[bytes, ...] | None, Any, int]) -> Made:
        """The result, with an artifact that is sent: code, manifest, and bytes of constants."""
        answer, code, manifest, size = content
        if code is None:
            return answer
        constants = np.empty(0, np.uint8)
        if size:
            descriptor = self.child.receive_file()
            try:
                constants = bytes_of(mmap.mmap(descriptor, size))
            finally:
                os.close(descriptor)
        return replace(answer, artifact=Artifact(code, constants, manifest))

    def _ended(self) -> Exception:
        """The error for a missing answer."""
        if not self.child.lives and self.child.is_closed:
            return CancelledError("the process ends")
        end = self.child.close(patience=1.0)
        if end == _KILLED:
            reason = "the compiler process was killed"
            return OutOfMemoryError(reason, hint="it may have run out of memory")
        return CompilerBugError(f"the compiler process ended with {end}")


_TELL = {"say": say, "warn": warn, "caution": caution}
"""Notice of the compiler process → its handler in this process."""
