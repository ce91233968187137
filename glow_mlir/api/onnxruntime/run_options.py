"""onnxruntime's `RunOptions`, and the effect of each option here."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Self

from glow_mlir.api.onnxruntime.refused_names import Explained
from glow_mlir.api.onnxruntime.settings import (
    Effect,
    Setting,
    Settings,
    Treatment,
    flag,
    keyed,
    number,
    severity,
    text,
)
from glow_mlir.errors import CancelledError
from glow_mlir.support.arguments import seconds
from glow_mlir.support.cancellation import Cancellation

RUN_CONFIG_KEYS = keyed(
    ("memory.enable_memory_arena_shrinkage", Effect.NONE, "there is no arena to shrink", ()),
    ("disable_synchronize_execution_providers", Effect.NONE, "calls are synchronous", ()),
    ("gpu_graph_id", Effect.NONE, "there is no GPU", ()),
)
"""The keys of `add_run_config_entry`."""

RUN_METHODS = (
    Treatment("add_run_config_entry", Effect.HONOURED, "for the keys below; others give a warning"),
    Treatment("get_run_config_entry", Effect.HONOURED, "the value that was set"),
)
"""The effect of each method; those of `refused_names` are refused."""


class RunOptions(Settings, Explained):
    """
    The options of calls, for those who come from onnxruntime; docs/api.md has them all.

    `terminate` may be set by any thread, and `time_limit` says how many seconds a call may take: the loops of one that
    is to end begin no further trip, and it raises `CancelledError`, or `TimeLimitError`.
    """

    __slots__ = ("_calls",)

    KEYS = RUN_CONFIG_KEYS

    terminate = Setting(
        False, flag, Effect.HONOURED, "refuses new calls and ends running loops at their next iteration"
    )
    time_limit = Setting(
        0.0,
        seconds,
        Effect.OURS,
        "timeout of a call in seconds, checked by loops and kernels whose time depends on values; 0 for none",
    )
    only_execute_path_to_fetches = Setting(False, flag, Effect.NONE, "one function computes all outputs")
    log_severity_level = Setting(-1, severity, Effect.HONOURED, "which messages of the call go to stderr")
    log_verbosity_level = Setting(0, number, Effect.NONE, "messages of severity 0 have one level")
    logid = Setting("", text, Effect.HONOURED, "stands in front of the messages of the call")

    def __init__(self) -> None:
        super().__init__()
        self._calls: set[Cancellation] = set()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set an option by key; an unknown key causes a warning."""
        self.add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """The value of a key; raises `OptionError` if it is not set."""
        return self.get_entry(key)

    def __copy__(self) -> Self:
        """Independent options with the same settings."""
        found = super().__copy__()
        found._calls = set()
        return found

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "terminate" and self.terminate:
            for call in tuple(self._calls):
                call.cancel(CancelledError("the call was terminated"))

    @contextmanager
    def ending(self, call: Cancellation) -> Generator[None]:
        """Let `terminate` end the call inside a `with` statement; raises `CancelledError` if it is already set."""
        self._calls.add(call)
        try:
            if self.terminate:
                reason = "the call was not started: terminate is set"
                raise CancelledError(reason, hint="run_options.terminate = False")
            yield
        finally:
            self._calls.discard(call)
