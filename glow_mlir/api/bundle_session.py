"""`load_bundle`: a bundle for this machine as a session, without the compiler."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.api.session_entry import NodeArg, SessionEntry, as_array
from glow_mlir.errors import InputError
from glow_mlir.runtime.bundle import read_bundle
from glow_mlir.runtime.executable import MAIN
from glow_mlir.runtime.machine_code import MachineCode


class BundleSession:
    """
    A bundle, ready to run: what `InferenceSession` is to a model, but for what compiles.

    Several threads may call `run` at once. Calls of entries with state follow one another.
    """

    def __init__(self, folder: Path, name: str | None = None) -> None:
        self.name, self._functions, artifact = read_bundle(folder, name)
        self._code = MachineCode(artifact)
        self._entries: dict[str, SessionEntry] = {}
        self._first = next((entry for entry in self._functions if entry == MAIN), next(iter(self._functions)))
        self._chosen(None)  # Code for another machine is refused now.

    def get_entries(self) -> list[str]:
        """The names of the entries."""
        return list(self._functions)

    def get_inputs(self, entry: str | None = None) -> list[NodeArg]:
        """The inputs of an entry, by default the first, in order."""
        return self._chosen(entry).inputs()

    def get_outputs(self, entry: str | None = None) -> list[NodeArg]:
        """The outputs of an entry, by default the first, in order."""
        return self._chosen(entry).outputs()

    def run(
        self, output_names: Sequence[str] | None, inputs: Mapping[str, Any], *, entry: str | None = None
    ) -> list[np.ndarray]:
        """
        Run an entry, by default the first: the outputs of those names, or all, in new arrays.

        Raises `InputError` for a missing, unknown or misshapen input, or an unknown output or entry, and
        `ExecutionError` where the model fails on these inputs.
        """
        return self._chosen(entry).run(output_names, inputs)

    def get_state(self) -> dict[str, np.ndarray]:
        """The state of the bundle by name, which all entries share, in new arrays."""
        return self._code.state.get()

    def set_state(self, values: Mapping[str, Any]) -> None:
        """Overwrite the state of those names; raises `InputError` for an unknown name or a misshapen array."""
        self._code.state.set({name: as_array(f"state '{name}'", value) for name, value in values.items()})

    def reset_state(self, names: Sequence[str] | None = None) -> None:
        """Give the state of those names, or all of it, the value it began with."""
        self._code.state.reset(names)

    def _chosen(self, name: str | None) -> SessionEntry:
        """The entry of that name, or the first."""
        name = self._first if name is None else name
        if name not in self._functions:
            raise InputError(f"there is no entry '{name}'", hint=f"entries are {', '.join(self._functions)}")
        if name not in self._entries:
            self._entries[name] = SessionEntry(self._code.entry(self._functions[name]))
        return self._entries[name]


def load_bundle(folder: str | os.PathLike[str], name: str | None = None) -> BundleSession:
    """
    The bundle in a folder, which `glow-compile` wrote for this machine; `name` says which, where there are several.

    Neither xDSL nor onnx is imported. Raises `InputError` for a folder without a bundle, or with a damaged one, and
    `OptionError` for one whose code this machine cannot run.
    """
    return BundleSession(Path(folder), name)
