"""`RunOptions` as onnxruntime's users write them, and what becomes of each option here."""

from __future__ import annotations

from glow_mlir.api.refused_names import Explained
from glow_mlir.api.settings import Effect, Setting, Settings, Treatment, flag, keyed, number, severity, text
from glow_mlir.errors import ExecutionError

RUN_CONFIG_KEYS = keyed(
    ("memory.enable_memory_arena_shrinkage", Effect.NONE, "there is no arena to shrink", ()),
    ("disable_synchronize_execution_providers", Effect.NONE, "a call ends when its results are there", ()),
    ("gpu_graph_id", Effect.NONE, "there is no GPU", ()),
)
"""The keys of `add_run_config_entry`."""

RUN_METHODS = (
    Treatment("add_run_config_entry", Effect.HONOURED, "for the keys below; others are refused"),
    Treatment("get_run_config_entry", Effect.HONOURED, "what was set"),
)
"""What becomes of the methods; those of `refused_names` are refused."""


class RunOptions(Settings, Explained):
    """The options of a call, for those who come from onnxruntime; docs/api.md has them all."""

    __slots__ = ()

    KEYS = RUN_CONFIG_KEYS

    terminate = Setting(False, flag, Effect.HONOURED, "no call begins; one that has begun ends")
    only_execute_path_to_fetches = Setting(False, flag, Effect.NONE, "one function computes all outputs")
    log_severity_level = Setting(-1, severity, Effect.HONOURED, "which messages of the call go to stderr")
    log_verbosity_level = Setting(0, number, Effect.NONE, "messages of severity 0 have one level")
    logid = Setting("", text, Effect.HONOURED, "stands in front of the messages of the call")

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set an option by a key; raises `OptionError` for one that cannot be honoured."""
        self.add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """What was set by a key; raises `OptionError` where nothing was."""
        return self.get_entry(key)

    def check_begin(self) -> None:
        """Raise `ExecutionError` where calls are not to begin."""
        if self.terminate:
            raise ExecutionError("the call does not begin: terminate is set", hint="run_options.terminate = False")
