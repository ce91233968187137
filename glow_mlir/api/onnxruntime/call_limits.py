"""Limits of a call: `terminate` in its options, and time limits."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext

from glow_mlir.api.onnxruntime.run_options import RunOptions
from glow_mlir.support.cancellation import Cancellation
from glow_mlir.support.watchdog import time_limited


@contextmanager
def cancellable(options: RunOptions | None, time_limit: float) -> Generator[None]:
    """
    Let the options or a time limit in seconds end the call inside the `with` statement.

    A `time_limit` of 0 means none; a limit in the options takes precedence.
    """
    call = Cancellation()
    seconds = (0.0 if options is None else options.time_limit) or time_limit
    with nullcontext() if options is None else options.ending(call):
        with time_limited(call, seconds, "call", "time_limit"):
            yield
