"""Messages of a session on stderr, filtered by its options."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from glow_mlir.api.onnxruntime.settings import Settings, number, severity
from glow_mlir.errors import GlowError, OptionError
from glow_mlir.support.activity import warning_to, watching
from glow_mlir.support.arguments import whole_number

INFO, WARNING, FATAL = 1, 2, 4
"""Severities: progress, warnings, and the highest."""

_DEFAULT: list[int] = []
"""The severity for sessions without one, if set."""

Callback = Callable[[int, str, str, str, str], None]
"""A logger: it takes severity, category, logger name, position in the code, and the text."""

_CALLBACK: list[Callback] = []
"""The logger in place of stderr, if one is set."""


def set_default_logger_callback(callback: Callback | None, severity: int = WARNING) -> None:
    """
    Send messages to a function instead of stderr, filtered by severity as in `set_default_logger_severity`.

    `None` restores stderr. Raises `OptionError` unless it is callable, and for an invalid severity. Exceptions of the
    function go to `threading.excepthook`.
    """
    if callback is not None and not callable(callback):
        raise OptionError(f"a '{type(callback).__name__}' takes no messages", hint="a function, or None")
    found = whole_number(severity)
    if found is None or not 0 <= found <= FATAL:
        raise OptionError(f"{severity!r} is no severity", hint=f"0 to {FATAL}")
    _CALLBACK[:] = [] if callback is None else [callback]
    if callback is not None:
        set_default_logger_severity(severity)


def set_default_logger_severity(level: int) -> None:
    """
    Set the messages that sessions write to stderr: 0 and 1 progress and warnings, 2 warnings, 3 and 4 none.

    Raises `OptionError` for another number. Errors are raised, not written.
    """
    found = severity(level)
    if found is None or found < 0:
        raise OptionError(f"{level!r} is no severity", hint=f"0 to {FATAL}")
    _DEFAULT[:] = [found]


def set_default_logger_verbosity(level: int) -> None:
    """Validate a verbosity level; messages of severity 0 have only one level."""
    if number(level) is None:
        raise OptionError(f"{level!r} is no level", hint="a whole number from 0 on")


def is_telling(*settings: Settings) -> bool:
    """Whether any setting selects messages."""
    return bool(_DEFAULT) or any(own.given.get("log_severity_level", -1) >= 0 for own in settings)


def telling(*settings: Settings) -> AbstractContextManager[None]:
    """Write messages inside the `with` statement, filtered by the first of these settings that has a level."""
    first = next((own for own in settings if own.given.get("log_severity_level", -1) >= 0), None)
    if first is None and not _DEFAULT:
        return nullcontext()
    level = _DEFAULT[0] if first is None else first.given["log_severity_level"]
    name = next((own.given["logid"] for own in settings if own.given.get("logid")), "glow_mlir")
    return _writing(level, name)


def _tell(severity: int, name: str, text: str) -> None:
    """Send a message to the logger."""
    if not _CALLBACK:
        print(f"{name}: {'warning: ' if severity == WARNING else ''}{text}", file=sys.stderr)
        return
    try:
        _CALLBACK[0](severity, "glow_mlir", name, "", text)
    except Exception as error:
        threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, None)))


@contextmanager
def _writing(level: int, name: str) -> Generator[None]:
    """Write messages of at least that severity."""

    def say(text: str) -> None:
        if level <= INFO:
            _tell(INFO, name, text)

    def warn(warning: GlowError) -> None:
        if level <= WARNING:
            _tell(WARNING, name, str(warning))

    with watching(say), warning_to(warn):
        yield
