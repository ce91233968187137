"""
Compilation in a process of its own, for one that only runs models.

What a compilation imports and builds is gone with that process, which takes its memory along, and a fatal error of LLVM
ends no other. It puts artifacts into the cache, or into a folder that it is told, and says under which key.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.errors import CompilerBugError, OutOfMemoryError
from glow_mlir.runtime.assumptions import Assumptions
from glow_mlir.runtime.loader import llvm_of_host
from glow_mlir.support.activity import caution, say, warn
from glow_mlir.support.child_process import ChildProcess, NoProcessError, One, can_fork
from glow_mlir.support.dataclass import dataclass

SERVER = "glow_mlir.api.compiler_server:serve"

_LARGEST = 1 << 28
"""Bytes of a model in memory from which on it is compiled where it is: it would be there twice."""

_NICENESS = 19
"""The niceness of what works beside calls."""

_KILLED = "signal 9"
"""How a process ends that Linux ends because there is too little memory."""


@dataclass(frozen=True)
class Request:
    """What is to be compiled: a model, for what a call wants, or (without `assumptions`) as far as options tell."""

    model: Path | bytes
    options: CompileOptions
    assumptions: Assumptions | None
    time_limit: float
    """Seconds that one compilation may take; 0 for any time."""
    folder: Path | None
    """Where the artifact goes; `None` for the cache."""


@dataclass(frozen=True)
class Made:
    """What was compiled: an artifact, by its key, or (in `template`) what is to be known of a model before a call."""

    key: str = ""
    """Empty where the artifact could not be stored."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    digests: Mapping[str, str] | None = None
    template: dict[str, Any] | None = None


_CALLED = One(partial(ChildProcess, SERVER, may_fork=True))
"""What calls and sessions wait for."""

_BESIDE = One(partial(ChildProcess, SERVER, niceness=_NICENESS))
"""What is compiled beside calls."""


def is_elsewhere(model: object, options: CompileOptions, is_beside: bool) -> bool:
    """
    Whether a model is compiled in another process.

    That is so beside calls, and where this one has no compiler, if nobody here watches.
    """
    is_here = options.pipeline or options.observers or options.pass_observers
    if is_here or not isinstance(model, Path | bytes) or (not is_beside and "xdsl" in sys.modules):
        return False
    return is_beside or isinstance(model, Path) or len(model) < _LARGEST


def made(request: Request, is_beside: bool = False) -> Made | None:
    """
    What the other process makes; `None` where there can be none.

    Raises what the compilation raises, `OutOfMemoryError` or `CompilerBugError` where the process ends before that is
    done, and `CancelledError`.
    """
    try:
        said = pickle.dumps((request, os.getcwd(), dict(os.environ)), pickle.HIGHEST_PROTOCOL)
    except FileNotFoundError:  # The folder that relative paths begin at is gone.
        return None
    try:
        if not is_beside and can_fork():
            llvm_of_host()  # The child has what this process needs as well.
        while True:
            with (_BESIDE if is_beside else _CALLED).asked() as child, suppress(_IdleEndError):
                return _answered(child, said)
    except NoProcessError:
        return None


class _IdleEndError(Exception):
    """The process had ended before the request came: it does where nobody asks for a while."""


def _answered(child: ChildProcess, request: bytes) -> Made:
    """What a process answers, which tells meanwhile what it is at; raises as `made`."""
    try:
        child.send(request)
        llvm_of_host()  # Which takes a while.
        while answer := child.receive(1):
            kind, content = pickle.loads(answer[0])
            if kind == "made":
                return content
            if kind == "raised":
                raise content
            _TELL[kind](content)
    except BrokenPipeError:
        pass
    except BaseException:
        if child.lives:
            child.close()  # Nobody will read the rest of the answer.
        raise
    end = child.close(patience=1.0)
    if end == "the code 0":
        raise _IdleEndError
    if end == _KILLED:
        reason = "the process that compiles was killed"
        raise OutOfMemoryError(reason, hint="there may be too little memory for it")
    raise CompilerBugError(f"the process that compiles ended with {end}")


_TELL = {"say": say, "warn": warn, "caution": caution}
"""What a process tells meanwhile → who is told here."""
