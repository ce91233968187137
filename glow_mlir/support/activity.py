"""What long work tells whoever listens, by thread and task: what it is at, and what it has to do without."""

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
"""Who is told of warnings, and of cautions."""


def say(text: str) -> None:
    """Tell what is done now, in a few words, as `say("tuning 3 of 20")`; nothing happens where nobody watches."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(text)


def is_watched() -> bool:
    """Whether somebody is told what is done."""
    return _WATCHER.get() is not None


@contextmanager
def watching(watcher: Callable[[str], None]) -> Generator[None]:
    """Call `watcher` with what is said inside the `with` statement."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def warn(warning: GlowError) -> None:
    """Tell of a mistake of the user's that the work goes on in spite of; nothing happens where nobody listens."""
    listeners = _LISTENERS.get()
    if listeners is not None:
        listeners[0](warning)


def caution(warning: GlowError) -> None:
    """Tell of what may change results, as `warn` does; where nobody listens, it is a `GlowWarning` of Python's."""
    listeners = _LISTENERS.get()
    if listeners is None:
        warnings.warn(str(warning), GlowWarning, stacklevel=callers_level())
    else:
        listeners[1](warning)


def callers_level() -> int:
    """How many calls lie between who asks and the code that uses the package, which Python's warnings then name."""
    own, level = {__name__.partition(".")[0], "contextlib"}, 1  # Context managers are decorators, too.
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in own:
        frame, level = frame.f_back, level + 1
    return level


@contextmanager
def relaying(warned: Callable[[GlowError], None], cautioned: Callable[[GlowError], None]) -> Generator[None]:
    """Call functions with each warning and each caution inside the `with` statement, to tell of them elsewhere."""
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
