"""What sessions do beside their calls, for tests that wait for its end."""

from __future__ import annotations

import threading

from glow_mlir.runtime.background_compilation import THREAD


def at_work() -> list[threading.Thread]:
    """The threads that are at it."""
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


def settle(seconds: float = 60) -> None:
    """Wait for all of it; raises `AssertionError` where that takes longer."""
    for thread in at_work():
        thread.join(seconds)
        assert not thread.is_alive()
