"""Sessions: entries of a compiled model that run on arrays by name, and their shared state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from glow_mlir.api.session_entry import SessionEntry, check_named
from glow_mlir.errors import InputError
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.typed_arrays import as_array
from glow_mlir.support.cancellation import Cancellation
from glow_mlir.support.watchdog import time_limited


class Session:
    """
    Compiled entries, ready to be called.

    Several threads may call `run` at once. Calls of entries with state run one after the other; each starts from the
    state that the previous call left.
    """

    def __init__(self, executable: Executable, names: Mapping[str, str], first: str, time_limit: float = 0.0) -> None:
        """
        `names` maps the callers' name of each entry to that of the executable; `first` is called by default.

        A call may take `time_limit` seconds; 0 for no limit.
        """
        self.loaded = executable
        """The executable, or several for different sizes of inputs."""
        self.time_limit = time_limit
        self._names = names
        self._entries: dict[str, SessionEntry] = {}
        self.first = self.entry(first)
        """The entry that is called by default."""

    def __str__(self) -> str:
        """The default entry, and the number of others."""
        others = len(self._names) - 1
        return f"{self.first}{f' and {others} more' if others else ''}"

    def __repr__(self) -> str:
        """The class and its description."""
        return f"<{type(self).__name__} {self}>"

    @property
    def entries(self) -> list[str]:
        """The names of the entries."""
        return list(self._names)

    def entry(self, name: str | None = None) -> SessionEntry:
        """The entry of that name, or the default entry; raises `InputError` for an unknown one."""
        if name is None:
            return self.first
        if not isinstance(cast("object", name), str) or name not in self._names:
            raise InputError(f"there is no entry '{name}'", hint=f"entries are {', '.join(self._names)}")
        if name not in self._entries:
            self._entries[name] = SessionEntry(self.loaded.entry(self._names[name]))
        return self._entries[name]

    def run(self, inputs: Mapping[str, Any], *, entry: str | None = None) -> dict[str, np.ndarray]:
        """
        Run an entry; return its outputs by name, in new arrays.

        C-contiguous, aligned inputs of the right type are used in place. Code missing for the sizes or values of these
        inputs is compiled first. Raises `InputError` for a missing, unknown or misshapen input, or an unknown entry,
        `ExecutionError` if the model fails on these inputs, and `TimeLimitError`.
        """
        chosen = self.entry(entry)
        if not self.time_limit:
            return chosen.run(inputs)
        with time_limited(Cancellation(), self.time_limit, "call", "time_limit"):
            return chosen.run(inputs)

    def get_state(self, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """
        Copies of the named states, or of all, as they are between two calls. All entries share the state.

        Raises `InputError` for an unknown name.
        """
        return self.loaded.state.get(names)

    def set_state(self, values: Mapping[str, Any]) -> None:
        """Overwrite the named states; raises `InputError` for an unknown name or a misshapen array."""
        check_named(values, "values of the state")
        self.loaded.state.set({name: as_array(f"state '{name}'", value) for name, value in values.items()})

    def reset_state(self, names: Sequence[str] | None = None) -> None:
        """Reset the named states, or all, to their initial values; raises `InputError` as `set_state` does."""
        self.loaded.state.reset(names)
