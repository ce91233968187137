"""Messages of long work to listeners, by thread and task: progress and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from glow_mlir.errors import GlowError, GlowWarning

_WATCHER: ContextVar[Callable[[str], None] | None] = ContextVar("watcher", default=None)
_Listener = Callable[[GlowError], None]
_LISTENERS: ContextVar[tuple[_Listener, _Listener] | None] = ContextVar("listeners", default=None)
"""The listeners to warnings and cautions."""


def say(text: str) -> None:
    """Report progress in a few words, such as `say("tuning 3 of 20")`; does nothing without a listener."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(text)


def is_watched() -> bool:
    """Whether anything listens to progress."""
    return _WATCHER.get() is not None


@contextmanager
def watching(watcher: Callable[[str], None]) -> Generator[None]:
    """Call `watcher` with each progress message inside the `with` statement."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def warn(warning: GlowError) -> None:
    """Warn about a user error that does not stop the work; does nothing without a listener."""
    listeners = _LISTENERS.get()
    if listeners is not None:
        listeners[0](warning)


def caution(warning: GlowError) -> None:
    """Warn about something that may change results; without a listener, issue a Python `GlowWarning`."""
    listeners = _LISTENERS.get()
    if listeners is None:
        warnings.warn(str(warning), GlowWarning, stacklevel=callers_level())
    else:
        listeners[1](warning)


def callers_level() -> int:
    """The number of stack frames between the caller and the code that uses the package, for Python's warnings."""
    own, level = {__name__.partition(".")[0], "contextlib"}, 1  # Context managers are decorators, too.
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in own:
        frame, level = frame.f_back, level + 1
    return level


@contextmanager
def relaying(warned: Callable[[GlowError], None], cautioned: Callable[[GlowError], None]) -> Generator[None]:
    """Pass each warning and caution inside the `with` statement to functions."""
    token = _LISTENERS.set((warned, cautioned))
    try:
        yield
    finally:
        _LISTENERS.reset(token)


@contextmanager
def telling_once(reported: set[str]) -> Generator[None]:
    """Report each caution inside the `with` statement unless it is in `reported`; add it there."""
    around = _LISTENERS.get()
    warned = _ignored if around is None else around[0]

    def once(warning: GlowError) -> None:
        if str(warning) not in reported:
            reported.add(str(warning))
            token = _LISTENERS.set(around)
            try:
                caution(warning)
            finally:
                _LISTENERS.reset(token)

    with relaying(warned, once):
        yield


def _ignored(warning: GlowError) -> None:
    """Nobody listens."""


@contextmanager
def warning_to(listener: Callable[[GlowError], None]) -> Generator[None]:
    """Call `listener` with each warning inside the `with` statement, once where several are in the same words."""
    reported: set[str] = set()

    def once(warning: GlowError) -> None:
        if str(warning) not in reported:
            reported.add(str(warning))
            listener(warning)

    with relaying(once, once):
        yield
