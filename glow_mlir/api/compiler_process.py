"""
Compile in a separate process, so that this process only runs models.

Memory used by imports and compilations is freed when that process ends, and a fatal error of LLVM ends only that
process. It stores artifacts in the cache and returns their keys; artifacts that are not cached are sent back, with
their constants in an in-memory file.
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
"""The requests being processed."""

MADE, RAISED, UNABLE, IDLE = "made", "raised", "unable", "idle"
"""Kinds of final answers, as opposed to progress messages."""

_LARGEST = 1 << 28
"""
A model in memory of at least this many bytes is compiled in this process, because sending it would double its memory.
"""

_NICENESS = 19
"""The niceness of background compilations."""

_KILLED = "signal 9"
"""The exit status of a process killed by Linux for lack of memory."""

_OF_PROCESS = ("/proc", "/dev")
"""Folders whose files differ between processes."""


@dataclass(frozen=True)
class Request:
    """
    A request to compile a model for the sizes of a call, or (without `assumptions`) as far as options determine it.
    """

    model: Any
    """A path, the bytes of an ONNX model, or a model that consists of its `source`, which is one of these."""
    options: CompileOptions
    assumptions: Assumptions | None
    time_limit: float
    """Time limit of one compilation in seconds; 0 for none."""
    is_kept: bool
    """Whether to store the artifact in the cache."""


@dataclass(frozen=True)
class Made:
    """
    The result of a compilation: an artifact (in the cache, or in `artifact`), or a `template` if compilation needs the
    sizes of a call.
    """

    key: str = ""
    """The cache key, which also identifies the model; empty if files changed during compilation."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    digests: Mapping[str, str] | None = None
    artifact: Artifact | None = None
    template: dict[str, Any] | None = None
    external: tuple[str, ...] | None = None
    """The external weight files of an ONNX model."""


_CALLED = Children(partial(ChildProcess, SERVER, may_fork=True))
"""The processes for compilations that calls and sessions wait for."""

_BACKGROUND = Children(partial(ChildProcess, SERVER, niceness=_NICENESS))
"""The processes for compilations in the background."""

_NUMBERS = itertools.count()
"""Request numbers."""


def is_elsewhere(model: object, options: CompileOptions, is_background: bool) -> bool:
    """
    Whether to compile a model in another process.

    That is the case for background compilations, and if this process has not loaded the compiler; but only without
    pipeline or observers of the caller, and if the other process can access the model.
    """
    is_here = options.pipeline or options.observers or options.pass_observers
    model = getattr(model, "source", model)  # A model of TensorFlow Lite is its file or its bytes.
    if is_here or not isinstance(model, Path | bytes) or (not is_background and "xdsl" in sys.modules):
        return False
    if isinstance(model, bytes):
        return is_background or len(model) < _LARGEST
    return not any(path.startswith(_OF_PROCESS) for path in (os.path.abspath(model), os.path.realpath(model)))


def made(request: Request, is_background: bool = False) -> Made | None:
    """
    The result of the other process; `None` if there can be no other process, or if it lacks something it needs.

    Raises the errors of the compilation, `OutOfMemoryError` or `CompilerBugError` if the process ends early, and
    `CancelledError`.
    """
    try:
        message = pickle.dumps((request, os.getcwd(), dict(os.environ)), pickle.HIGHEST_PROTOCOL)
    except Exception:  # Arguments may have classes unknown to the other process, or the folder may be gone.
        return None
    if not is_background and can_fork():
        llvm_of_host()  # A forked child inherits it.
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
        The answer of the process: an artifact, an error, `UNABLE`, or `IDLE` if it ended because it was idle for too
        long.

        If the request is cancelled, the process stops the compilation, and accepts further requests.
        """
        try:
            self.child.send(COMPILE, str(self.number).encode(), request)
            llvm_of_host()  # This takes a while.
            return self._heard()
        except CancelledError:
            if self.child.lives:
                self.child.send(CANCEL, str(self.number).encode(), b"")
            raise
        except (BrokenPipeError, ConnectionResetError):
            return self._ended()
        except BaseException:
            self.child.close()  # An answer may be partly read.
            raise

    def _heard(self) -> Made | Exception | str:
        """Read messages up to the final answer; handle progress messages."""
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
        """The result with the artifact that was sent: code, manifest, and bytes of constants."""
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
"""Kind of progress message → its handler in this process."""
