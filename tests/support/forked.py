"""Checks in a child of `os.fork`."""

from __future__ import annotations

import os
from collections.abc import Callable


def child(check: Callable[[], bool]) -> bool:
    """Whether something holds in a child process, which ends."""
    number = os.fork()
    if number == 0:
        code = 2
        try:
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 0
